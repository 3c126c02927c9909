#include "lib/documents/jsonl_text.h"

#include <utility>

#include "lib/documents/json_line.h"

namespace trainwright {

namespace {

constexpr size_t kKeysInHint = 8;
constexpr char kConversationsHint[] = "pretokenize --records sft reads conversations";

/// Whether a member is turns of a conversation.
bool HoldsTurns(const simdjson::dom::element& root, std::string_view key) {
  simdjson::dom::element turns;
  return (key == "messages" || key == "conversations") && FindMember(root, key, &turns) && turns.is_array();
}

std::string HintOfKeys(const simdjson::dom::element& root) {
  for (const char* turns : {"messages", "conversations"}) {
    if (HoldsTurns(root, turns)) return kConversationsHint;
  }
  std::string names;
  size_t count = 0;
  for (const auto field : root.get_object()) {
    if (++count <= kKeysInHint) names += (names.empty() ? "" : ", ") + std::string(field.key);
  }
  if (count == 0) return {};
  return "--key names one of its keys: " + names + (count > kKeysInHint ? " and others" : "");
}

}  // namespace

struct JsonlText::Impl {
  std::vector<std::string> keys, instead;
  JsonLine json;
};

JsonlText::JsonlText(std::vector<std::string> keys, std::vector<std::string> instead)
    : impl_(std::make_unique<Impl>()) {
  impl_->keys = std::move(keys);
  impl_->instead = std::move(instead);
}
JsonlText::~JsonlText() = default;

std::optional<DocumentProblem> JsonlText::Read(std::string_view line, std::string* text) {
  text->clear();
  simdjson::dom::element root;
  if (auto problem = impl_->json.Parse(line, &root)) return problem;
  for (size_t i = 0; i < impl_->keys.size(); ++i) {
    const std::string& key = impl_->keys[i];
    simdjson::dom::element value;
    bool found = FindPath(root, key, &value);
    for (size_t other = 0; i == 0 && !found && other < impl_->instead.size(); ++other)
      found = FindPath(root, impl_->instead[other], &value);
    if (!found)
      return DocumentProblem{SkipReason::kMissingKey, "no key \"" + key + "\"", {}, HintOfKeys(root)};
    std::string_view part;
    if (value.get_string().get(part) != simdjson::SUCCESS) {
      return DocumentProblem{SkipReason::kNotAString,
                             "the value of \"" + key + "\" is " + NameOf(value.type()) + ", not a string",
                             {},
                             HoldsTurns(root, key) ? kConversationsHint : ""};
    }
    if (i > 0) text->push_back('\n');
    text->append(part);
  }
  return std::nullopt;
}

}  // namespace trainwright

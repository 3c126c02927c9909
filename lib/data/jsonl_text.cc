#include "lib/data/jsonl_text.h"

#include <simdjson.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace trainwright {
namespace {

using simdjson::dom::element;

const char* NameOf(simdjson::dom::element_type type) {
  switch (type) {
    case simdjson::dom::element_type::ARRAY:
      return "an array";
    case simdjson::dom::element_type::OBJECT:
      return "an object";
    case simdjson::dom::element_type::STRING:
      return "a string";
    case simdjson::dom::element_type::BOOL:
      return "a boolean";
    case simdjson::dom::element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

bool Find(element from, std::string_view path, element* found) {
  if (!from.is_object()) return false;
  if (from.at_key(path).get(*found) == simdjson::SUCCESS) return true;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    element inner;
    if (from.at_key(path.substr(0, dot)).get(inner) == simdjson::SUCCESS &&
        Find(inner, path.substr(dot + 1), found)) {
      return true;
    }
  }
  return false;
}

/// Whether simdjson stopped at a number. It refuses integers beyond 64 bits, which are JSON all the same and
/// no business of ours; the code of that differs between its versions, the wording does not.
bool IsAboutNumbers(simdjson::error_code error) {
  const std::string_view message = simdjson::error_message(error);
  return message.find("number") != std::string_view::npos ||
         message.find("integer") != std::string_view::npos;
}

/// The same JSON with every number 0; empty when it is not JSON or nested too deep.
std::string WithoutNumbers(std::string_view line) {
  constexpr int kMaxDepth = 1000;  // simdjson has such a limit too, and dump() recurses
  bool too_deep = false;
  const auto zero = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (depth > kMaxDepth) too_deep = true;
    if (event == nlohmann::json::parse_event_t::value && value.is_number()) value = 0;
    return !too_deep;
  };
  const auto parsed = nlohmann::json::parse(line, zero, false);
  return parsed.is_discarded() || too_deep ? "" : parsed.dump();
}

}  // namespace

struct JsonlText::Impl {
  /// A parser keeps some 13 bytes of buffers per byte of its longest line; above this they are given back.
  static constexpr size_t kKeptLineBytes = 1 << 20;

  std::vector<std::string> keys;
  std::unique_ptr<simdjson::dom::parser> parser = std::make_unique<simdjson::dom::parser>();
  std::string padded;

  simdjson::error_code Parse(std::string_view line, element* root) {
    padded.reserve(line.size() + simdjson::SIMDJSON_PADDING);
    padded.assign(line);
    padded.append(simdjson::SIMDJSON_PADDING, ' ');
    return parser->parse(padded.data(), line.size(), false).get(*root);
  }
};

JsonlText::JsonlText(std::vector<std::string> keys) : impl_(std::make_unique<Impl>()) {
  impl_->keys = std::move(keys);
}
JsonlText::~JsonlText() = default;

std::optional<DocumentProblem> JsonlText::Read(std::string_view line, std::string* text) {
  text->clear();
  if (impl_->padded.capacity() > Impl::kKeptLineBytes && line.size() <= Impl::kKeptLineBytes) {
    impl_->parser = std::make_unique<simdjson::dom::parser>();
    impl_->padded = {};
  }
  element root;
  simdjson::error_code error = impl_->Parse(line, &root);
  if (error != simdjson::SUCCESS && IsAboutNumbers(error)) {
    const std::string plain = WithoutNumbers(line);
    if (!plain.empty()) error = impl_->Parse(plain, &root);
  }
  if (error == simdjson::UTF8_ERROR) {
    return DocumentProblem{SkipReason::kInvalidUtf8, "JSON that is not valid UTF-8", {}};
  }
  if (error != simdjson::SUCCESS) {
    return DocumentProblem{
        SkipReason::kBadJson, std::string("not valid JSON: ") + simdjson::error_message(error), {}};
  }
  if (!root.is_object()) {
    return DocumentProblem{
        SkipReason::kBadJson, std::string("not a JSON object but ") + NameOf(root.type()), {}};
  }
  for (size_t i = 0; i < impl_->keys.size(); ++i) {
    const std::string& key = impl_->keys[i];
    element value;
    if (!Find(root, key, &value))
      return DocumentProblem{SkipReason::kMissingKey, "no key \"" + key + "\"", {}};
    std::string_view part;
    if (value.get_string().get(part) != simdjson::SUCCESS) {
      return DocumentProblem{SkipReason::kNotAString,
                             "the value of \"" + key + "\" is " + NameOf(value.type()) + ", not a string",
                             {}};
    }
    if (i > 0) text->push_back('\n');
    text->append(part);
  }
  return std::nullopt;
}

}  // namespace trainwright

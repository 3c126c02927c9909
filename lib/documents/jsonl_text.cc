#include "lib/documents/jsonl_text.h"

#include <utility>

#include "lib/documents/json_line.h"

namespace trainwright {

struct JsonlText::Impl {
  std::vector<std::string> keys;
  JsonLine json;
};

JsonlText::JsonlText(std::vector<std::string> keys) : impl_(std::make_unique<Impl>()) {
  impl_->keys = std::move(keys);
}
JsonlText::~JsonlText() = default;

std::optional<DocumentProblem> JsonlText::Read(std::string_view line, std::string* text) {
  text->clear();
  simdjson::dom::element root;
  if (auto problem = impl_->json.Parse(line, &root)) return problem;
  for (size_t i = 0; i < impl_->keys.size(); ++i) {
    const std::string& key = impl_->keys[i];
    simdjson::dom::element value;
    if (!FindPath(root, key, &value))
      return DocumentProblem{SkipReason::kMissingKey, "no key \"" + key + "\"", {}, {}};
    std::string_view part;
    if (value.get_string().get(part) != simdjson::SUCCESS) {
      return DocumentProblem{SkipReason::kNotAString,
                             "the value of \"" + key + "\" is " + NameOf(value.type()) + ", not a string",
                             {},
                             {}};
    }
    if (i > 0) text->push_back('\n');
    text->append(part);
  }
  return std::nullopt;
}

}  // namespace trainwright

#include "lib/documents/contrastive_example.h"

#include <utility>

#include "lib/documents/json_line.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

using simdjson::dom::element;
using Problem = std::optional<DocumentProblem>;

Problem NotAString(const std::string& where, element value) {
  return DocumentProblem{SkipReason::kNotAString,
                         where + " is " + NameOf(value.type()) + ", not a string or [instruction, text]",
                         {},
                         {}};
}

Problem AppendText(element value, const std::string& where, TextRole role, ContrastiveExample* example) {
  InstructedText& made = example->texts.emplace_back();
  made.role = role;
  std::string_view text;
  simdjson::dom::array pair;
  if (value.get_string().get(text) == simdjson::SUCCESS) {
    made.text = text;
  } else if (value.get_array().get(pair) != simdjson::SUCCESS) {
    return NotAString(where, value);
  } else if (pair.size() != 2) {
    return DocumentProblem{
        SkipReason::kBadRecord,
        where + " is a list of " + std::to_string(pair.size()) + ", not [instruction, text]",
        {},
        {}};
  } else {
    std::string_view instruction;
    for (auto [index, into] : {std::pair{0, &instruction}, std::pair{1, &text}}) {
      const element part = pair.at(static_cast<size_t>(index)).value();
      if (part.get_string().get(*into) != simdjson::SUCCESS)
        return NotAString(where + "[" + std::to_string(index) + "]", part);
    }
    made.instruction = instruction;
    made.text = text;
  }
  if (made.text.empty()) return DocumentProblem{SkipReason::kEmptyText, where + " is empty", {}, {}};
  return std::nullopt;
}

Problem AppendTexts(element list, TextRole role, ContrastiveExample* example) {
  const std::string key = std::string("\"") + TextRoleName(role) + "\"";
  simdjson::dom::array array;
  if (list.get_array().get(array) != simdjson::SUCCESS) {
    return DocumentProblem{SkipReason::kBadRecord,
                           "the value of " + key + " is " + NameOf(list.type()) + ", not a list of texts",
                           {},
                           {}};
  }
  size_t number = 0;
  for (const element item : array) {
    if (auto problem = AppendText(item, key + "[" + std::to_string(number++) + "]", role, example))
      return problem;
  }
  if (number == 0 && role == TextRole::kPositive)
    return DocumentProblem{
        SkipReason::kBadRecord, key + " is empty: a query needs a text to be close to", {}, {}};
  return std::nullopt;
}

}  // namespace

uint64_t ContrastiveExample::CountCharacters() const {
  uint64_t characters = 0;
  for (const InstructedText& text : texts) {
    characters += trainwright::CountCharacters(text.instruction) + trainwright::CountCharacters(text.text);
  }
  return characters;
}

std::string ContrastiveExample::HoldoutKey() const {
  return texts.front().instruction + '\0' + texts.front().text;
}

struct ContrastiveExampleReader::Impl {
  JsonLine json;
};

ContrastiveExampleReader::ContrastiveExampleReader() : impl_(std::make_unique<Impl>()) {}
ContrastiveExampleReader::~ContrastiveExampleReader() = default;

std::optional<DocumentProblem> ContrastiveExampleReader::Read(std::string_view line,
                                                              ContrastiveExample* example) {
  example->texts.clear();
  element root, query, positives, negatives;
  if (auto problem = impl_->json.Parse(line, &root)) return problem;
  const std::string hint = "contrastive records have \"query\" and \"pos\", and \"neg\" if they like";
  for (const auto& [key, into] : {std::pair{"query", &query}, std::pair{"pos", &positives}}) {
    if (FindMember(root, key, into)) continue;
    return DocumentProblem{SkipReason::kMissingKey, std::string("no key \"") + key + "\"", {}, hint};
  }
  if (auto problem = AppendText(query, "\"query\"", TextRole::kQuery, example)) return problem;
  if (auto problem = AppendTexts(positives, TextRole::kPositive, example)) return problem;
  if (!FindMember(root, "neg", &negatives) || negatives.is_null()) return std::nullopt;
  return AppendTexts(negatives, TextRole::kNegative, example);
}

}  // namespace trainwright

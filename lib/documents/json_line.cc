#include "lib/documents/json_line.h"

#include <new>
#include <string>
#include <string_view>

#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

/// A parser keeps some 13 bytes of buffers per byte of its longest line; above this they are given back.
constexpr size_t kKeptLineBytes = 1 << 20;

/// Whether simdjson stopped at a number. It refuses what neither 64 bits nor a double hold, which is JSON all
/// the same; the code of that differs between its versions, the wording does not.
bool IsAboutNumbers(simdjson::error_code error) {
  const std::string_view message = simdjson::error_message(error);
  return message.find("number") != std::string_view::npos ||
         message.find("integer") != std::string_view::npos;
}

/// For a line that begins a list.
std::string HintOfList(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || line[first] != '[') return {};
  return "a file that is one JSON list becomes one of lines by jq -c '.[]' FILE";
}

}  // namespace

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

bool FindMember(simdjson::dom::element object, std::string_view name, simdjson::dom::element* found) {
  simdjson::dom::object members;
  if (object.get_object().get(members) != simdjson::SUCCESS) return false;
  bool any = false;
  for (auto member = members.begin(); member != members.end(); ++member) {
    if (!member.key_equals(name)) continue;
    *found = member.value();
    any = true;
  }
  return any;
}

bool FindPath(simdjson::dom::element from, std::string_view path, simdjson::dom::element* found) {
  if (!from.is_object()) return false;
  if (FindMember(from, path, found)) return true;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    simdjson::dom::element inner;
    if (FindMember(from, path.substr(0, dot), &inner) && FindPath(inner, path.substr(dot + 1), found)) {
      return true;
    }
  }
  return false;
}

simdjson::error_code JsonLine::ParsePadded(std::string_view line, simdjson::dom::element* root) {
  padded_.reserve(line.size() + simdjson::SIMDJSON_PADDING);
  padded_.assign(line);
  padded_.append(simdjson::SIMDJSON_PADDING, ' ');
  return parser_->parse(padded_.data(), line.size(), false).get(*root);
}

std::optional<DocumentProblem> JsonLine::Parse(std::string_view line, simdjson::dom::element* root) {
  if (padded_.capacity() > kKeptLineBytes && line.size() <= kKeptLineBytes) {
    parser_ = std::make_unique<simdjson::dom::parser>();
    padded_ = {};
  }
  simdjson::error_code error = ParsePadded(line, root);
  if (error != simdjson::SUCCESS && IsAboutNumbers(error)) {
    error = ParsePadded(WithNumbersInRange(line), root);
  }
  // A line that memory does not hold is no bad document: it must never be left out.
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  if (error == simdjson::UTF8_ERROR) {
    return DocumentProblem{SkipReason::kInvalidUtf8, "JSON that is not valid UTF-8", {}, {}};
  }
  if (error != simdjson::SUCCESS) {
    return DocumentProblem{SkipReason::kBadJson,
                           std::string("not valid JSON: ") + simdjson::error_message(error),
                           {},
                           HintOfList(line)};
  }
  if (!root->is_object()) {
    return DocumentProblem{SkipReason::kBadJson,
                           std::string("not a JSON object but ") + NameOf(root->type()),
                           {},
                           HintOfList(line)};
  }
  return std::nullopt;
}

}  // namespace trainwright

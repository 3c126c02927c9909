#include "lib/tok/tokenizer_json_values.h"

#include "lib/base/error.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

namespace dom = simdjson::dom;

namespace {

constexpr uint32_t kMaxVocabulary = 1 << 24;

}  // namespace

void TokenizerJsonValues::Refuse(const std::string& problem, const std::string& place) const {
  throw Error(ErrorCode::kBadInput, name_, problem, place, kTokenizerHint);
}

void TokenizerJsonValues::RefuseUnsupported(const std::string& what) const {
  Refuse("has " + what + ", which this version does not do");
}

void TokenizerJsonValues::RefuseShape(const std::string& place) const {
  Refuse("has a value of the wrong type", place);
}

std::optional<dom::element> TokenizerJsonValues::Member(Element object, std::string_view key) const {
  dom::element value;
  if (object.at_key(key).get(value) || value.is_null()) return std::nullopt;
  return value;
}

dom::element TokenizerJsonValues::Required(Element object, std::string_view key,
                                           const std::string& place) const {
  const auto value = Member(object, key);
  if (!value) Refuse("lacks \"" + std::string(key) + "\"", place);
  return *value;
}

std::string_view TokenizerJsonValues::TextOf(Element value, const std::string& place) const {
  std::string_view text;
  if (value.get(text)) RefuseShape(place);
  return text;
}

std::string_view TokenizerJsonValues::RequiredText(Element object, std::string_view key,
                                                   const std::string& place) const {
  if (!object.is_object()) RefuseShape(place);
  return TextOf(Required(object, key, place), place + "." + std::string(key));
}

dom::array TokenizerJsonValues::ArrayOf(Element value, const std::string& place) const {
  dom::array array;
  if (value.get(array)) RefuseShape(place);
  return array;
}

dom::object TokenizerJsonValues::ObjectOf(Element value, const std::string& place) const {
  dom::object object;
  if (value.get(object)) RefuseShape(place);
  return object;
}

bool TokenizerJsonValues::FlagOf(Element object, std::string_view key, bool absent,
                                 const std::string& place) const {
  const auto value = Member(object, key);
  if (!value) return absent;
  bool flag = false;
  if (value->get(flag)) RefuseShape(place + "." + std::string(key));
  return flag;
}

uint32_t TokenizerJsonValues::IdOf(Element value, const std::string& place) const {
  uint64_t id = 0;
  if (value.get(id)) RefuseShape(place);
  if (id >= kMaxVocabulary) Refuse("has the id " + std::to_string(id) + ", beyond 2^24", place);
  return static_cast<uint32_t>(id);
}

std::string TokenizerJsonValues::TypeOf(Element value, const std::string& place) const {
  if (!value.is_object()) RefuseShape(place);
  return std::string(TextOf(Required(value, "type", place), place + ".type"));
}

std::vector<dom::element> TokenizerJsonValues::Steps(Element value, const std::string& list,
                                                     const std::string& place) const {
  if (TypeOf(value, place) != "Sequence") return {value};
  std::vector<dom::element> steps;
  for (const dom::element step : ArrayOf(Required(value, list, place), place)) {
    for (const dom::element inner : Steps(step, list, place)) steps.push_back(inner);
  }
  return steps;
}

}  // namespace trainwright

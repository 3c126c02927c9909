#include "lib/retrieval/corpus.h"

namespace trainwright {

std::string IdTextOf(const nlohmann::json& id) {
  if (id.is_string()) return id.get<std::string>();
  return id.is_number_integer() ? id.dump() : "";
}

std::string IdOf(const nlohmann::json& object, const JsonPlace& place) {
  const std::string name = IdTextOf(MemberOf(object, {"_id", "id"}, place));
  if (name.empty()) throw place.Bad("its id is neither a string nor a whole number, or empty");
  return name;
}

std::string TitledTextOf(const nlohmann::json& object, const JsonPlace& place) {
  std::string text = TextMemberOf(object, {"text"}, place);
  const auto title = object.find("title");
  if (title == object.end() || title->is_null()) return text;
  if (!title->is_string()) throw place.Bad("its title is not a string");
  const auto& words = title->get_ref<const std::string&>();
  if (words.empty()) return text;
  return text.empty() ? words : words + " " + text;
}

std::string ForEachRetrievalText(const std::string& path,
                                 const std::function<void(RetrievalText&&, const JsonPlace&)>& use) {
  return ForEachJsonObject(path, [&](const nlohmann::json& object, const JsonPlace& place) {
    use({IdOf(object, place), TitledTextOf(object, place)}, place);
  });
}

}  // namespace trainwright

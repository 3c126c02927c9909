#include "lib/documents/json_objects.h"

#include <optional>

#include "lib/formats/json_text.h"

namespace trainwright {

std::string ForEachTextLine(const std::string& path,
                            const std::function<void(std::string_view, const JsonPlace&)>& use) {
  RecordReader reader(path, InputFormat::kJsonl);
  reader.HashStoredBytes();
  while (const std::optional<std::string_view> line = reader.NextFilled()) use(*line, reader.place());
  return reader.stored_sha256();
}

std::string ForEachJsonObject(const std::string& path,
                              const std::function<void(const nlohmann::json&, const JsonPlace&)>& use) {
  return ForEachTextLine(path, [&](std::string_view line, const JsonPlace& place) {
    const auto object = JsonOf(line);
    if (!object.is_object()) throw place.Bad("is no JSON object");
    use(object, place);
  });
}

namespace {

/// The members that there are, for a hint.
std::string NamesIn(const nlohmann::json& object) {
  constexpr size_t kMostNames = 8;
  std::string names;
  size_t count = 0;
  for (const auto& [name, value] : object.items()) {
    if (++count <= kMostNames) names += (names.empty() ? "" : ", ") + name;
  }
  if (count == 0) return "";
  return "it has " + names + (count > kMostNames ? " and others" : "");
}

}  // namespace

const nlohmann::json& MemberOf(const nlohmann::json& object, std::initializer_list<const char*> names,
                               const JsonPlace& place) {
  for (const char* name : names) {
    if (const auto found = object.find(name); found != object.end()) return *found;
  }
  std::string wanted;
  for (const char* name : names) wanted += std::string(wanted.empty() ? "\"" : " or \"") + name + "\"";
  throw place.Bad("has no " + wanted, NamesIn(object));
}

std::string TextMemberOf(const nlohmann::json& object, std::initializer_list<const char*> names,
                         const JsonPlace& place) {
  const nlohmann::json& member = MemberOf(object, names, place);
  if (!member.is_string()) throw place.Bad(std::string("its ") + *names.begin() + " is not a string");
  return member.get<std::string>();
}

}  // namespace trainwright

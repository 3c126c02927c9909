#include "lib/tok/folder_json.h"

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

using nlohmann::json;

/// Nothing of what is no object.
json ObjectOf(json value) {
  if (!value.is_object()) return json::object();
  return value;
}

}  // namespace

json ObjectOfTokenizerJson(std::string_view content) {
  const auto skip_model = [](int depth, json::parse_event_t event, const json& value) {
    return !(depth == 1 && event == json::parse_event_t::key && value == "model");
  };
  if (IsNestedTooDeep(content)) return json::object();
  return ObjectOf(json::parse(content, skip_model, /*allow_exceptions=*/false));
}

json ObjectOfFolder(const std::string& folder, const std::string& name) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return json::object();
  const std::vector<uint8_t> content = ReadWholeFile(path.string(), kMostBytes);
  if (name == kTokenizerJsonFile) return ObjectOfTokenizerJson(AsText(content));
  return ObjectOf(JsonOf(AsText(content)));
}

json WithSpecialTokensMap(const std::string& folder, json config) {
  if (!config.contains("added_tokens_decoder")) config.update(ObjectOfFolder(folder, kSpecialTokensMapFile));
  return config;
}

std::string HowToWriteTokenizerJson(const std::string& folder) {
  const std::string quoted = "'" + folder + "'";
  return "let transformers write it a tokenizer.json: AutoTokenizer.from_pretrained(" + quoted +
         ").save_pretrained(" + quoted + ")";
}

std::string TextOfToken(const json& token) {
  if (token.is_object()) return TextOfToken(token.value("content", json()));
  return token.is_string() ? token.get<std::string>() : "";
}

}  // namespace trainwright

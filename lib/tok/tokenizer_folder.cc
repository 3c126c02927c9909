#include "lib/tok/tokenizer_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lib/base/bytes.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"

namespace trainwright {

std::string TokenizerOfFolder(const std::string& folder) {
  namespace fs = std::filesystem;
  constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
  std::error_code ignored;
  const auto path = [&](const char* name) {
    const fs::path file = fs::path(folder) / name;
    return fs::exists(file, ignored) ? file.string() : "";
  };
  if (const std::string model = path("tokenizer.model"); !model.empty()) return model;
  if (const std::string config = path("tokenizer_config.json"); !config.empty()) {
    const auto object = JsonOf(AsText(ReadWholeFile(config, kMaxConfigBytes)));
    if (object.is_object() && object.value(kTokenizerKindField, nlohmann::json()) == "bytes") return "bytes";
  }
  const std::string json = path("tokenizer.json");
  return json.empty() ? path("tokenizer.tiktoken") : json;
}

std::string TokenizerFileOf(const std::string& name) {
  std::error_code ignored;
  const std::string file = std::filesystem::is_directory(name, ignored) ? TokenizerOfFolder(name) : name;
  return file == "bytes" ? "" : file;
}

}  // namespace trainwright

#include "lib/tok/tokenizer_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/io/byte_source.h"
#include "lib/tok/folder_added_tokens.h"
#include "lib/tok/folder_json.h"

namespace trainwright {
namespace {

/// \param path of a folder's tokenizer.json; empty: it has none
/// \returns the path
/// \throws Error{kBadInput} where the file lacks one of the tokens
std::string TokenizerJsonWith(const AddedTokens& tokens, const std::string& folder, const std::string& path) {
  constexpr uint64_t kMaxTokenizerBytes = uint64_t{1} << 30;
  if (!path.empty()) {
    const AddedTokens added = AddedTokensOfJson(AsText(ReadWholeFile(path, kMaxTokenizerBytes)));
    if (std::includes(added.begin(), added.end(), tokens.begin(), tokens.end())) return path;
  }
  const std::string quoted = "'" + folder + "'";
  throw Error(ErrorCode::kBadInput, folder,
              "its tokenizer.model lacks tokens that the folder adds: " + DescribeAddedTokens(tokens) +
                  (path.empty() ? ", and there is no tokenizer.json" : ", and so does its tokenizer.json"),
              "",
              "let transformers write it a tokenizer.json: AutoTokenizer.from_pretrained(" + quoted +
                  ").save_pretrained(" + quoted +
                  "); texts that have none of them the file tokenizer.model encodes");
}

}  // namespace

std::string TokenizerOfFolder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto path = [&](const char* name) {
    const fs::path file = fs::path(folder) / name;
    return fs::exists(file, ignored) ? file.string() : "";
  };
  if (const std::string model = path("tokenizer.model"); !model.empty()) {
    const AddedTokens lacking = TokensLackingInModel(folder);
    return lacking.empty() ? model : TokenizerJsonWith(lacking, folder, path(kTokenizerJsonFile));
  }
  const auto config = ObjectOfFolder(folder, kTokenizerConfigFile);
  if (config.value(kTokenizerKindField, nlohmann::json()) == "bytes") return "bytes";
  const std::string json = path(kTokenizerJsonFile);
  return json.empty() ? path("tokenizer.tiktoken") : json;
}

std::optional<StartMarks> StartMarksOfFolder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(fs::path(folder) / name, ignored); };
  if (!has("tokenizer.model") || has(kTokenizerJsonFile)) return std::nullopt;
  const auto config = ObjectOfFolder(folder, kTokenizerConfigFile);
  const auto kind = config.value("tokenizer_class", nlohmann::json());
  if (kind != "LlamaTokenizer" && kind != "LlamaTokenizerFast") return std::nullopt;
  if (config.value("add_prefix_space", nlohmann::json()) == false) return StartMarks::kNone;
  const auto legacy = config.value("legacy", nlohmann::json());
  if (!legacy.is_boolean()) return StartMarks::kBehindBos;
  return legacy == true ? StartMarks::kBehindSpecials : StartMarks::kFirst;
}

std::string TokenizerFileOf(const std::string& name) {
  std::error_code ignored;
  const std::string file = std::filesystem::is_directory(name, ignored) ? TokenizerOfFolder(name) : name;
  return file == "bytes" ? "" : file;
}

}  // namespace trainwright

#include "lib/tok/tokenizer_folder.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/io/byte_source.h"
#include "lib/tok/folder_added_tokens.h"
#include "lib/tok/folder_json.h"

namespace trainwright {
namespace {

using nlohmann::json;

/// Models whose tokenizer.json transformers 5 takes as it is, also where the tokenizer's class is Llama's.
/// \source transformers 5.24, models/auto/tokenization_auto.py: registered as TokenizersBackend
constexpr std::string_view kTakenAsTheyAre[] = {
    "arctic",           "aria",           "fuyu",      "granite",   "granitemoe", "granitemoehybrid",
    "granitemoeshared", "h2ovl_chat",     "internlm2", "internlm3", "jamba",      "llava",
    "llava_next",       "minicpm3",       "minicpmv",  "ministral", "ministral3", "mistral",
    "mistral3",         "mistral_large4", "mixtral",   "molmo",     "nemotron",   "openvla",
    "persimmon",        "phi3",           "phi3_v",    "phimoe",    "stablelm",   "vipllava"};

/// Transformers 5 takes such a tokenizer.json as it is.
bool IsByteLevel(const json& tokenizer) {
  for (const char* const member : {"pre_tokenizer", "decoder"}) {
    const json step = tokenizer.value(member, json());
    if (step.dump().find(R"("type":"ByteLevel")") != std::string::npos) return true;
  }
  return false;
}

/// A step of a tokenizer.json and, of a sequence of them, its steps, those that are objects.
std::vector<json> StepsOf(const json& step, const char* sequence) {
  if (!step.is_object()) return {};
  const json steps = step.value(sequence, json());
  if (!steps.is_array()) return {step};
  std::vector<json> all;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(all),
               [](const json& each) { return each.is_object(); });
  return all;
}

/// Special tokens are looked for before texts are normalized, so that the text behind one is normalized by
/// itself.
bool FindsSpecialsFirst(const json& tokenizer) {
  for (const json& token : tokenizer.value("added_tokens", json::array())) {
    if (token.is_object() && token.value("special", json()) == true &&
        token.value("normalized", json()) == true)
      return false;
  }
  return true;
}

/// As a tokenizer.json marks texts, whatever makes its ids.
std::optional<StartMarks> StartMarksOfJson(const json& tokenizer) {
  const auto is = [](const json& step, const char* type) { return step.value("type", json()) == type; };
  for (const json& step : StepsOf(tokenizer.value("normalizer", json()), "normalizers")) {
    if (is(step, "Prepend") && step.value("prepend", json()) == "\u2581" && FindsSpecialsFirst(tokenizer))
      return StartMarks::kBehindSpecials;
  }
  for (const json& step : StepsOf(tokenizer.value("pre_tokenizer", json()), "pretokenizers")) {
    if (!is(step, "Metaspace")) continue;
    const bool is_off = step.value("add_prefix_space", json()) == false;  // of files from before the schemes
    const json scheme = step.value("prepend_scheme", json(is_off ? "never" : "always"));
    if (scheme == "always") return StartMarks::kBehindSpecials;
    if (scheme == "first") return StartMarks::kFirst;
    if (scheme == "never") return StartMarks::kNone;
  }
  return std::nullopt;
}

/// Whether it is Llama's by its name.
bool IsLlamaTokenizer(const json& config) {
  const json kind = config.value("tokenizer_class", json());
  return kind == "LlamaTokenizer" || kind == "LlamaTokenizerFast";
}

/// Whether transformers 5 takes nothing but the vocabulary from the folder's tokenizer.json.
bool IsMadeAnew(const std::string& folder, const json& config) {
  if (!IsLlamaTokenizer(config)) return false;
  const std::string model_type =
      TextOfToken(ObjectOfFolder(folder, "config.json").value("model_type", json()));
  return std::find(std::begin(kTakenAsTheyAre), std::end(kTakenAsTheyAre), model_type) ==
         std::end(kTakenAsTheyAre);
}

/// \param path of a folder's tokenizer.json; empty: it has none
/// \returns the path
/// \throws Error{kBadInput} where the file lacks one of the tokens
std::string TokenizerJsonWith(const AddedTokens& tokens, const std::string& folder, const std::string& path) {
  constexpr uint64_t kMaxTokenizerBytes = uint64_t{1} << 30;
  if (!path.empty()) {
    const AddedTokens added = AddedTokensOfJson(AsText(ReadWholeFile(path, kMaxTokenizerBytes)));
    if (std::includes(added.begin(), added.end(), tokens.begin(), tokens.end())) return path;
  }
  throw Error(
      ErrorCode::kBadInput, folder,
      "its tokenizer.model lacks tokens that the folder adds: " + DescribeAddedTokens(tokens) +
          (path.empty() ? ", and there is no tokenizer.json" : ", and so does its tokenizer.json"),
      "",
      HowToWriteTokenizerJson(folder) + "; texts that have none of them the file tokenizer.model encodes");
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
  if (config.value(kTokenizerKindField, json()) == "bytes") return "bytes";
  const std::string tokenizer_json = path(kTokenizerJsonFile);
  return tokenizer_json.empty() ? path("tokenizer.tiktoken") : tokenizer_json;
}

std::optional<StartMarks> StartMarksOfFolder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(fs::path(folder) / name, ignored); };
  if (!has("tokenizer.model")) return std::nullopt;
  const json config = ObjectOfFolder(folder, kTokenizerConfigFile);
  std::optional<StartMarks> of_json;
  if (has(kTokenizerJsonFile)) {
    if (!TokensLackingInModel(folder).empty()) return std::nullopt;
    const json tokenizer = ObjectOfFolder(folder, kTokenizerJsonFile);
    of_json = StartMarksOfJson(tokenizer);
    if (tokenizer.empty() || IsByteLevel(tokenizer) || !IsMadeAnew(folder, config)) return of_json;
  }
  if (!IsLlamaTokenizer(config)) return std::nullopt;
  if (config.value("add_prefix_space", json()) == false) return StartMarks::kNone;
  const json legacy = config.value("legacy", json());
  if (!legacy.is_boolean()) {
    return of_json == StartMarks::kFirst ? StartMarks::kFirst : StartMarks::kBehindBos;
  }
  return legacy == true ? StartMarks::kBehindSpecials : StartMarks::kFirst;
}

bool LeavesOutStartMark(const std::string& folder) {
  const json config = ObjectOfFolder(folder, kTokenizerConfigFile);
  const bool is_asked = config.value("add_prefix_space", json()) == false;
  if (!is_asked || config.value(kTokenizerKindField, json()) == "sentencepiece") return false;
  std::error_code ignored;
  const bool has_json = std::filesystem::exists(std::filesystem::path(folder) / kTokenizerJsonFile, ignored);
  return has_json ? IsMadeAnew(folder, config) : IsLlamaTokenizer(config);
}

std::string TokenizerFileOf(const std::string& name) {
  std::error_code ignored;
  const std::string file = std::filesystem::is_directory(name, ignored) ? TokenizerOfFolder(name) : name;
  return file == "bytes" ? "" : file;
}

}  // namespace trainwright

#include "lib/tok/folder_special_tokens.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"
#include "lib/tok/folder_json.h"

namespace trainwright {
namespace {

using nlohmann::json;

/// What a class of transformers takes where nothing is named; empty: there is none.
struct TokenizerClass {
  std::string_view name;  // without the "Fast" at its end
  std::string_view bos, eos, pad, unk;
};

constexpr std::string_view kEndOfText = "<|endoftext|>";

/// \source transformers 4.57 and 5.23, models/*/tokenization_*.py. GPT-NeoX has padding in the latter alone:
/// here it has none.
constexpr TokenizerClass kClasses[] = {
    {"GPT2Tokenizer", kEndOfText, kEndOfText, "", kEndOfText},
    {"GPTNeoXTokenizer", kEndOfText, kEndOfText, "", kEndOfText},
    {"CodeGenTokenizer", kEndOfText, kEndOfText, "", kEndOfText},
    {"Qwen2Tokenizer", "", kEndOfText, kEndOfText, kEndOfText},
    {"LlamaTokenizer", "<s>", "</s>", "", "<unk>"},
    {"GemmaTokenizer", "<bos>", "<eos>", "<pad>", "<unk>"},
    {"RobertaTokenizer", "<s>", "</s>", "<pad>", "<unk>"},
    {"XLMRobertaTokenizer", "<s>", "</s>", "<pad>", "<unk>"},
    {"T5Tokenizer", "", "</s>", "<pad>", "<unk>"},
    {"BertTokenizer", "", "", "[PAD]", "[UNK]"},
    {"DistilBertTokenizer", "", "", "[PAD]", "[UNK]"},
    {"PreTrainedTokenizer", "", "", "", ""},
    {"TokenizersBackend", "", "", "", ""},
};

/// By the model_type of config.json: folders of these models may name no class.
constexpr std::pair<std::string_view, std::string_view> kClassesOfModels[] = {
    {"gpt2", "GPT2Tokenizer"},       {"gpt_neox", "GPTNeoXTokenizer"},       {"qwen2", "Qwen2Tokenizer"},
    {"roberta", "RobertaTokenizer"}, {"xlm-roberta", "XLMRobertaTokenizer"}, {"t5", "T5Tokenizer"},
    {"bert", "BertTokenizer"},       {"distilbert", "DistilBertTokenizer"},
};

/// Null where the folder has no tokenizer_config.json.
json TokenizerConfigOf(const std::string& folder) {
  constexpr uint64_t kMostBytes = uint64_t{16} << 20;
  const std::filesystem::path path = std::filesystem::path(folder) / kTokenizerConfigFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return nullptr;
  const std::vector<uint8_t> content = ReadWholeFile(path.string(), kMostBytes);
  json config = JsonOf(AsText(content));
  if (!config.is_object()) throw Error(ErrorCode::kBadInput, path.string(), "is not a JSON object");
  return config;
}

std::string TextOfMember(const json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

std::string ClassNameOf(const std::string& folder, const json& config) {
  if (std::string name = TextOfMember(config, "tokenizer_class"); !name.empty()) return name;
  const json model = ObjectOfFolder(folder, "config.json");
  if (std::string name = TextOfMember(model, "tokenizer_class"); !name.empty()) return name;
  const std::string model_type = TextOfMember(model, "model_type");
  const auto known = std::find_if(std::begin(kClassesOfModels), std::end(kClassesOfModels),
                                  [&](const auto& of_model) { return of_model.first == model_type; });
  return known == std::end(kClassesOfModels) ? "" : std::string(known->second);
}

/// Null where it is unknown.
const TokenizerClass* ClassOf(const std::string& folder, const json& config) {
  const std::string full_name = ClassNameOf(folder, config);
  std::string_view name = full_name;
  if (name.ends_with("Fast")) name.remove_suffix(4);
  const auto known = std::find_if(std::begin(kClasses), std::end(kClasses),
                                  [&](const TokenizerClass& each) { return each.name == name; });
  return known == std::end(kClasses) ? nullptr : &*known;
}

}  // namespace

FolderSpecialTokens SpecialTokensOfFolder(const std::string& folder) {
  const json config = TokenizerConfigOf(folder);
  const TokenizerClass* usual = config.is_null() ? nullptr : ClassOf(folder, config);
  const json named = WithSpecialTokensMap(folder, config.is_null() ? json::object() : config);
  const auto token = [&](const char* key,
                         std::string_view TokenizerClass::*of_class) -> std::optional<std::string> {
    if (const auto member = named.find(key); member != named.end()) return TextOfToken(*member);
    if (usual == nullptr) return std::nullopt;
    return std::string(usual->*of_class);
  };
  return {.bos = token("bos_token", &TokenizerClass::bos),
          .eos = token("eos_token", &TokenizerClass::eos),
          .pad = token("pad_token", &TokenizerClass::pad),
          .unk = token("unk_token", &TokenizerClass::unk)};
}

}  // namespace trainwright

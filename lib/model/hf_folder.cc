#include "lib/model/hf_folder.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "lib/base/error.h"
#include "lib/io/byte_source.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/generation_config.h"
#include "lib/spec/config_json.h"
#include "lib/tok/folder_added_tokens.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/tokenizer_folder.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;

void WriteText(const std::string& path, const std::string& text) {
  WriteFileAtomically(path, AsBytes(text));
}

std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 0x3F))};
}

/// A byte-level BPE without merges, whose ids are those of our bytes tokenizer.
/// \source the byte-to-character table of GPT-2's encoder, which tokenizers' ByteLevel uses
std::string BytesTokenizerJson(const TokenizerIdentity& tokenizer) {
  ordered_json vocabulary = ordered_json::object();
  uint32_t shifted = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    vocabulary[Utf8(printable ? byte : shifted++)] = byte;
  }
  const auto special = [](uint32_t id, const char* content) {
    return ordered_json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                        {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  const ordered_json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  ordered_json out;
  out["version"] = "1.0";
  out["truncation"] = nullptr;
  out["padding"] = nullptr;
  out["added_tokens"] = {special(tokenizer.bos_id, "<s>"), special(tokenizer.eos_id, "</s>")};
  out["normalizer"] = nullptr;
  out["pre_tokenizer"] = byte_level;
  out["post_processor"] = nullptr;
  out["decoder"] = byte_level;
  vocabulary["<s>"] = tokenizer.bos_id;
  vocabulary["</s>"] = tokenizer.eos_id;
  out["model"] = {{"type", "BPE"},
                  {"dropout", nullptr},
                  {"unk_token", nullptr},
                  {"continuing_subword_prefix", nullptr},
                  {"end_of_word_suffix", nullptr},
                  {"fuse_unk", false},
                  {"byte_fallback", false},
                  {"vocab", vocabulary},
                  {"merges", ordered_json::array()}};
  return out.dump(1) + "\n";
}

/// Nothing of another kind, or of one that cannot be read.
std::optional<SentencePieceModel> SentencePieceModelOf(const TokenizerIdentity& tokenizer) {
  SentencePieceModel model;
  std::string problem;
  if (tokenizer.kind != "sentencepiece") return std::nullopt;
  if (!ParseSentencePieceModel(tokenizer.model, &model, &problem)) return std::nullopt;
  return model;
}

/// How the tokenizer's model writes its special tokens; none of one that does not say.
/// \param pieces SentencePieceModelOf the tokenizer
AddedTokens SpecialTokensOf(const TokenizerIdentity& tokenizer,
                            const std::optional<SentencePieceModel>& pieces) {
  if (tokenizer.kind == "tokenizer_json") return AddedTokensOfJson(tokenizer.model);
  AddedTokens written;
  if (!pieces) return written;
  for (const uint32_t id : {tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id, tokenizer.unk_id}) {
    if (id < pieces->pieces.size()) written[id] = pieces->pieces[id].text;
  }
  return written;
}

std::string TokenizerConfig(const TokenizerIdentity& tokenizer, const ModelConfig& config) {
  const bool is_json = tokenizer.kind == "tokenizer_json";
  const std::optional<SentencePieceModel> pieces = SentencePieceModelOf(tokenizer);
  const AddedTokens written = SpecialTokensOf(tokenizer, pieces);
  ordered_json out;
  const auto name = [&](const char* key, uint32_t id, const char* usual) {
    if (id == kNoId) return;
    if (tokenizer.kind == "tiktoken") {
      out[key] = "<|endoftext|>";  // begins and ends texts in all that are known
    } else if (const auto token = written.find(id); token != written.end()) {
      out[key] = token->second;
    } else if (!is_json) {
      out[key] = usual;
    }
  };
  out["add_bos_token"] = false;
  out["add_eos_token"] = false;
  // Texts begin without a mark: transformers' class does not go by the model.
  if (pieces && !pieces->add_dummy_prefix) out["add_prefix_space"] = false;
  name("bos_token", tokenizer.bos_id, "<s>");
  out["clean_up_tokenization_spaces"] = false;
  name("eos_token", tokenizer.eos_id, "</s>");
  out["legacy"] = false;
  // Without it transformers 4 makes token_type_ids, too, which GPT-2 embeds and others refuse.
  out["model_input_names"] = ordered_json::array({"input_ids", "attention_mask"});
  out["model_max_length"] = config.max_positions;
  if (is_json) {
    name("pad_token", tokenizer.pad_id, "");
    out["tokenizer_class"] = "PreTrainedTokenizerFast";
    name("unk_token", tokenizer.unk_id, "");
  } else if (tokenizer.kind == "bytes") {
    out["tokenizer_class"] = "PreTrainedTokenizerFast";
    out[kTokenizerKindField] = tokenizer.kind;
  } else if (tokenizer.kind != "tiktoken") {
    name("pad_token", tokenizer.pad_id, "<pad>");
    out["tokenizer_class"] = "LlamaTokenizer";
    name("unk_token", tokenizer.unk_id, "<unk>");
  }
  return out.dump(2) + "\n";
}

}  // namespace

void WriteHfFolder(const std::string& folder, const LanguageModel& model, const TokenizerIdentity& tokenizer,
                   const WeightsOutput& weights, const ordered_json& generation_before) {
  WriteText(folder + "/config.json", EncodeConfigJson(model.config()));
  WriteText(folder + "/" + kGenerationConfigFileName,
            EncodeGenerationConfig(model.config(), generation_before));
  AtomicFileSink weights_file(folder + "/model.safetensors");
  SaveWeights(model.parameters(), &weights_file, weights);
  weights_file.Commit();
  WriteProjection(folder, model.parameters(), weights);
  for (const auto& [name, text] : model.code()) WriteFileAtomically(folder + "/" + name, AsBytes(text));
  // Of an unknown tokenizer, or one whose model is lost, there is nothing to write.
  if (tokenizer.model.empty() && tokenizer.kind != "bytes") return;
  if (tokenizer.kind == "bytes") {
    WriteText(folder + "/tokenizer.json", BytesTokenizerJson(tokenizer));
  } else if (tokenizer.kind == "tokenizer_json") {
    WriteText(folder + "/tokenizer.json", tokenizer.model);
  } else if (tokenizer.kind == "tiktoken") {
    WriteText(folder + "/tokenizer.tiktoken", tokenizer.model);
  } else {
    WriteText(folder + "/tokenizer.model", tokenizer.model);
  }
  WriteText(folder + "/tokenizer_config.json", TokenizerConfig(tokenizer, model.config()));
}

ModelConfig ReadHfConfig(const FamilyList& families, const std::string& folder) {
  const std::string path = folder + "/config.json";
  const std::vector<uint8_t> text = ReadWholeFile(path, 1 << 24);
  return DecodeConfigJson(families, std::string(AsText(text)), path);
}

std::unique_ptr<LanguageModel> LoadHfModel(const ModelFamilies& families, const std::string& folder,
                                           Precision precision, at::Device device, const ComputeKinds& kinds,
                                           const std::optional<EmbeddingTuning>& embedding,
                                           WeightFormat format, const ParameterRules& rules) {
  FineTuning tuning;
  tuning.frozen_format = format;
  tuning.embedding = embedding ? embedding : EmbeddingTuningOf(folder);
  tuning.rules = rules;
  std::unique_ptr<LanguageModel> model = MakeModel(families, ReadHfConfig(families.descriptions(), folder),
                                                   precision, device, std::nullopt, kinds, tuning);
  model->parameters().set_reads_quantized(format != WeightFormat::kPlain);
  LoadWeights(folder, &model->parameters());
  LoadProjection(folder, &model->parameters());
  return model;
}

}  // namespace trainwright

#include "lib/embedding/embedding_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/documents/chat_template.h"
#include "lib/embedding/python_files.h"
#include "lib/embedding/similarity.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/embedding_projection.h"
#include "lib/spec/config_json.h"
#include "lib/spec/model_files.h"
#include "lib/tok/folder_text_marks.h"

namespace trainwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr char kModelingModule[] = "modeling_trainwright_bidirectional";
constexpr char kPoolingModule[] = "trainwright_pooling";
constexpr char kPoolingFolder[] = "1_Pooling";
constexpr char kTokenizerConfig[] = "tokenizer_config.json";
constexpr uint64_t kMostConfigBytes = 1 << 24;

void WriteJson(const std::string& folder, const std::string& name, const ordered_json& value) {
  WriteFileAtomically(folder + "/" + name, AsBytes(value.dump(2) + "\n"));
}

/// A JSON object of the folder; null where there is none.
ordered_json ReadObject(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (!std::filesystem::exists(path)) return nullptr;
  const std::vector<uint8_t> text = ReadWholeFile(path, kMostConfigBytes);
  ordered_json object = OrderedJsonOf(AsText(text));
  return object.is_object() ? object : ordered_json(nullptr);
}

std::string TextOf(const ordered_json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// What sentence-transformers writes before a text.
struct Prompt {
  std::string text;
  bool is_pooled = false;   ///< with the text; of an empty one whether instructions are
  bool spells_bos = false;  ///< which the tokenizer does not put there by itself
};

/// What stands before a text without an instruction, in the marks of the tokenizer.
/// \param begins whether the tokenizer puts the mark of the beginning there by itself
Prompt PromptOf(const std::string& template_text, Pooling pooling, const ordered_json& tokenizer,
                bool begins) {
  Prompt prompt;
  if (template_text.empty()) return prompt;
  const bool has_blank = pooling == Pooling::kLastToken;  // the same is pooled with it
  const ChatTemplate chat_template = ParseChatTemplate(template_text, "of embedding.json");
  for (const TemplatePart part : {TemplatePart::kBegin, TemplatePart::kNoInstruction, TemplatePart::kText}) {
    for (const TemplateItem& item : chat_template.part(part)) {
      if (item.kind == TemplateItem::Kind::kSpacedContent)
        prompt.text += prompt.is_pooled || has_blank ? " " : "";
      if (item.kind == TemplateItem::Kind::kContent || item.kind == TemplateItem::Kind::kSpacedContent) break;
      if (item.loss && !prompt.is_pooled && !prompt.text.empty()) break;  // one is pooled as a whole or not
      std::string written = item.literal;
      if (item.kind == TemplateItem::Kind::kBos) written = begins ? "" : TextOf(tokenizer, "bos_token");
      if (item.kind == TemplateItem::Kind::kEos) written = TextOf(tokenizer, "eos_token");
      prompt.is_pooled |= item.loss && !written.empty();
      prompt.spells_bos |= item.kind == TemplateItem::Kind::kBos && !written.empty();
      prompt.text += written;
    }
  }
  if (prompt.text.empty()) prompt.is_pooled = chat_template.pools_instruction();
  return prompt;
}

/// Texts of unlike lengths are padded, and cut, behind their tokens, so that the first is at position 0: some
/// of transformers' tokenizers would pad before them. The models here know no token types.
void WriteTokenizerConfig(const std::string& folder, ordered_json tokenizer, const Prompt& prompt) {
  if (tokenizer.is_null()) return;
  for (const char* name : {"bos_token", "eos_token", "unk_token"}) {
    if (!TextOf(tokenizer, "pad_token").empty()) break;
    const std::string mark = TextOf(tokenizer, name);
    if (!mark.empty()) tokenizer["pad_token"] = mark;
  }
  // A text behind {bos} begins as a text alone does: the older of two ways of SentencePiece in transformers,
  // which are one where no prompt spells it. Then conversations are marked as the folder had it.
  const bool is_llama = TextOf(tokenizer, "tokenizer_class") == "LlamaTokenizer";
  if (is_llama && prompt.spells_bos) tokenizer["legacy"] = true;
  tokenizer["padding_side"] = "right";
  tokenizer["truncation_side"] = "right";
  tokenizer["model_input_names"] = {"input_ids", "attention_mask"};
  WriteJson(folder, kTokenizerConfig, tokenizer);
}

/// The library's own weightedmean counts the prompt's tokens, also where they are left out.
bool NeedsOwnPooling(const EmbeddingSpec& spec, const Prompt& prompt) {
  return spec.pooling == Pooling::kWeightedMean && !prompt.text.empty() && !prompt.is_pooled;
}

void WritePooling(const std::string& folder, int64_t width, const EmbeddingSpec& spec, const Prompt& prompt) {
  const std::string own_folder = folder + "/" + kPoolingFolder;
  std::error_code error;
  std::filesystem::create_directories(own_folder, error);
  if (error) throw SystemError(own_folder, "create the folder", error.value());
  ordered_json config;
  config["word_embedding_dimension"] = width;
  if (NeedsOwnPooling(spec, prompt)) {
    WriteFileAtomically(folder + "/" + kPoolingModule + ".py", AsBytes(kTrainwrightPoolingText));
  } else {
    config["pooling_mode_cls_token"] = spec.pooling == Pooling::kCls;
    config["pooling_mode_mean_tokens"] = spec.pooling == Pooling::kMean;
    config["pooling_mode_max_tokens"] = false;
    config["pooling_mode_mean_sqrt_len_tokens"] = false;
    config["pooling_mode_weightedmean_tokens"] = spec.pooling == Pooling::kWeightedMean;
    config["pooling_mode_lasttoken"] = spec.pooling == Pooling::kLastToken;
    // The library's cls is the first token that it pools: with the prompt left out, none that GRIT means.
    config["include_prompt"] = spec.pooling == Pooling::kCls || prompt.is_pooled;
  }
  WriteJson(own_folder, kConfigFileName, config);
}

ordered_json Modules(const EmbeddingSpec& spec, const Prompt& prompt) {
  const std::string library = "sentence_transformers.models.";
  ordered_json modules = ordered_json::array();
  const auto add = [&](const std::string& path, const std::string& type) {
    const size_t index = modules.size();
    modules.push_back({{"idx", index}, {"name", std::to_string(index)}, {"path", path}, {"type", type}});
  };
  add("", library + "Transformer");
  add(kPoolingFolder, NeedsOwnPooling(spec, prompt)
                          ? std::string(kPoolingModule) + ".WeightedMeanBehindPrompt"
                          : library + "Pooling");
  if (spec.projection > 0) add(kProjectionFolder, library + "Dense");
  if (spec.normalize) add("3_Normalize", library + "Normalize");
  return modules;
}

/// \param prompt the default one
ordered_json SentenceTransformersConfig(Similarity similarity, const std::string& prompt,
                                        const std::string& of_queries, const std::string& of_passages) {
  ordered_json config;
  config["__version__"] = ordered_json::object();
  config["prompts"] = ordered_json::object();
  config["default_prompt_name"] = nullptr;
  config["similarity_fn_name"] = SimilarityName(similarity);
  if (of_queries.empty() && of_passages.empty()) return config;
  config["prompts"] = {{"query", of_queries}, {"document", of_passages}};
  if (prompt.empty()) return config;
  const char* const name = of_passages == prompt ? "document" : "default";
  config["prompts"][name] = prompt;
  config["default_prompt_name"] = name;
  return config;
}

/// The class of modeling_trainwright_bidirectional.py for transformers' class of a model with its head:
/// BidirectionalLlamaModel of LlamaForCausalLM.
std::string BidirectionalClassOf(std::string architecture) {
  for (const std::string_view ending : {"ForCausalLM", "LMHeadModel"}) {
    if (architecture.ends_with(ending)) architecture.resize(architecture.size() - ending.size());
  }
  return "Bidirectional" + architecture + "Model";
}

/// config.json, with the class of the body where it is none of transformers'. By that alone its attention is
/// bidirectional: a head beside it predicts by causal attention.
std::string ConfigText(ModelConfig config, const EmbeddingSpec& spec) {
  config.is_causal = true;
  std::string text = EncodeConfigJson(config);
  if (spec.mask != AttentionMask::kBidirectional) return text;
  json object = json::parse(text);
  const std::string body_class = BidirectionalClassOf(object.at("architectures").at(0).get<std::string>());
  object["auto_map"]["AutoModel"] = std::string(kModelingModule) + "." + body_class;
  return object.dump(2) + "\n";
}

}  // namespace

void WriteEmbeddingSpec(const std::string& folder, const ModelConfig& config, EmbeddingSpec spec) {
  if (spec.dimension == 0) spec.dimension = spec.projection > 0 ? spec.projection : config.hidden_size;
  WriteFileAtomically(folder + "/" + kEmbeddingFileName, AsBytes(EncodeEmbeddingSpec(spec)));
}

void WriteEmbeddingFolder(const std::string& folder, const ModelConfig& config, const EmbeddingSpec& spec) {
  const ordered_json tokenizer = ReadObject(folder, kTokenizerConfig);
  const bool begins = !ReadTextMarks(folder).begin.empty();
  const auto prompt_of = [&](const std::optional<std::string>& text) {
    return PromptOf(text.value_or(spec.template_text), spec.pooling, tokenizer, begins);
  };
  const Prompt prompt = prompt_of(std::nullopt), of_queries = prompt_of(spec.query_template),
               of_passages = prompt_of(spec.passage_template);
  // Files of sentence-transformers, whence prompts of roles are, pool all prompts or none.
  const Prompt& any = !prompt.text.empty() ? prompt : !of_queries.text.empty() ? of_queries : of_passages;
  WriteEmbeddingSpec(folder, config, spec);
  WriteTokenizerConfig(folder, tokenizer, any);
  WritePooling(folder, config.hidden_size, spec, any);
  const int64_t said = std::max(spec.query_max_len, spec.passage_max_len);
  const int64_t longest = said > 0 ? said : config.max_positions;
  WriteJson(folder, "sentence_bert_config.json", {{"max_seq_length", longest}, {"do_lower_case", false}});
  WriteJson(folder, "config_sentence_transformers.json",
            SentenceTransformersConfig(spec.similarity, prompt.text, of_queries.text, of_passages.text));
  WriteJson(folder, "modules.json", Modules(spec, any));
  if (spec.mask == AttentionMask::kBidirectional) {
    WriteFileAtomically(folder + "/" + kModelingModule + ".py",
                        AsBytes(kModelingTrainwrightBidirectionalText));
  }
  WriteFileAtomically(folder + "/" + kConfigFileName, AsBytes(ConfigText(config, spec)));
}

}  // namespace trainwright

#include "lib/embedding/text_embedder.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/nn/precision_option.h"
#include "lib/spec/family.h"
#include "lib/spec/first_token.h"
#include "lib/spec/model_files.h"
#include "lib/spec/weight_format.h"

namespace trainwright {
namespace {

constexpr char kTemplateName[] = "the model's template";  // of messages
/// Of a folder that says nothing: the text, behind its instruction on a line of its own where it has one.
constexpr char kPlainTemplate[] =
    "user {content}\n"
    "assistant [ {content} ]\n"
    "instruction {content} \"\\n\"\n";

/// A setting that the folder does not make, or the one that it makes.
/// \throws Error{kUsage} where they differ
std::string SettingOf(const std::string& flag, const std::string& asked, bool folder_says,
                      const std::string& of_folder, const std::string& initial) {
  if (!folder_says) return asked.empty() ? initial : asked;
  if (asked.empty() || asked == of_folder) return of_folder;
  throw Error(ErrorCode::kUsage, flag, "asks for " + asked + ", and the model was made with " + of_folder, "",
              "leave it out: the model's folder says how it embeds");
}

/// Of the model's folder, or of that of the adapter beside it.
std::optional<EmbeddingSpec> SpecOfFolders(const Checkpoint& checkpoint, const std::string& adapter,
                                           const World& world) {
  for (const std::string& folder : {adapter.empty() ? checkpoint.named : ResolveCheckpoint(adapter),
                                    checkpoint.named, checkpoint.folder}) {
    if (std::optional<EmbeddingSpec> spec = ReadEmbeddingSpec(folder, checkpoint.folder, world)) return spec;
  }
  return std::nullopt;
}

/// What the folder says, or the settings where it says nothing.
/// \param is_causal of config.json: of settings without an attention the one that this asks for
EmbeddingSpec SpecOf(const std::optional<EmbeddingSpec>& found, const EmbeddingSettings& settings,
                     bool is_causal) {
  EmbeddingSpec spec = found.value_or(EmbeddingSpec{});
  const std::string pooling =
      SettingOf("--pooling", settings.pooling, found.has_value(), PoolingName(spec.pooling), "mean");
  const std::optional<Pooling> known = FindPooling(pooling);
  if (!known) throw Error(ErrorCode::kUsage, "--pooling", "'" + pooling + "' is no way of pooling");
  spec.pooling = *known;
  // What letters say of generating makes no other vectors.
  const bool is_same = found && FindEmbeddingMask(settings.attention) == spec.mask;
  spec.attention = SettingOf("--attn", is_same ? "" : settings.attention, found.has_value(), spec.attention,
                             is_causal ? "cccc" : "bb");
  const std::optional<AttentionMask> mask = FindEmbeddingMask(spec.attention);
  if (!mask) throw Error(ErrorCode::kUsage, "--attn", "'" + spec.attention + "' is no code of attention");
  spec.mask = *mask;
  if (!settings.text_template.empty()) {
    spec.template_text = LoadChatTemplate(settings.text_template).text;
    spec.query_template = spec.passage_template = std::nullopt;
  } else if (spec.template_text.empty()) {
    spec.template_text = kPlainTemplate;
  }
  return spec;
}

/// Of a folder that says so itself a warning, since its vectors may be compared with those made elsewhere.
/// \param folder that says how it embeds; empty: none does
/// \throws Error{kUsage} where the settings pool a first token that sees nothing but itself
void CheckFirstToken(const EmbeddingSpec& spec, const FamilyDescription& family, const std::string& folder,
                     const World& world) {
  if (spec.pooling != Pooling::kCls) return;
  const std::string problem = ProblemOfFirstToken(family, spec.attention);
  if (problem.empty()) return;
  if (folder.empty()) throw Error(ErrorCode::kUsage, "--pooling", "cls " + problem);
  if (world.is_writer()) {
    LogWarning(folder + ": pools the first token under causal attention, where it sees nothing but itself: " +
               "texts that begin alike have the same vector");
  }
}

/// Of a config.json that alone asks for it: other programs, whose vectors may be compared, do not read the
/// field.
void WarnOfAttention(const ModelConfig& config, const std::string& folder, const World& world) {
  if (config.is_causal || !world.is_writer()) return;
  LogWarning(folder + "/" + kConfigFileName +
             ": is_causal is false: attention is bidirectional, as transformers 5 computes it; version 4 "
             "ignores the field");
}

/// The longest text of a role, in tokens.
int64_t LimitOf(int64_t asked, int64_t of_role, const ModelConfig& config) {
  const int64_t limit = asked > 0 ? asked : of_role > 0 ? of_role : config.max_positions;
  const int64_t longest = FamilyOf(config).LongestSequence(config);
  if (longest > 0 && limit > longest) {
    throw Error(ErrorCode::kUsage, "--max-length",
                std::to_string(limit) + " tokens are more than the " + std::to_string(longest) +
                    " positions of the model");
  }
  return limit;
}

}  // namespace

EmbeddingSpec ResolveEmbedding(const Checkpoint& checkpoint, const EmbeddingSettings& settings,
                               const World& world) {
  const std::optional<EmbeddingSpec> found = SpecOfFolders(checkpoint, settings.adapter, world);
  const ModelConfig& config = checkpoint.model->config();
  EmbeddingSpec spec = SpecOf(found, settings, config.is_causal);
  const std::string problem = ProblemOfAttention(FamilyOf(config), spec.attention);
  if (!problem.empty()) throw Error(ErrorCode::kUsage, "--attn", problem);
  CheckFirstToken(spec, FamilyOf(config), found ? checkpoint.named : "", world);
  if (!found && settings.attention.empty()) WarnOfAttention(config, checkpoint.folder, world);
  spec.query_max_len = LimitOf(settings.max_length, spec.query_max_len, config);
  spec.passage_max_len = LimitOf(settings.max_length, spec.passage_max_len, config);
  if (settings.one_length) {
    spec.query_max_len = spec.passage_max_len = std::max(spec.query_max_len, spec.passage_max_len);
  }
  spec.dimension = spec.projection > 0 ? spec.projection : config.hidden_size;
  return spec;
}

void WarnOfTexts(const EmbeddedCounts& counts) {
  if (counts.texts_cut > 0) {
    LogWarning("the longest length cut off the end of " + FormatNumberOf(counts.texts_cut, "text"));
    LogHint("--max-length takes more tokens of a text", LogLevel::kWarning);
  }
  if (counts.texts_empty > 0) {
    LogWarning("zeros stand for " + FormatNumberOf(counts.texts_empty, "text") + " without a token");
  }
}

TextRole ParseRole(const std::string& name) {
  if (name == "query") return TextRole::kQuery;
  if (name == "passage") return TextRole::kPositive;
  throw Error(ErrorCode::kUsage, "--role", "'" + name + "' is neither query nor passage");
}

TextEmbedder::TextEmbedder(const ModelFamilies& families, const EmbeddingSettings& settings,
                           const ProcessSetup& process, World* world)
    : precision_(ParsePrecision(settings.mixed_precision, process.device)) {
  checkpoint_ =
      LoadCheckpoint(families, settings.checkpoint, precision_, process.device,
                     ParseAttentionBackend(settings.attn_backend, "--attn-backend"), settings.adapter,
                     settings.allow_other_base, WeightFormat::kPlain, /*embeds=*/true);
  if (checkpoint_.tokenizer == nullptr) {
    throw Error(ErrorCode::kBadInput, checkpoint_.folder, checkpoint_.tokenizer_problem, "",
                "put its tokenizer.model or tokenizer.json there");
  }
  spec_ = ResolveEmbedding(checkpoint_, settings, *world);
  limits_ = {static_cast<uint64_t>(spec_.query_max_len), static_cast<uint64_t>(spec_.passage_max_len)};
  template_.emplace(ParseChatTemplate(spec_.template_text, kTemplateName), checkpoint_.tokenizer.get());
  const auto set_up = [&](const std::optional<std::string>& text, std::optional<ChatEncoder>* encoder) {
    if (text) encoder->emplace(ParseChatTemplate(*text, kTemplateName), checkpoint_.tokenizer.get());
  };
  set_up(spec_.query_template, &query_template_);
  set_up(spec_.passage_template, &passage_template_);
  encoder_ = std::make_unique<TextEncoder>(checkpoint_.model.get(), spec_,
                                           EncoderOptions{.tokens_per_pass = settings.batch_tokens,
                                                          .batch_invariant = settings.batch_invariant,
                                                          .truncate_dim = settings.truncate_dim,
                                                          .world = world});
}

void TextEmbedder::LeaveOutRolePrompts() {
  spec_.query_template = spec_.passage_template = std::nullopt;
  query_template_.reset();
  passage_template_.reset();
}

const ChatEncoder& TextEmbedder::TemplateOf(const InstructedText& text) const {
  const std::optional<ChatEncoder>& of_role =
      text.role == TextRole::kQuery ? query_template_ : passage_template_;
  return text.instruction.empty() && of_role ? *of_role : *template_;
}

TokenizedText TextEmbedder::Tokenize(const InstructedText& text, const JsonPlace& place) {
  if (!text.instruction.empty() && !template_->chat_template().has_instruction()) {
    throw place.Bad("has an instruction, for which the template has no place",
                    "leave it out, or give a --template with a line \"instruction\"");
  }
  one_text_.texts = {text};
  ContrastiveEncoder::Fit fit = ContrastiveEncoder::Fit::kFits;
  const ContrastiveEncoder encoder(&TemplateOf(text), limits_, TextCut::kAsTokenizers);
  const bool is_empty = encoder.Encode(one_text_, &encoded_, &fit).has_value();
  ++counts_.texts;
  if (fit != ContrastiveEncoder::Fit::kFits) {
    throw place.Bad("its instruction leaves the text no token of the " +
                        std::to_string(limits_.of(text.role)) + " that it may have",
                    "shorten the instruction, or give --max-length");
  }
  counts_.texts_empty += is_empty ? 1 : 0;
  if (is_empty) return {};
  counts_.texts_cut += encoded_.texts_cut;
  const uint64_t pooled = encoded_.runs.back().tokens;
  TokenizedText tokenized;
  tokenized.instruction_tokens = static_cast<uint32_t>(encoded_.ids.size() - pooled);
  tokenized.ids = std::move(encoded_.ids);
  return tokenized;
}

at::Tensor TextEmbedder::Embed(std::span<const TokenizedText> texts) {
  std::vector<EncodedText> with_tokens;
  std::vector<int64_t> rows;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].ids.empty()) continue;
    with_tokens.push_back({texts[i].ids, texts[i].instruction_tokens});
    rows.push_back(static_cast<int64_t>(i));
  }
  at::Tensor vectors = at::zeros({static_cast<int64_t>(texts.size()), columns()}, at::kFloat);
  if (rows.empty()) return vectors;
  const at::Tensor found = encoder_->Encode(with_tokens).cpu().contiguous();
  if (rows.size() == texts.size()) return found;
  for (size_t i = 0; i < rows.size(); ++i) vectors[rows[i]].copy_(found[static_cast<int64_t>(i)]);
  return vectors;
}

EmbeddedCounts TextEmbedder::counts() const {
  EmbeddedCounts counts = counts_;
  counts.tokens = static_cast<uint64_t>(encoder_->counts().tokens);
  counts.tokens_if_padded = static_cast<uint64_t>(encoder_->counts().tokens_if_padded);
  return counts;
}

nlohmann::ordered_json TextEmbedder::Description() const {
  EmbeddingSpec made = spec_;
  made.dimension = columns();
  return DescribeEmbedding(made);
}

nlohmann::ordered_json TextEmbedder::Maker() const {
  return {{"embedding", Description()},
          {"precision", PrecisionName(precision_)},
          {"checkpoint", checkpoint_.named},
          {"model", checkpoint_.model_identity},
          {"adapter", checkpoint_.adapter_identity}};
}

nlohmann::ordered_json TextEmbedder::CountsAndMaker() const {
  const EmbeddedCounts embedded = counts();
  nlohmann::ordered_json told = {
      {"tokens", embedded.tokens}, {"texts_cut", embedded.texts_cut}, {"texts_empty", embedded.texts_empty}};
  told.update(Maker());
  return told;
}

}  // namespace trainwright

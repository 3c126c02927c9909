/// Texts to vectors by the model of a checkpoint, as its folder says they are written, cut and pooled: they
/// are tokenized here, and a TextEncoder computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/device/process_setup.h"
#include "lib/dist/world.h"
#include "lib/documents/chat_encoder.h"
#include "lib/documents/contrastive_encoder.h"
#include "lib/documents/contrastive_example.h"
#include "lib/documents/json_objects.h"
#include "lib/embedding/embedding_settings.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/embedding/similarity.h"
#include "lib/embedding/text_encoder.h"
#include "lib/model/open_model.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// How a checkpoint makes vectors: as its folder says, or that of the adapter beside it, else as the settings
/// do. Its lengths are those of the longest texts, and its dimension is that of whole vectors. Warns, on the
/// writer, where other programs may make others.
/// \throws Error: kBadInput (the folder's files), kUsage (a setting that the folder contradicts, a length
///     beyond the model's context), kIo
EmbeddingSpec ResolveEmbedding(const Checkpoint& checkpoint, const EmbeddingSettings& settings,
                               const World& world);

/// What was embedded so far.
struct EmbeddedCounts {
  uint64_t texts = 0;
  uint64_t texts_cut = 0;    ///< that lost their end to the longest length
  uint64_t texts_empty = 0;  ///< without a token to pool: their vectors are zeros
  uint64_t tokens = 0;
  uint64_t tokens_if_padded = 0;  ///< what batches of the same texts would hold, padded to their longest
};

/// Warns of texts whose ends were cut off, and of those without a token. To be called on the writer, last.
void WarnOfTexts(const EmbeddedCounts& counts);

/// A text as the model reads it, by itself.
struct TokenizedText {
  std::vector<uint32_t> ids;        ///< instruction and text; none where there is nothing to pool
  uint32_t instruction_tokens = 0;  ///< the first, which are not pooled
};

/// Not thread-safe. All ranks of its world have the same settings and make the same calls.
class TextEmbedder {
 public:
  /// \throws Error: kBadInput (checkpoint, no tokenizer), kUsage (a setting that the folder contradicts, a
  ///     vector shorter than --truncate-dim, a length beyond the model's context), kIo, kDevice
  TextEmbedder(const ModelFamilies& families, const EmbeddingSettings& settings, const ProcessSetup& process,
               World* world);

  TextEmbedder(const TextEmbedder&) = delete;  // parts refer to each other
  TextEmbedder& operator=(const TextEmbedder&) = delete;

  /// From here on a text without an instruction gets the folder's default prompt, and not that which the
  /// folder has for its role.
  void LeaveOutRolePrompts();
  /// The token ids of a text, whose role says how long it may be: that of queries, or that of passages.
  /// \param place of it, for messages
  /// \throws Error{kBadInput} on an instruction that leaves the text no token
  TokenizedText Tokenize(const InstructedText& text, const JsonPlace& place);

  /// A text without a token becomes a row of zeros.
  /// \returns fp32 [n, columns()], on the CPU, contiguous, in the order of the texts; the same on all ranks
  at::Tensor Embed(std::span<const TokenizedText> texts);

  int64_t columns() const { return encoder_->dimension(); }
  /// Whether rows that are not zero have the length 1.
  bool normalized() const { return spec_.normalize; }
  /// By what its vectors are compared.
  Similarity similarity() const { return spec_.similarity; }
  AttentionMask mask() const { return spec_.mask; }
  EmbeddedCounts counts() const;
  const Checkpoint& checkpoint() const { return checkpoint_; }
  Precision precision() const { return precision_; }
  /// DescribeEmbedding of it, with the dimension that is left.
  nlohmann::ordered_json Description() const;
  /// What the vectors are made with, for results: "embedding" (the description), "precision", "checkpoint",
  /// "model" and "adapter".
  nlohmann::ordered_json Maker() const;
  /// The same after what was embedded: "tokens", "texts_cut" and "texts_empty".
  nlohmann::ordered_json CountsAndMaker() const;

 private:
  /// How a text is written.
  const ChatEncoder& TemplateOf(const InstructedText& text) const;

  Precision precision_;
  Checkpoint checkpoint_;
  EmbeddingSpec spec_;
  ContrastiveLimits limits_;
  std::optional<ChatEncoder> template_;
  std::optional<ChatEncoder> query_template_, passage_template_;  // of texts without an instruction
  std::unique_ptr<TextEncoder> encoder_;
  EmbeddedCounts counts_;
  ContrastiveExample one_text_;  // its one text is replaced
  EncodedRecord encoded_;
};

/// A text role as the command line and records name it: "query" or "passage".
/// \throws Error{kUsage} naming --role
TextRole ParseRole(const std::string& name);

}  // namespace trainwright

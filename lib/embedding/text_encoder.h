/// Tokens of texts to vectors with a trained model, on one rank or several. TextEmbedder has the texts.
///
/// Texts of unlike lengths are packed without padding, longest first: a pass holds about as many tokens as it
/// may. Ranks share the passes out, and all get all vectors.
///
/// Shape legend of lib/embedding: T texts, or n rows of a corpus, and q queries; d elements of a vector. Of
/// hidden states, as in lib/model/body.h, N tokens and D hidden size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/dist/world.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/model/language_model.h"
#include "lib/nn/pooling/span_pooling.h"

namespace trainwright {

/// A text as the model reads it.
struct EncodedText {
  std::span<const uint32_t> tokens;  ///< instruction and text
  uint32_t instruction_tokens = 0;   ///< the first, which are not pooled; below tokens.size()
};

struct EncoderOptions {
  /// Of a pass, but for a text that is longer. At least 1.
  int64_t tokens_per_pass = 16384;
  /// One text a pass: its vector has the same bits whatever is encoded beside it, on any number of ranks.
  bool batch_invariant = false;
  /// Elements that are left of a vector, the first; 0: all.
  int64_t truncate_dim = 0;
  /// All ranks of which encode the same texts together; outlives the encoder.
  World* world = Solo();
};

/// Of all ranks together.
struct EncoderCounts {
  int64_t texts = 0, tokens = 0;
  /// What passes of the same texts would compute, each text padded to the longest of its pass.
  int64_t tokens_if_padded = 0;
};

/// Not thread-safe; uses the model's memory.
class TextEncoder {
 public:
  /// \param model outlives this
  /// \throws Error{kUsage} on a size that vectors do not have, or where the spec has a projection and the
  ///     model none
  TextEncoder(LanguageModel* model, const EmbeddingSpec& spec, const EncoderOptions& options = {});

  /// Elements of a vector.
  int64_t dimension() const { return dimension_; }
  /// \returns fp32 [texts, dimension()] where the model computes, in the order of the texts, the same on all
  ///     ranks
  /// \throws Error{kBadInput} on a text without a token after its instruction, an id outside the vocabulary,
  ///     or a text longer than the model's positions; Error{kNonFinite}; Error{kInterrupted, kTerminated}
  ///     after a stop signal; what fails on one rank ends all
  at::Tensor Encode(std::span<const EncodedText> texts);
  const EncoderCounts& counts() const { return counts_; }

 private:
  /// Numbers of the texts of a pass.
  using Pass = std::vector<size_t>;

  std::vector<Pass> PassesOf(std::span<const EncodedText> texts) const;
  /// Vectors of one pass, [its texts, dimension()].
  at::Tensor EncodePass(std::span<const EncodedText> texts, const Pass& pass);
  /// This rank's, one below the other.
  at::Tensor EncodeOwn(std::span<const EncodedText> texts, const std::vector<Pass>& passes);
  /// Linear layer, size and length.
  at::Tensor Finish(at::Tensor pooled_td) const;

  LanguageModel* model_;
  EmbeddingSpec spec_;
  EncoderOptions options_;
  int64_t dimension_ = 0;
  EncoderCounts counts_;
};

}  // namespace trainwright

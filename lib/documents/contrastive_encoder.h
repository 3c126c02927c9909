/// Contrastive records to token ids: every text by itself, its instruction's length known exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/documents/chat_encoder.h"
#include "lib/documents/contrastive_example.h"

namespace trainwright {

/// Limits as the GRIT recipe has them; 0: none.
struct ContrastiveLimits {
  uint64_t query_tokens = 0;    ///< of the query, its instruction included
  uint64_t passage_tokens = 0;  ///< of a positive or negative
  uint64_t of(TextRole role) const { return role == TextRole::kQuery ? query_tokens : passage_tokens; }
};

/// How a text beyond its limit loses its end.
enum class TextCut {
  /// As the GRIT recipe trains: whatever lies beyond the limit goes, what the template writes after the text
  /// first, and of a text no more than ten characters a token of the larger limit are looked at.
  kAsTrained,
  /// As tokenizers cut: the whole text is looked at, and what the template writes after it stays.
  kAsTokenizers,
};

struct EncodedRecord {
  std::vector<uint32_t> ids;
  std::vector<LossRun> runs;  ///< with role and begins_text: what DocumentPiece has
  uint64_t tokenizer_calls = 0;
  uint64_t texts_cut = 0;  ///< texts that lost their end to a limit
};

/// Immutable after construction and thread-safe.
class ContrastiveEncoder {
 public:
  /// \param texts outlives the encoder
  ContrastiveEncoder(const ChatEncoder* texts, ContrastiveLimits limits, TextCut cut = TextCut::kAsTrained)
      : texts_(texts), limits_(limits), cut_(cut) {}

  enum class Fit {
    kFits,
    /// More than ten times its text's limit, found without tokenizing; of TextCut::kAsTrained.
    kInstructionHasTooManyCharacters,
    kInstructionHasTooManyTokens,  ///< with what the template puts around the text it leaves it no token
  };
  /// Whether the instructions are short enough to be tokenized.
  Fit Check(const ContrastiveExample& example) const;
  /// Texts beyond their limit lose their end, as TextCut says.
  /// \returns why the record is none, or nullopt
  std::optional<DocumentProblem> Encode(const ContrastiveExample& example, EncodedRecord* record,
                                        Fit* fit) const;

 private:
  const ChatEncoder* texts_;
  ContrastiveLimits limits_;
  TextCut cut_;
};

}  // namespace trainwright

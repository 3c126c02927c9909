/// Cuts text and conversations for the prediction of the next token: lm records, of which every token is
/// predicted, and sft records, of which the records may say what is.
///
/// A sample is at most `sequence_tokens` tokens: the segments of a chunk, cut where they exceed it, laid end
/// to end as long as they fit (next-fit in stored order), or without packing each by itself. Of sft records
/// under LossOn::kAssistant, samples without a label (a long prompt that was cut) are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/formats/record_kind.h"
#include "lib/loading/document_split.h"
#include "lib/loading/sample_cutter.h"

namespace trainwright {

/// Which tokens of sft records become labels; of lm records all do. The names of --loss-on.
enum class LossOn : uint8_t {
  kAssistant,  ///< those that the records say: what the assistant says, and the end of its turn
  kAll,        ///< every token that follows another of its conversation
};
/// \throws Error{kUsage} naming --loss-on
LossOn ParseLossOn(const std::string& name);
const char* NameOf(LossOn loss_on);

/// Whether documents share samples. The names of --packing.
enum class Packing : uint8_t {
  kOn,   ///< as many as fit lie end to end
  kOff,  ///< each sample is one document, or a piece of one that is longer
};
/// \throws Error{kUsage} naming --packing
Packing ParsePacking(const std::string& name);
std::string PackingName(Packing packing);

struct LmCutterOptions {
  int64_t sequence_tokens = 512;
  Packing packing = Packing::kOn;
  LossOn loss_on = LossOn::kAssistant;
  std::optional<DocumentSplit> split;  ///< whose held-out documents are left out
};

class LmCutter final : public SampleCutter {
 public:
  /// \param records of the set
  /// \throws Error{kBadInput} on records without a token to predict; Error{kUsage} on options < 1
  LmCutter(RecordKind records, const LmCutterOptions& options);
  void Cut(const Chunk& chunk, SampleWindow* window) const override;
  int64_t sequence_tokens() const override { return options_.sequence_tokens; }
  std::string Identity() const override;
  bool HasLabel(const ShardTotals& totals) const override;
  std::string NothingToLearn() const override;

 private:
  /// Whether a span of this many tokens may be part of a sample that has some.
  bool FitsBehind(uint64_t sample_tokens, uint64_t tokens) const;

  LmCutterOptions options_;
  bool masked_;  // whether the segments say what is predicted
};

}  // namespace trainwright

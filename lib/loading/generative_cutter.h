/// Cuts text and conversations for an objective whose rows are documents: a sample is the beginning of one,
/// never several.
///
/// What is predicted, the segments say: of lm records all, of sft records the answers. So one loader reads
/// sets of both kinds. A document longer than the limit loses its end, and the part of one that pack put into
/// a later chunk is no row; a row without a token to predict is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/formats/record_kind.h"
#include "lib/loading/document_split.h"
#include "lib/loading/sample_cutter.h"

namespace trainwright {

struct GenerativeCutterOptions {
  int64_t tokens = 128;  ///< most of a row
  /// Only the last run of a document's tokens that are predicted is: what is before it is read.
  bool last_run_only = false;
  std::optional<DocumentSplit> split = {};  ///< whose held-out documents are left out
};

class GenerativeCutter final : public SampleCutter {
 public:
  /// \param records of one of the sets
  /// \throws Error{kBadInput} on records that are neither lm nor sft; Error{kUsage} on a limit below 1
  GenerativeCutter(RecordKind records, const GenerativeCutterOptions& options);
  void Cut(const Chunk& chunk, SampleWindow* window) const override;
  int64_t sequence_tokens() const override { return options_.tokens; }
  std::string Identity() const override;
  bool HasLabel(const ShardTotals& totals) const override;
  std::string NothingToLearn() const override;
  std::string TellCuts(const CutCounts& counts) const override;

 private:
  GenerativeCutterOptions options_;
};

}  // namespace trainwright

/// Cuts contrastive records for an objective that pools texts: a sample is a record with all its texts, so
/// that which of them are used is drawn when it is.
///
/// Each text is a span: the query, then the positives, then the negatives, each as in the record in
/// order. A text longer than its limit loses its end. A record one of whose instructions leaves its text no
/// token within the limit is left out. A sample counts as many tokens as a step takes of it on average.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/formats/record_kind.h"
#include "lib/loading/document_split.h"
#include "lib/loading/sample_cutter.h"
#include "lib/loading/span_note.h"
#include "lib/loading/text_choice.h"

namespace trainwright {

/// SampleSpan::tag of a span that is pooled or, of TextUse::kGenerative, predicted.
struct TextTag {
  TextUse use = TextUse::kGenerative;
  uint32_t instruction_tokens = 0;  ///< below 2^30
  bool operator==(const TextTag&) const = default;
};
uint32_t EncodeTextTag(const TextTag& tag);
TextTag DecodeTextTag(uint32_t tag);

struct ContrastiveCutterOptions {
  int64_t query_tokens = 32;                ///< most of a query, its instruction included
  int64_t passage_tokens = 128;             ///< most of a positive or negative
  std::optional<TextChoice> choice = {};    ///< what a step takes of a record; nullopt: all of it
  std::optional<DocumentSplit> split = {};  ///< whose held-out records are left out
};

class ContrastiveCutter final : public SampleCutter {
 public:
  /// \param records of the set
  /// \throws Error{kBadInput} on records that are not contrastive; Error{kUsage} on limits below 1
  ContrastiveCutter(RecordKind records, const ContrastiveCutterOptions& options);
  /// A sample counts as one label.
  void Cut(const Chunk& chunk, SampleWindow* window) const override;
  int64_t sequence_tokens() const override;
  std::string Identity() const override;
  bool HasLabel(const ShardTotals& totals) const override;
  std::string NothingToLearn() const override;
  std::string TellCuts(const CutCounts& counts) const override;

 private:
  /// Appends the text as a span of `window`.
  void AddText(TextUse use, const ContrastiveText& text, SampleWindow* window) const;
  /// Appends texts of one use, of which a step takes `taken`.
  /// \returns about how many tokens those have
  uint64_t AddTexts(TextUse use, std::span<const ContrastiveText> texts, uint64_t taken,
                    SampleWindow* window) const;

  ContrastiveCutterOptions options_;
};

}  // namespace trainwright

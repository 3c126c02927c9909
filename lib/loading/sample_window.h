/// A window of the order of training: the samples cut from some chunks, with ids as narrow as they can be.
/// They are widened when they go into a micro-batch. A SampleCutter writes it, the loader puts its samples in
/// order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lib/loading/packed_batch.h"
#include "lib/loading/token_run.h"

namespace trainwright {

/// One span of a sample: tokens of one document and the label of the last of them.
struct SampleSpan {
  uint64_t begin = 0;  ///< in the window's tokens
  uint32_t tokens = 0;
  uint32_t next_token = 0;  ///< or kNoId
  uint64_t source_bytes = 0;
  bool starts_document = false;
  /// What the cutter says about the span to the objective that it cuts for: its role in the sample, say.
  /// Nobody else reads it.
  uint32_t tag = 0;
};

/// What a cutter could not take as it is stored.
struct CutCounts {
  uint64_t left_out = 0;   ///< records that are no sample
  uint64_t shortened = 0;  ///< texts that lost their end
  CutCounts& operator+=(const CutCounts& other) {
    left_out += other.left_out;
    shortened += other.shortened;
    return *this;
  }
  bool operator==(const CutCounts&) const = default;
};

struct SampleWindow {
  struct Entry {
    uint32_t span_begin = 0, span_end = 0;
    uint32_t tokens = 0;  ///< of its spans
    uint32_t labels = 0;  ///< what it counts by in the loss, as its cutter says
    uint32_t set = 0;     ///< OrderedSet::number of that it was drawn from; the loader's to say
  };
  TokenRun tokens;
  std::vector<uint8_t> predicted;  ///< of each token, whether it is a label (1) or not (0); empty: all are
  std::vector<SampleSpan> spans;
  std::vector<Entry> samples;  ///< as they were cut, then in the order of the stream
  CutCounts cuts;              ///< of all that was cut for it

  size_t size_bytes() const {
    return tokens.capacity_bytes() + predicted.capacity() + spans.capacity() * sizeof(SampleSpan) +
           samples.capacity() * sizeof(Entry);
  }
};

/// One sample of a window, which it keeps alive. Immutable, cheap to copy.
class Sample {
 public:
  /// \param ordinal see ordinal()
  Sample(std::shared_ptr<const SampleWindow> window, size_t number, uint64_t ordinal = 0)
      : window_(std::move(window)), entry_(window_->samples[number]), ordinal_(ordinal) {}
  int64_t tokens() const { return entry_.tokens; }
  int64_t num_labels() const { return entry_.labels; }
  /// Which of the data's sets it was drawn from.
  uint32_t set() const { return entry_.set; }
  /// Its number in its loader's stream, over all epochs: what is drawn for it is keyed by. 0 where the order
  /// does not number them (SampleOrderOptions::numbered).
  uint64_t ordinal() const { return ordinal_; }
  std::span<const SampleSpan> spans() const {
    return std::span(window_->spans).subspan(entry_.span_begin, entry_.span_end - entry_.span_begin);
  }
  /// Of one of its spans from token `begin` of it on, widened.
  std::vector<uint32_t> TokensOf(const SampleSpan& span, uint32_t begin = 0) const;
  /// Of each token of one of its spans, whether it is a label (1) or not (0); empty: all are.
  std::span<const uint8_t> PredictedOf(const SampleSpan& span) const;
  /// A sample of another stream that is trained on beside it; null: none.
  const Sample* companion() const { return companion_.get(); }
  /// This one with a companion.
  Sample With(Sample companion) const;
  /// Appends it, widened, without its companion.
  void AppendTo(PackedBatch* batch) const;
  /// Appends one of its spans, widened.
  void AppendSpanTo(const SampleSpan& span, PackedBatch* batch) const {
    AppendSpanTo(span, PredictedOf(span), batch);
  }
  /// The same with other labels.
  /// \param predicted as in PackedBatch::AppendSpan
  void AppendSpanTo(const SampleSpan& span, std::span<const uint8_t> predicted, PackedBatch* batch) const;

 private:
  std::shared_ptr<const SampleWindow> window_;
  SampleWindow::Entry entry_;
  uint64_t ordinal_ = 0;
  std::shared_ptr<const Sample> companion_;
};

/// Appends a sample of one window to another, spans and all; its set is left for the caller to say.
/// \returns it, as an entry of `to`, among whose samples it is not yet
SampleWindow::Entry CopySample(const SampleWindow& from, const SampleWindow::Entry& sample, SampleWindow* to);

/// Tokens of these spans, and tokens after them, that are labels.
/// \param predicted as in SampleWindow
int64_t CountLabels(std::span<const SampleSpan> spans, std::span<const uint8_t> predicted);

}  // namespace trainwright

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
  /// What the cutter says of the span to the objective that it cuts for: its role in the sample, say. Nobody
  /// else reads it.
  uint32_t tag = 0;
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

  size_t size_bytes() const {
    return tokens.capacity_bytes() + predicted.capacity() + spans.capacity() * sizeof(SampleSpan) +
           samples.capacity() * sizeof(Entry);
  }
};

/// One sample of a window, which it keeps alive. Immutable, cheap to copy.
class Sample {
 public:
  Sample(std::shared_ptr<const SampleWindow> window, size_t number)
      : window_(std::move(window)), entry_(window_->samples[number]) {}
  int64_t tokens() const { return entry_.tokens; }
  int64_t num_labels() const { return entry_.labels; }
  /// Which of the data's sets it was drawn from.
  uint32_t set() const { return entry_.set; }
  std::span<const SampleSpan> spans() const {
    return std::span(window_->spans).subspan(entry_.span_begin, entry_.span_end - entry_.span_begin);
  }
  /// Appends it, widened.
  void AppendTo(PackedBatch* batch) const;

 private:
  std::shared_ptr<const SampleWindow> window_;
  SampleWindow::Entry entry_;
};

/// Tokens of these spans, and tokens behind them, that are labels.
/// \param predicted as in SampleWindow
int64_t CountLabels(std::span<const SampleSpan> spans, std::span<const uint8_t> predicted);

}  // namespace trainwright

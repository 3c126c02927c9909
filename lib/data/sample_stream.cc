#include "lib/data/sample_stream.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/checksum.h"
#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/base/signals.h"
#include "lib/data/document_parts.h"
#include "lib/io/ordered_workers.h"

namespace trainwright {
namespace {

/// Cuts a chunk into samples, appended to `samples`. \param masked whether the segments say what is predicted
void CutChunk(const Chunk& chunk, const SampleStreamOptions& options, bool masked, std::vector<Sample>* samples) {
  const auto sequence_tokens = static_cast<uint64_t>(options.sequence_tokens);
  const auto push = [&](Sample* sample) {
    if (!masked || sample->num_labels() > 0) samples->push_back(std::move(*sample));
    *sample = {};
  };
  Sample sample;
  for (const DocumentPart& part : PartsOf(chunk, options.split, /*held_out=*/false)) {
    const std::vector<uint8_t> predicted = masked ? part.Predicted() : std::vector<uint8_t>();
    const uint64_t part_tokens = part.tokens.size();
    for (uint64_t begin = 0; begin < part_tokens; begin += sequence_tokens) {
      const uint64_t end = std::min<uint64_t>(begin + sequence_tokens, part_tokens);
      if (static_cast<uint64_t>(sample.tokens) + (end - begin) > sequence_tokens) push(&sample);
      SampleSpan span;
      const auto own = part.tokens.subspan(begin, end - begin);
      span.tokens.assign(own.begin(), own.end());
      if (masked) {
        const auto own_predicted = std::span(predicted).subspan(begin, end - begin);
        span.predicted.assign(own_predicted.begin(), own_predicted.end());
      }
      if (end == part_tokens) {
        span.next_token = part.next_token(masked);
      } else {
        span.next_token = masked && predicted[end] == 0 ? kNoId : part.tokens[end];
      }
      span.source_bytes = part.SourceBytes(begin, end, /*masked=*/false);
      span.starts_document = begin == 0 && part.starts_document();
      sample.tokens += static_cast<int64_t>(end - begin);
      sample.spans.push_back(std::move(span));
    }
  }
  if (sample.tokens > 0) push(&sample);
}

int64_t BytesOf(const std::vector<Sample>& samples) {
  size_t size = samples.capacity() * sizeof(Sample);
  for (const Sample& sample : samples) {
    size += sample.spans.capacity() * sizeof(SampleSpan);
    for (const SampleSpan& span : sample.spans) {
      size += span.tokens.capacity() * sizeof(uint32_t) + span.predicted.capacity();
    }
  }
  return static_cast<int64_t>(size);
}

struct WindowId {
  uint64_t epoch = 0, window = 0;
  bool operator==(const WindowId&) const = default;
};

}  // namespace

LossOn ParseLossOn(const std::string& name) {
  if (name == "assistant") return LossOn::kAssistant;
  if (name == "all") return LossOn::kAll;
  throw Error(ErrorCode::kUsage, "--loss-on", "unknown choice \"" + name + "\"", "", "one of assistant, all");
}

const char* NameOf(LossOn loss_on) {
  return loss_on == LossOn::kAssistant ? "assistant" : "all";
}

int64_t Sample::num_labels() const {
  int64_t labels = 0;
  for (const SampleSpan& span : spans) {
    if (span.tokens.empty()) continue;
    const auto followers = static_cast<int64_t>(span.tokens.size()) - 1;
    labels += span.predicted.empty()
                  ? followers
                  : std::count(span.predicted.begin() + 1, span.predicted.end(), uint8_t{1});
    labels += span.next_token == kNoId ? 0 : 1;
  }
  return labels;
}

void Sample::AppendTo(PackedBatch* batch) const {
  for (const SampleSpan& span : spans) {
    batch->AppendSpan(span.tokens, span.next_token, span.predicted);
    batch->source_bytes += span.source_bytes;
    batch->documents += span.starts_document ? 1 : 0;
  }
}

struct SampleStream::Impl {
  Impl(const ShardSet* shard_set, const SampleStreamOptions& stream_options, const LoaderOptions& loader)
      : set(shard_set), options(stream_options) {
    if (loader.workers == 0) return;
    const auto windows_ahead = static_cast<size_t>(loader.workers) * static_cast<size_t>(loader.prefetch);
    workers.emplace(loader.workers, windows_ahead, [this](int, WindowId id) { return BuildWindow(id); });
  }

  /// Whether the records say which of their tokens are labels.
  bool masked() const {
    return set->header().record_kind == RecordKind::kSft && options.loss_on == LossOn::kAssistant;
  }

  uint64_t windows() const { return (set->chunks() + options.window_chunks - 1) / options.window_chunks; }

  WindowId After(WindowId id) const {
    return id.window + 1 < windows() ? WindowId{id.epoch, id.window + 1} : WindowId{id.epoch + 1, 0};
  }

  /// The samples of a window, in the order of the stream. Runs on the worker threads; touches constants
  /// only.
  std::vector<Sample> BuildWindow(WindowId id) const {
    const uint64_t chunks = set->chunks();
    const uint64_t begin = id.window * options.window_chunks;
    const uint64_t end = std::min(begin + options.window_chunks, chunks);
    const KeyedPermutation chunk_order(chunks, Rng(options.seed, "chunk order", id.epoch).key());

    // Slot i takes the window's i-th chunk; a frame that holds several of them is decoded once.
    std::vector<std::vector<Sample>> slots(end - begin);
    std::map<uint64_t, uint64_t> slot_of_chunk;
    for (uint64_t i = begin; i < end; ++i) {
      slot_of_chunk[options.shuffle ? chunk_order(i) : i] = i - begin;
    }
    for (auto wanted = slot_of_chunk.begin(); wanted != slot_of_chunk.end();) {
      uint64_t first_chunk = 0;
      const std::vector<Chunk> frame = set->ReadFrameOf(wanted->first, &first_chunk);
      for (; wanted != slot_of_chunk.end() && wanted->first < first_chunk + frame.size(); ++wanted) {
        CutChunk(frame.at(wanted->first - first_chunk), options, masked(), &slots[wanted->second]);
      }
    }

    std::vector<Sample> stored;
    for (std::vector<Sample>& slot : slots) std::move(slot.begin(), slot.end(), std::back_inserter(stored));
    if (!options.shuffle || stored.empty()) return stored;
    const KeyedPermutation order(stored.size(), Rng(options.seed, "sample order", id.epoch).Bits(id.window));
    std::vector<Sample> permuted(stored.size());
    for (uint64_t i = 0; i < stored.size(); ++i) permuted[i] = std::move(stored[order(i)]);
    return permuted;
  }

  /// Makes the window of the cursor the loaded one and lets the workers go on behind it.
  void LoadWindow() {
    const WindowId wanted{cursor.epoch, cursor.window};
    const auto start = std::chrono::steady_clock::now();
    loaded.reset();
    samples = workers ? PopWindow(wanted) : BuildWindow(wanted);
    loaded = wanted;
    counts.wait_s += SecondsSince(start);
    ++counts.windows;
    if (workers) FillQueue(After(wanted));
    counts.most_windows_ahead = std::max(counts.most_windows_ahead, static_cast<int64_t>(ahead.size()));
    counts.most_held_bytes =
        std::max(counts.most_held_bytes, BytesOf(samples) * static_cast<int64_t>(1 + ahead.size()));
  }

  std::vector<Sample> PopWindow(WindowId wanted) {
    while (!ahead.empty() && ahead.front() != wanted) {
      ahead.pop_front();
      try {
        workers->Pop();
      } catch (const std::exception&) {
        // A window that nobody asked for: if it is ever wanted, it is read, and fails, again.
      }
    }
    FillQueue(wanted);
    ahead.pop_front();
    return workers->Pop();
  }

  /// Keeps as many windows under way as may be, from `next` on when there are none.
  void FillQueue(WindowId next) {
    while (!workers->full()) {
      ahead.push_back(ahead.empty() ? next : After(ahead.back()));
      workers->Push(ahead.back());
    }
  }

  /// Whether any sample of the set has a label.
  bool HasLabel() const {
    const ShardTotals& totals = set->totals();
    // More tokens than documents: some token follows another of its document.
    if (!options.split && (masked() ? totals.loss_tokens > totals.documents : totals.tokens > totals.documents)) {
      return true;
    }
    std::vector<Sample> samples;
    uint64_t first_chunk = 0;
    for (uint64_t chunk = 0; chunk < set->chunks();) {
      const std::vector<Chunk> frame = set->ReadFrameOf(chunk, &first_chunk);
      for (const Chunk& content : frame) {
        samples.clear();
        CutChunk(content, options, masked(), &samples);
        if (std::any_of(samples.begin(), samples.end(), [](const Sample& s) { return s.num_labels() > 0; })) {
          return true;
        }
      }
      chunk = first_chunk + frame.size();
    }
    return false;
  }

  const ShardSet* set;
  SampleStreamOptions options;
  SampleCursor cursor;
  std::vector<Sample> samples;     // of the loaded window; those before the cursor are moved out
  std::optional<WindowId> loaded;  // which window `samples` is
  std::deque<WindowId> ahead;      // the windows that the workers build or have ready, in order
  uint64_t epoch_of_last = 0;      // of the sample handed out last
  LoaderCounts counts;
  // Last: joins before the members it reads are gone. Absent without workers.
  std::optional<OrderedWorkers<WindowId, std::vector<Sample>>> workers;
};

SampleStream::SampleStream(const ShardSet* set, const SampleStreamOptions& options,
                           const LoaderOptions& loader) {
  if (options.sequence_tokens < 1) throw Error(ErrorCode::kUsage, "--seq", "must be at least 1 token");
  if (options.window_chunks < 1) throw Error(ErrorCode::kUsage, "window", "must be at least 1 chunk");
  if (loader.workers < 0) throw Error(ErrorCode::kUsage, "--workers", "must be at least 0");
  if (loader.prefetch < 1) throw Error(ErrorCode::kUsage, "--prefetch", "must be at least 1 window");
  impl_ = std::make_unique<Impl>(set, options, loader);
  if (set->chunks() == 0 || !impl_->HasLabel()) {
    throw Error(ErrorCode::kBadInput, "shards",
                impl_->masked() ? "hold no conversation with a token to predict, so there is nothing to learn"
                                : "hold no document of two or more tokens, so there is nothing to learn",
                "", "look at the set with pack --info");
  }
}

SampleStream::~SampleStream() = default;

Sample SampleStream::Next() {
  while (true) {
    SampleCursor& cursor = impl_->cursor;
    if (impl_->loaded != WindowId{cursor.epoch, cursor.window}) {
      impl_->LoadWindow();
      if (cursor.sample > impl_->samples.size()) {
        throw Error(ErrorCode::kBadInput, "data position",
                    "sample " + std::to_string(cursor.sample) + " lies beyond its window of " +
                        std::to_string(impl_->samples.size()) + " samples",
                    "epoch " + std::to_string(cursor.epoch) + ", window " + std::to_string(cursor.window));
      }
    }
    const uint64_t count = impl_->samples.size();
    std::optional<Sample> sample;
    if (cursor.sample < count) {
      sample = std::move(impl_->samples[cursor.sample++]);
      impl_->epoch_of_last = cursor.epoch;
    }
    if (cursor.sample >= count) {
      const WindowId next = impl_->After({cursor.epoch, cursor.window});
      cursor = {next.epoch, next.window, 0};
    }
    if (sample) return std::move(*sample);
  }
}

std::vector<Sample> SampleStream::NextStep(int64_t count, bool drop_last) {
  std::vector<Sample> step;
  uint64_t first_epoch = 0;
  bool skipped = false;
  while (static_cast<int64_t>(step.size()) < count) {
    Sample sample = Next();
    const uint64_t epoch = impl_->epoch_of_last;
    if (step.empty()) first_epoch = epoch;
    if (drop_last && epoch != first_epoch) {
      if (skipped) {
        throw Error(ErrorCode::kBadInput, "--drop-last",
                    "skips everything: an epoch has " + std::to_string(step.size()) +
                        " samples, a step takes " + std::to_string(count),
                    "", "lower --batch or --accum, or leave out --drop-last");
      }
      step.clear();
      first_epoch = epoch;
      skipped = true;
    }
    step.push_back(std::move(sample));
  }
  return step;
}

SampleCursor SampleStream::cursor() const {
  return impl_->cursor;
}

void SampleStream::Seek(const SampleCursor& cursor) {
  if (cursor.window >= impl_->windows()) {
    throw Error(
        ErrorCode::kBadInput, "data position",
        "window " + std::to_string(cursor.window) + " of a set of " + std::to_string(impl_->windows()));
  }
  impl_->cursor = cursor;
  impl_->loaded.reset();  // its samples before the cursor may be moved out
}

double SampleStream::epochs() const {
  const SampleCursor& cursor = impl_->cursor;
  double in_window = 0;
  if (impl_->loaded == WindowId{cursor.epoch, cursor.window}) {
    in_window = static_cast<double>(cursor.sample) / static_cast<double>(impl_->samples.size());
  }
  return static_cast<double>(cursor.epoch) +
         (static_cast<double>(cursor.window) + in_window) / static_cast<double>(impl_->windows());
}

EpochCounts SampleStream::CountEpoch() const {
  EpochCounts counts;
  std::vector<Sample> samples;
  uint64_t first_chunk = 0;
  for (uint64_t chunk = 0; chunk < impl_->set->chunks();) {
    ThrowIfStopped();
    const std::vector<Chunk> frame = impl_->set->ReadFrameOf(chunk, &first_chunk);
    samples.clear();
    for (const Chunk& content : frame) {
      CutChunk(content, impl_->options, impl_->masked(), &samples);
    }
    counts.samples += samples.size();
    for (const Sample& sample : samples) {
      counts.tokens += static_cast<uint64_t>(sample.tokens);
      counts.labels += static_cast<uint64_t>(sample.num_labels());
    }
    chunk = first_chunk + frame.size();
  }
  return counts;
}

LoaderCounts SampleStream::loader_counts() const {
  return impl_->counts;
}

std::string SampleStream::fingerprint() const {
  const SampleStreamOptions& options = impl_->options;
  const std::string identity =
      "trainwright sample order 1\ncontent " + HexEncode(impl_->set->content_sha256()) + "\nseed " +
      std::to_string(options.seed) + "\nsequence_tokens " + std::to_string(options.sequence_tokens) +
      "\nwindow_chunks " + std::to_string(options.window_chunks) + "\nshuffle " +
      (options.shuffle ? "1" : "0") + "\n" + (impl_->masked() ? "loss_on assistant\n" : "") +
      (options.split ? "held out below " + std::to_string(options.split->bound) + " seed " +
                           std::to_string(options.split->seed) + "\n"
                     : "");
  return HexEncode(Sha256Of(AsBytes(identity)));
}

}  // namespace trainwright

#include "lib/loading/sample_stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/checksum.h"
#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/rng.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/formats/document_parts.h"
#include "lib/io/ordered_workers.h"
#include "lib/loading/frame_cache.h"

namespace trainwright {
namespace {

/// Cuts a chunk into samples, appended to `window`.
/// \param masked whether the segments say what is predicted
void CutChunk(const Chunk& chunk, const SampleStreamOptions& options, bool masked, uint32_t set,
              SampleWindow* window) {
  const auto sequence_tokens = static_cast<uint64_t>(options.sequence_tokens);
  const auto next_span = [&] { return static_cast<uint32_t>(window->spans.size()); };
  SampleWindow::Entry sample{.span_begin = next_span(), .set = set};
  const auto push = [&] {
    sample.span_end = next_span();
    const auto spans = std::span(window->spans).subspan(sample.span_begin);
    if (!masked || CountLabels(spans, window->predicted) > 0) window->samples.push_back(sample);
    sample = {.span_begin = next_span(), .set = set};
  };
  for (const DocumentPart& part : PartsOf(chunk, options.split, /*held_out=*/false)) {
    const std::vector<uint8_t> predicted = masked ? part.Predicted() : std::vector<uint8_t>();
    const uint64_t part_tokens = part.tokens.size();
    const uint64_t part_begin = window->tokens.size();
    window->tokens.Append(part.tokens);
    window->predicted.insert(window->predicted.end(), predicted.begin(), predicted.end());
    for (uint64_t begin = 0; begin < part_tokens; begin += sequence_tokens) {
      const uint64_t end = std::min<uint64_t>(begin + sequence_tokens, part_tokens);
      if (sample.tokens + (end - begin) > sequence_tokens) push();
      SampleSpan span{.begin = part_begin + begin, .tokens = static_cast<uint32_t>(end - begin)};
      if (end == part_tokens) {
        span.next_token = part.next_token(masked);
      } else {
        span.next_token = masked && predicted[end] == 0 ? kNoId : part.tokens[end];
      }
      span.source_bytes = part.SourceBytes(begin, end, /*masked=*/false);
      span.starts_document = begin == 0 && part.starts_document();
      sample.tokens += span.tokens;
      window->spans.push_back(span);
    }
  }
  if (sample.tokens > 0) push();
}

SampleWindow EmptyWindow(const ShardSet& set) {
  SampleWindow window;
  window.tokens = TokenRun(set.header().tokenizer.vocab_size);
  return window;
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

namespace {

/// Memory of windows that are no longer used, for those to come: getting it anew from the system would cost a
/// page fault every 4 KiB. Counts what windows in use take, and what is kept. Thread-safe.
class WindowPool {
 public:
  TokenRun Take(const ShardSet& set) {
    const std::lock_guard lock(mutex_);
    if (runs_.empty()) return TokenRun(set.header().tokenizer.vocab_size);
    TokenRun run = std::move(runs_.back());
    runs_.pop_back();
    kept_bytes_ -= run.capacity_bytes();
    return run;
  }
  void GiveBack(TokenRun run) {
    run.clear();
    const std::lock_guard lock(mutex_);
    if (runs_.size() == kMostKept) return;
    kept_bytes_ += run.capacity_bytes();
    runs_.push_back(std::move(run));
  }
  /// The window, counted until nobody uses it any more. Samples may keep it longer than the stream lives.
  static std::shared_ptr<const SampleWindow> Share(const std::shared_ptr<WindowPool>& pool,
                                                   SampleWindow window) {
    const size_t size_bytes = window.size_bytes();
    auto own = std::make_unique<SampleWindow>(std::move(window));
    pool->CountUsed(size_bytes);
    return {own.release(), [pool, size_bytes](SampleWindow* used) {
              pool->GiveBack(std::move(used->tokens));
              delete used;
              pool->CountUsed(-size_bytes);
            }};
  }
  size_t held_bytes() const {
    const std::lock_guard lock(mutex_);
    return kept_bytes_ + used_bytes_;
  }

 private:
  void CountUsed(size_t more_bytes) {
    const std::lock_guard lock(mutex_);
    used_bytes_ += more_bytes;
  }

  static constexpr size_t kMostKept = 2;
  mutable std::mutex mutex_;
  std::vector<TokenRun> runs_;
  size_t kept_bytes_ = 0, used_bytes_ = 0;
};

}  // namespace

struct SampleStream::Impl {
  /// What a worker is at.
  struct Reading {
    std::atomic<uint64_t> number = 0;  // of the window
    std::atomic<uint64_t> chunk = 0;   // plus 1; 0: none
  };

  Impl(const ShardSet* shard_set, const SampleStreamOptions& stream_options,
       const LoaderOptions& loader_options)
      : set(shard_set),
        options(stream_options),
        loader(loader_options),
        frames(shard_set, loader_options.cache_bytes),
        reading(static_cast<size_t>(std::max(1, loader_options.workers))),
        order(stream_options.sets.empty()
                  ? std::vector<OrderedSet>{{.chunks = shard_set->chunks(), .weight = 1}}
                  : stream_options.sets,
              {.seed = stream_options.seed,
               .shuffle = stream_options.shuffle,
               .block_chunks = stream_options.block_chunks}) {
    if (loader.workers == 0) return;
    const auto windows_ahead = static_cast<size_t>(loader.workers) * static_cast<size_t>(loader.prefetch);
    workers.emplace(loader.workers, windows_ahead, [this](int worker, WindowId id) {
      Reading& own = reading[static_cast<size_t>(worker)];
      own.number.store(NumberOf(id), std::memory_order_relaxed);
      return BuildWindow(id, known_bad, &own.chunk);
    });
  }

  /// Whether the records say which of their tokens are labels.
  bool masked() const {
    return set->header().record_kind == RecordKind::kSft && options.loss_on == LossOn::kAssistant;
  }

  uint64_t windows() const { return (order.slots() + options.window_chunks - 1) / options.window_chunks; }

  WindowId After(WindowId id) const {
    return id.window + 1 < windows() ? WindowId{id.epoch, id.window + 1} : WindowId{id.epoch + 1, 0};
  }

  /// The samples of a window, in the order of the stream. Runs on the worker threads; touches constants and
  /// the cache only.
  /// \param bad chunks that stay out
  /// \param reading tells others the chunk that is being read, plus 1
  SampleWindow BuildWindow(WindowId id, std::set<uint64_t> bad, std::atomic<uint64_t>* reading) {
    const uint64_t begin = id.window * options.window_chunks;
    const uint64_t end = std::min(begin + options.window_chunks, order.slots());
    SampleWindow window;
    window.tokens = pool->Take(*set);
    window.tokens.reserve((end - begin) * set->header().chunk_tokens);

    // Slot i takes the window's i-th chunk. Chunks are read as they lie, so that a frame that holds several
    // of them is decoded once, and their samples put in the order of the slots afterwards.
    std::vector<ChunkDraw> draws;
    std::vector<std::pair<uint64_t, uint64_t>> slot_of_chunk;
    for (uint64_t i = begin; i < end; ++i) {
      draws.push_back(order.At(id.epoch, i));
      slot_of_chunk.emplace_back(draws.back().chunk, i - begin);
    }
    std::sort(slot_of_chunk.begin(), slot_of_chunk.end());
    std::vector<uint64_t> wanted;
    for (const auto& [chunk, slot] : slot_of_chunk) wanted.push_back(chunk);

    struct Range {
      size_t begin = 0, end = 0;
    };
    std::vector<Range> samples_of_slot(draws.size());
    std::vector<uint64_t> slots_to_fill;
    const auto cut = [&](uint64_t slot, uint64_t number, const Chunk& chunk) {
      window.chunks.push_back(number);
      Range& range = samples_of_slot[slot];
      range.begin = window.samples.size();
      CutChunk(chunk, options, masked(), draws[slot].set, &window);
      range.end = window.samples.size();
    };
    for (size_t i = 0; i < wanted.size();) {
      reading->store(wanted[i] + 1, std::memory_order_relaxed);
      if (!bad.contains(wanted[i])) {
        try {
          i += frames.ReadChunks(wanted, i, [&](size_t taken, const Chunk& chunk) {
            // A chunk that is known to be bad stays out although its frame can be read by now.
            const uint64_t slot = slot_of_chunk[taken].second;
            if (bad.contains(wanted[taken])) {
              slots_to_fill.push_back(slot);
            } else {
              cut(slot, wanted[taken], chunk);
            }
          });
          continue;
        } catch (const Error& error) {
          NoteBad(wanted[i], error, &bad, &window);
        }
      }
      slots_to_fill.push_back(slot_of_chunk[i++].second);
    }
    for (const uint64_t slot : slots_to_fill) {
      const ChunkDraw& draw = draws[slot];
      for (uint64_t attempt = 0; window.bad.size() <= loader.skip_bad_chunks; ++attempt) {
        if (attempt == order.sets()[draw.set].chunks) {
          throw Error(ErrorCode::kBadInput, "shards", "hold no chunk that can be read in place of a bad one");
        }
        const std::vector<uint64_t> substitute = {order.Substitute(draw, attempt)};
        if (bad.contains(substitute[0])) continue;
        reading->store(substitute[0] + 1, std::memory_order_relaxed);
        try {
          frames.ReadChunks(substitute, 0,
                            [&](size_t, const Chunk& chunk) { cut(slot, substitute[0], chunk); });
          break;
        } catch (const Error& error) {
          NoteBad(substitute[0], error, &bad, &window);
        }
      }
    }
    reading->store(0, std::memory_order_relaxed);

    std::vector<SampleWindow::Entry> stored;
    stored.reserve(window.samples.size());
    for (const Range& range : samples_of_slot) {
      for (size_t i = range.begin; i < range.end; ++i) stored.push_back(window.samples[i]);
    }
    if (options.shuffle && !stored.empty()) {
      const KeyedPermutation sample_order(stored.size(),
                                          Rng(options.seed, "sample order", id.epoch).Bits(id.window));
      for (uint64_t i = 0; i < stored.size(); ++i) window.samples[i] = stored[sample_order(i)];
    } else {
      window.samples = std::move(stored);
    }
    return window;
  }

  /// Takes note of a chunk that cannot be read.
  /// \throws the error again when nothing may be skipped
  void NoteBad(uint64_t chunk, const Error& error, std::set<uint64_t>* bad, SampleWindow* window) const {
    if (error.code() != ErrorCode::kBadInput) throw error;
    const ChunkLocation location = LocateChunk(*set, chunk);
    const Error placed(error.code(), error.object(), error.problem(),
                       "shard " + std::to_string(location.shard) + ", frame " +
                           std::to_string(location.frame) + (error.place().empty() ? "" : ", ") +
                           error.place(),
                       "restore the file, or train without its chunks by --skip-bad-chunks N");
    if (loader.skip_bad_chunks == 0) throw placed;
    bad->insert(chunk);
    window->bad.push_back({chunk, placed});
  }

  /// Takes over what a window that is now in use left out.
  /// \throws the error of the chunk that is one too many
  void SkipBad(const std::vector<BadChunk>& found) {
    for (const BadChunk& bad : found) {
      if (skipped.contains(bad.chunk)) continue;
      if (skipped.size() >= loader.skip_bad_chunks) {
        throw Error(
            ErrorCode::kBadInput, bad.error.object(), bad.error.problem(), bad.error.place(),
            "chunk " + std::to_string(bad.chunk) + " is number " + std::to_string(skipped.size() + 1) +
                " that cannot be read; --skip-bad-chunks allows " + std::to_string(loader.skip_bad_chunks));
      }
      skipped.insert(bad.chunk);
      LogWarning(std::string(bad.error.what()) + ": another chunk takes the place of chunk " +
                 std::to_string(bad.chunk) + " (" + std::to_string(skipped.size()) + " of at most " +
                 std::to_string(loader.skip_bad_chunks) + ")");
    }
  }

  /// Makes the window of the cursor the loaded one and lets the workers go on behind it.
  void LoadWindow() {
    const WindowId wanted{cursor.epoch, cursor.window};
    const auto start = std::chrono::steady_clock::now();
    loaded.reset();
    window.reset();
    SampleWindow built = workers ? PopWindow(wanted) : BuildWindow(wanted, skipped, &reading[0].chunk);
    // What was bad in an earlier window stays out although this one could read it: a run that is resumed
    // between the two knows no better.
    const auto was_skipped = [&](uint64_t chunk) { return skipped.contains(chunk); };
    if (std::any_of(built.chunks.begin(), built.chunks.end(), was_skipped)) {
      pool->GiveBack(std::move(built.tokens));
      std::atomic<uint64_t> own_reading = 0;
      built = BuildWindow(wanted, skipped, &own_reading);
    }
    SkipBad(built.bad);
    window = WindowPool::Share(pool, std::move(built));
    loaded = wanted;
    counts.wait_s += SecondsSince(start);
    ++counts.windows;
    if (workers) FillQueue(After(wanted));
    counts.most_windows_ahead = std::max(counts.most_windows_ahead, static_cast<int64_t>(ahead.size()));
    counts.most_held_bytes = std::max(
        counts.most_held_bytes,
        static_cast<int64_t>(pool->held_bytes() + window->size_bytes() * ahead.size()) + frames.held_bytes());
  }

  /// Waits for the window at the head of the queue, and says what for when that takes long.
  void AwaitWindow(WindowId wanted) {
    double next_s = loader.stall_warning_s, waited_s = 0;
    while (!workers->WaitFor(std::chrono::duration<double>(next_s - waited_s))) {
      waited_s = next_s;
      next_s *= 2;
      std::string what =
          "window " + std::to_string(wanted.window) + " of epoch " + std::to_string(wanted.epoch);
      for (const Reading& worker : reading) {
        const uint64_t chunk = worker.chunk.load(std::memory_order_relaxed);
        if (chunk > 0 && worker.number.load(std::memory_order_relaxed) == NumberOf(wanted))
          what = PlaceOf(chunk - 1);
      }
      LogWarning("waiting for data for " + FormatFixed(waited_s, waited_s < 1 ? 1 : 0) + " s: " + what +
                 " is not read yet");
    }
  }

  uint64_t NumberOf(WindowId id) const { return id.epoch * windows() + id.window; }
  std::string PlaceOf(uint64_t chunk) const {
    const ChunkLocation location = LocateChunk(*set, chunk);
    return "chunk " + std::to_string(chunk) + " (shard " + std::to_string(location.shard) + ", frame " +
           std::to_string(location.frame) + ", byte " + std::to_string(location.offset) + ")";
  }

  SampleWindow PopWindow(WindowId wanted) {
    while (!ahead.empty() && ahead.front() != wanted) {
      ahead.pop_front();
      try {
        workers->Pop();
      } catch (const std::exception&) {
        // A window that nobody asked for: if it is ever wanted, it is read, and fails, again.
      }
    }
    FillQueue(wanted);
    AwaitWindow(wanted);
    ahead.pop_front();
    return workers->Pop();
  }

  /// Keeps as many windows under way as may be, from `next` on when there are none.
  void FillQueue(WindowId next) {
    while (!workers->full()) {
      ahead.push_back(ahead.empty() ? next : After(ahead.back()));
      try {
        workers->Push(ahead.back());
      } catch (...) {
        ahead.pop_back();
        throw;
      }
    }
  }

  /// Whether any sample of the set has a label.
  bool HasLabel() const {
    const ShardTotals& totals = set->totals();
    // More tokens than documents: some token follows another of its document.
    if (!options.split &&
        (masked() ? totals.loss_tokens > totals.documents : totals.tokens > totals.documents)) {
      return true;
    }
    for (uint64_t chunk = 0; chunk < set->chunks();) {
      SampleWindow some = EmptyWindow(*set);
      chunk = CutFrame(chunk, &some);
      for (const SampleWindow::Entry& sample : some.samples) {
        if (LabelsOf(some, sample) > 0) return true;
      }
    }
    return false;
  }

  static int64_t LabelsOf(const SampleWindow& some, const SampleWindow::Entry& sample) {
    return CountLabels(std::span(some.spans).subspan(sample.span_begin, sample.span_end - sample.span_begin),
                       some.predicted);
  }

  /// Cuts the chunks of the frame that begins with `chunk`. What cannot be read counts as empty where it may
  /// be skipped.
  /// \returns the chunk behind the frame
  uint64_t CutFrame(uint64_t chunk, SampleWindow* some) const {
    const PassFrame frame = ReadPassFrame(*set, chunk, loader.skip_bad_chunks > 0);
    for (const Chunk& content : frame.chunks) CutChunk(content, options, masked(), 0, some);
    return frame.next_chunk;
  }

  const ShardSet* set;
  const SampleStreamOptions options;
  const LoaderOptions loader;
  FrameCache frames;
  const std::shared_ptr<WindowPool> pool = std::make_shared<WindowPool>();
  std::vector<Reading> reading;  // a worker each
  const ChunkOrder order;
  SampleCursor cursor;
  std::set<uint64_t> known_bad;                // of the run before it was resumed; constant once workers read
  std::set<uint64_t> skipped;                  // of the windows in use so far, and those
  std::shared_ptr<const SampleWindow> window;  // null until one was loaded
  std::optional<WindowId> loaded;              // which one it is
  std::deque<WindowId> ahead;                  // the windows that the workers build or have ready, in order
  uint64_t epoch_of_last = 0;                  // of the sample handed out last
  LoaderCounts counts;
  // Last: joins before the members it reads are gone. Absent without workers.
  std::optional<OrderedWorkers<WindowId, SampleWindow>> workers;
};

SampleStream::SampleStream(const ShardSet* set, const SampleStreamOptions& options,
                           const LoaderOptions& loader) {
  if (options.sequence_tokens < 1) throw Error(ErrorCode::kUsage, "--seq", "must be at least 1 token");
  if (options.window_chunks < 1) throw Error(ErrorCode::kUsage, "window", "must be at least 1 chunk");
  if (loader.workers < 0) throw Error(ErrorCode::kUsage, "--workers", "must be at least 0");
  if (loader.prefetch < 1) throw Error(ErrorCode::kUsage, "--prefetch", "must be at least 1 window");
  if (set->chunks() > 0) impl_ = std::make_unique<Impl>(set, options, loader);
  if (!impl_ || !impl_->HasLabel()) {
    throw Error(ErrorCode::kBadInput, "shards",
                impl_ && impl_->masked()
                    ? "hold no conversation with a token to predict, so there is nothing to learn"
                    : "hold no document of two or more tokens, so there is nothing to learn",
                "", "look at the set with pack --info");
  }
}

SampleStream::~SampleStream() = default;

Sample SampleStream::Next() {
  for (uint64_t empty_windows = 0; empty_windows <= impl_->windows(); ++empty_windows) {
    SampleCursor& cursor = impl_->cursor;
    if (impl_->loaded != WindowId{cursor.epoch, cursor.window}) {
      impl_->LoadWindow();
      if (cursor.sample > impl_->window->samples.size()) {
        throw Error(ErrorCode::kBadInput, "data position",
                    "sample " + std::to_string(cursor.sample) + " lies beyond its window of " +
                        std::to_string(impl_->window->samples.size()) + " samples",
                    "epoch " + std::to_string(cursor.epoch) + ", window " + std::to_string(cursor.window));
      }
    }
    const uint64_t count = impl_->window->samples.size();
    std::optional<Sample> sample;
    if (cursor.sample < count) {
      sample.emplace(impl_->window, cursor.sample++);
      impl_->epoch_of_last = cursor.epoch;
    }
    if (cursor.sample >= count) {
      const WindowId next = impl_->After({cursor.epoch, cursor.window});
      cursor = {next.epoch, next.window, 0};
    }
    if (sample) return std::move(*sample);
  }
  throw Error(ErrorCode::kBadInput, "shards",
              "hold no sample with a token to predict in the chunks that can be read", "",
              "restore the chunks that --skip-bad-chunks leaves out");
}

std::vector<Sample> SampleStream::NextStep(int64_t count, bool drop_last) {
  const SampleCursor begin = impl_->cursor;
  try {
    return TakeStep(count, drop_last);
  } catch (...) {
    impl_->cursor = begin;  // a step that could not be read whole was not taken
    throw;
  }
}

std::vector<Sample> SampleStream::TakeStep(int64_t count, bool drop_last) {
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

std::vector<Sample> SampleStream::NextShare(int64_t count, bool drop_last, int64_t rank, int64_t world) {
  TRAINWRIGHT_CHECK(0 <= rank && rank < world);
  std::vector<Sample> step = NextStep(count, drop_last), share;
  for (auto i = static_cast<size_t>(rank); i < step.size(); i += static_cast<size_t>(world)) {
    share.push_back(std::move(step[i]));
  }
  return share;
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
}

double SampleStream::epochs() const {
  const SampleCursor& cursor = impl_->cursor;
  double in_window = 0;
  if (impl_->loaded == WindowId{cursor.epoch, cursor.window}) {
    const size_t samples = std::max<size_t>(1, impl_->window->samples.size());
    in_window = static_cast<double>(cursor.sample) / static_cast<double>(samples);
  }
  return static_cast<double>(cursor.epoch) +
         (static_cast<double>(cursor.window) + in_window) / static_cast<double>(impl_->windows());
}

EpochCounts SampleStream::CountEpoch() const {
  const std::vector<OrderedSet>& sets = impl_->order.sets();
  // An epoch has as many slots of each set as the first one, on average.
  const std::vector<uint64_t> slots = impl_->order.CountsOf(impl_->order.slots());
  EpochCounts counts;
  for (size_t set = 0; set < sets.size(); ++set) {
    EpochCounts pass;
    const uint64_t end = sets[set].first_chunk + sets[set].chunks;
    for (uint64_t chunk = sets[set].first_chunk; chunk < end;) {
      ThrowIfStopped();
      SampleWindow some = EmptyWindow(*impl_->set);
      chunk = impl_->CutFrame(chunk, &some);
      pass.samples += some.samples.size();
      for (const SampleWindow::Entry& sample : some.samples) {
        pass.tokens += sample.tokens;
        pass.labels += static_cast<uint64_t>(Impl::LabelsOf(some, sample));
      }
    }
    const auto share = [&](uint64_t of_pass) {
      return static_cast<uint64_t>(static_cast<unsigned __int128>(of_pass) * slots[set] / sets[set].chunks);
    };
    counts.samples += share(pass.samples);
    counts.tokens += share(pass.tokens);
    counts.labels += share(pass.labels);
  }
  return counts;
}

std::vector<uint64_t> SampleStream::bad_chunks() const {
  return {impl_->skipped.begin(), impl_->skipped.end()};
}

void SampleStream::set_bad_chunks(const std::vector<uint64_t>& chunks) {
  TRAINWRIGHT_CHECK(impl_->ahead.empty() && !impl_->loaded);
  if (chunks.size() > impl_->loader.skip_bad_chunks) {
    throw Error(ErrorCode::kUsage, "--skip-bad-chunks",
                "the run has left out " + std::to_string(chunks.size()) + " chunks that could not be read",
                "", "give at least --skip-bad-chunks " + std::to_string(chunks.size()));
  }
  impl_->known_bad = impl_->skipped = {chunks.begin(), chunks.end()};
}

const ChunkOrder& SampleStream::order() const {
  return impl_->order;
}

LoaderCounts SampleStream::loader_counts() const {
  return impl_->counts;
}

std::string SampleStream::fingerprint() const {
  const SampleStreamOptions& options = impl_->options;
  std::string mixture;
  for (const OrderedSet& part : options.sets) {
    mixture += "set of " + std::to_string(part.chunks) + " weight " + std::to_string(part.weight) + "\n";
  }
  const std::string identity =
      "trainwright sample order 1\ncontent " + HexEncode(impl_->set->content_sha256()) + "\nseed " +
      std::to_string(options.seed) + "\nsequence_tokens " + std::to_string(options.sequence_tokens) +
      "\nwindow_chunks " + std::to_string(options.window_chunks) + "\nshuffle " +
      (options.shuffle ? "1" : "0") + "\n" + (impl_->masked() ? "loss_on assistant\n" : "") +
      (options.split ? "held out below " + std::to_string(options.split->bound) + " seed " +
                           std::to_string(options.split->seed) + "\n"
                     : "") +
      (options.block_chunks > 1 ? "block_chunks " + std::to_string(options.block_chunks) + "\n" : "") +
      mixture;
  return HexEncode(Sha256Of(AsBytes(identity)));
}

}  // namespace trainwright

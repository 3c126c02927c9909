#include "lib/loading/sample_loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/formats/chunk_range.h"
#include "lib/loading/set_names.h"
#include "lib/loading/window_builder.h"
#include "lib/loading/window_prefetcher.h"

namespace trainwright {
namespace {

Error NothingToLearn(const ShardSet& set, const SampleCutter& cutter, std::span<const OrderedSet> sets) {
  return {ErrorCode::kBadInput, NamesOfSets(set, sets), cutter.NothingToLearn(), "",
          "look at the set with pack --info"};
}

/// \throws Error{kBadInput} without chunks
SampleOrder OrderOf(const ShardSet& set, const SampleCutter& cutter, const SampleOrderOptions& options) {
  if (set.chunks() == 0) throw NothingToLearn(set, cutter, options.sets);
  return {options, set.chunks()};
}

SampleWindow EmptyWindow(const ShardSet& set) {
  SampleWindow window;
  window.tokens = TokenRun(set.header().tokenizer.vocab_size);
  return window;
}

/// \param numbered of an objective that never mixes epochs, whether --drop-last is given or not
Error TooFewForAStep(size_t samples, int64_t step_samples, bool numbered) {
  const std::string has = std::to_string(samples), takes = std::to_string(step_samples);
  if (numbered) {
    return {ErrorCode::kBadInput, "--data",
            "holds " + has + " records for an epoch, and a step takes " + takes, "",
            "lower --batch or --accum"};
  }
  return {ErrorCode::kBadInput, "--drop-last",
          "skips everything: an epoch has " + has + " samples, a step takes " + takes, "",
          "lower --batch or --accum, or leave out --drop-last"};
}

/// \param sets that are read
Error NothingToRead(const ShardSet& set, std::span<const OrderedSet> sets) {
  return {ErrorCode::kBadInput, NamesOfSets(set, sets), "hold no sample in the chunks that can be read", "",
          "restore the chunks that --skip-bad-chunks leaves out"};
}

uint64_t StoredTokens(const Chunk& chunk) {
  uint64_t tokens = 0;
  for (const Segment& segment : chunk.segments) {
    if (!(segment.flags & kSegmentPadding)) tokens += segment.tokens;
  }
  return tokens;
}

uint64_t UnreadableOf(const std::vector<bool>& readable) {
  return static_cast<uint64_t>(std::count(readable.begin(), readable.end(), false));
}

}  // namespace

SampleLoader::SampleLoader(const ShardSet* set, std::unique_ptr<const SampleCutter> cutter,
                           const SampleOrderOptions& order, const LoaderOptions& loader)
    : set_(set),
      cutter_(std::move(cutter)),
      order_(OrderOf(*set, *cutter_, order)),
      options_(loader),
      skipped_(loader.skip_bad_chunks),
      builder_(std::make_unique<WindowBuilder>(set, cutter_.get(), &order_, loader.cache_bytes,
                                               loader.skip_bad_chunks)),
      prefetcher_(std::make_unique<WindowPrefetcher>(set, &order_, builder_.get(), loader)) {
  if (!HasLabel()) throw NothingToLearn(*set_, *cutter_, order.sets);
}

SampleLoader::~SampleLoader() = default;

Sample SampleLoader::Next() {
  for (uint64_t empty_windows = 0; empty_windows <= order_.windows(); ++empty_windows) {
    if (loaded_ != WindowOfCursor()) {
      LoadWindow();
      if (cursor_.sample > window_->samples.size()) {
        throw Error(ErrorCode::kBadInput, "data position",
                    "sample " + std::to_string(cursor_.sample) + " lies beyond its window of " +
                        std::to_string(window_->samples.size()) + " samples",
                    "epoch " + std::to_string(cursor_.epoch) + ", window " + std::to_string(cursor_.window));
      }
    }
    const uint64_t count = window_->samples.size();
    std::optional<Sample> sample;
    if (cursor_.sample < count) {
      sample.emplace(window_, cursor_.sample++, cursor_.taken);
      if (order_.numbered()) ++cursor_.taken;
      epoch_of_last_ = cursor_.epoch;
    }
    if (cursor_.sample >= count) {
      const WindowId next = order_.After(WindowOfCursor());
      cursor_ = {.epoch = next.epoch, .window = next.window, .taken = cursor_.taken};
    }
    if (sample) return std::move(*sample);
  }
  throw NothingToRead(*set_, order().sets());
}

void SampleLoader::LoadWindow() {
  const WindowId wanted = WindowOfCursor();
  const auto start = std::chrono::steady_clock::now();
  loaded_.reset();
  window_.reset();
  BuiltWindow built = TakeWindow(wanted);
  skipped_.TakeOver(built.bad);
  window_ = builder_->Share(std::move(built.samples));
  TellCuts();
  loaded_ = wanted;
  counts_.wait_s += SecondsSince(start);
  ++counts_.windows;
  prefetcher_->BuildAhead(order_.After(windows_ahead_.empty() ? wanted : windows_ahead_.back().id));
  const auto ahead = static_cast<int64_t>(prefetcher_->windows_ahead());
  const auto window_bytes = static_cast<int64_t>(window_->size_bytes());
  counts_.most_windows_ahead = std::max(counts_.most_windows_ahead, ahead);
  const int64_t held_ahead = ahead + static_cast<int64_t>(windows_ahead_.size());
  counts_.most_held_bytes =
      std::max(counts_.most_held_bytes, builder_->held_bytes() + window_bytes * held_ahead);
}

BuiltWindow SampleLoader::TakeWindow(WindowId wanted) {
  while (!windows_ahead_.empty()) {
    const WindowAhead first = std::move(windows_ahead_.front());
    windows_ahead_.pop_front();
    if (first.id == wanted) return WithoutSkipped(wanted, std::move(*first.built));
    builder_->Discard(std::move(*first.built));
  }
  return WithoutSkipped(wanted, prefetcher_->Take(wanted, skipped_.chunks()));
}

const BuiltWindow& SampleLoader::LookAhead(WindowId id) {
  for (const WindowAhead& window : windows_ahead_) {
    if (window.id == id) return *window.built;
  }
  const auto start = std::chrono::steady_clock::now();
  BuiltWindow built = WithoutSkipped(id, prefetcher_->Take(id, skipped_.chunks()));
  counts_.wait_s += SecondsSince(start);
  windows_ahead_.push_back({id, std::make_unique<BuiltWindow>(std::move(built))});
  return *windows_ahead_.back().built;
}

BuiltWindow SampleLoader::WithoutSkipped(WindowId id, BuiltWindow built) {
  if (!skipped_.HoldsAny(built.chunks)) return built;
  builder_->Discard(std::move(built));
  ReadingMark own_reading = 0;
  return builder_->Build(id, skipped_.chunks(), &own_reading);
}

void SampleLoader::TellCuts() {
  if (told_cuts_ || window_->cuts == CutCounts()) return;
  told_cuts_ = true;
  const std::string text = cutter_->TellCuts(window_->cuts);
  if (!text.empty()) {
    LogInfo("in the first " + std::to_string(window_->samples.size()) + " samples " + text);
  }
}

std::vector<Sample> SampleLoader::NextStep(int64_t count, bool drop_last) {
  const SampleCursor begin = cursor_;
  try {
    return TakeStep(count, drop_last);
  } catch (...) {
    cursor_ = begin;  // a step that could not be read whole was not taken
    throw;
  }
}

std::vector<Sample> SampleLoader::TakeStep(int64_t count, bool drop_last) {
  std::vector<Sample> step;
  uint64_t first_epoch = 0;
  bool skipped = false;
  while (static_cast<int64_t>(step.size()) < count) {
    Sample sample = Next();
    const uint64_t epoch = epoch_of_last_;
    if (step.empty()) first_epoch = epoch;
    if (drop_last && epoch != first_epoch) {
      if (skipped) {
        throw TooFewForAStep(step.size(), count, order_.numbered());
      }
      step.clear();
      first_epoch = epoch;
      skipped = true;
    }
    step.push_back(std::move(sample));
  }
  return step;
}

void SampleLoader::Seek(const SampleCursor& cursor) {
  if (cursor.window >= order_.windows()) {
    throw Error(
        ErrorCode::kBadInput, "data position",
        "window " + std::to_string(cursor.window) + " of a set of " + std::to_string(order_.windows()));
  }
  cursor_ = cursor;
}

double SampleLoader::epochs() const {
  double in_window = 0;
  if (loaded_ == WindowOfCursor()) {
    const size_t samples = std::max<size_t>(1, window_->samples.size());
    in_window = static_cast<double>(cursor_.sample) / static_cast<double>(samples);
  }
  return static_cast<double>(cursor_.epoch) + order_.ShareBefore(WindowOfCursor(), in_window);
}

bool SampleLoader::HoldsInEpoch(int64_t count) {
  uint64_t left = 0;
  WindowId id = WindowOfCursor();
  if (loaded_ == id) {
    left = window_->samples.size() - cursor_.sample;
    id = order_.After(id);
  }
  for (; left < static_cast<uint64_t>(count) && id.epoch == cursor_.epoch; id = order_.After(id)) {
    try {
      left += LookAhead(id).samples.samples.size();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kBadInput || error.code() == ErrorCode::kIo) return true;
      throw;
    }
  }
  return left >= static_cast<uint64_t>(count);
}

EpochCounts SampleLoader::CountEpoch() const {
  if (rules() != nullptr) return CountByRules();
  const std::vector<OrderedSet>& sets = order().sets();
  // An epoch has as many slots of each set as the first one, on average.
  const std::vector<uint64_t> slots = order().CountsOf(order().slots());
  EpochCounts counts;
  for (uint32_t set = 0; set < sets.size(); ++set) {
    const EpochCounts pass = CountPass(set);
    const auto share = [&](uint64_t of_pass) {
      return static_cast<uint64_t>(static_cast<unsigned __int128>(of_pass) * slots[set] / sets[set].chunks);
    };
    counts.samples += share(pass.samples);
    counts.tokens += share(pass.tokens);
    counts.labels += share(pass.labels);
    counts.stored_tokens += share(pass.stored_tokens);
    counts.longest_tokens = std::max(counts.longest_tokens, pass.longest_tokens);
    counts.unreadable_chunks += pass.unreadable_chunks;
  }
  if (counts.samples == 0 && counts.unreadable_chunks > 0) throw NothingToRead(*set_, sets);
  return counts;
}

EpochCounts SampleLoader::CountPass(uint32_t set) const {
  const OrderedSet& part = order().sets()[set];
  EpochCounts pass;
  const auto add = [&](const Chunk& chunk) {
    SampleWindow some = EmptyWindow(*set_);
    cutter_->Cut(chunk, &some);
    pass.samples += some.samples.size();
    pass.stored_tokens += StoredTokens(chunk);
    for (const SampleWindow::Entry& sample : some.samples) {
      pass.tokens += sample.tokens;
      pass.labels += sample.labels;
      pass.longest_tokens = std::max<uint64_t>(pass.longest_tokens, sample.tokens);
    }
  };
  std::vector<bool> readable(part.chunks);
  VisitChunks(*set_, {part.first_chunk, part.chunks}, options_.skip_bad_chunks > 0,
              [&](uint64_t number, const Chunk& chunk) {
                readable.at(number - part.first_chunk) = true;
                add(chunk);
                return true;
              });
  RequireReadable(set, readable);
  pass.unreadable_chunks = UnreadableOf(readable);
  // They are few: reading them once more takes no memory for what each chunk of the set gives.
  for (const uint64_t substitute : order().SubstitutesOf(set, /*pass=*/0, readable)) {
    ThrowIfStopped();
    uint64_t first_chunk = 0;
    const std::vector<Chunk> frame = set_->ReadFrameOf(substitute, &first_chunk);
    add(frame.at(substitute - first_chunk));
  }
  return pass;
}

EpochCounts SampleLoader::CountByRules() const {
  const SampleDraws& draws = *rules();
  const DrawRules& asked = draws.rules();
  const SampleIndex& index = *asked.index;
  EpochCounts counts;
  counts.samples = draws.own_samples() + draws.extra_samples();
  uint64_t labels = 0;
  for (uint32_t set = 0; set < index.sets(); ++set) {
    labels += index.labels_of(set);
    RequireReadable(set, index.readable_of(set));
    counts.unreadable_chunks += UnreadableOf(index.readable_of(set));
    for (const uint64_t chunk : order().SubstitutesOf(set, /*pass=*/0, index.readable_of(set))) {
      for (uint32_t i = 0; i < index.samples_in(chunk); ++i) counts.samples += draws.Keeps(chunk, i) ? 1 : 0;
    }
  }
  if (asked.run_epoch_samples > 0) counts.samples = asked.run_epoch_samples;
  const auto scaled = [&](double of_samples, uint64_t samples) {
    const double mean = of_samples / static_cast<double>(std::max<uint64_t>(1, samples));
    return static_cast<uint64_t>(std::llround(mean * static_cast<double>(counts.samples)));
  };
  counts.tokens = asked.run_epoch_tokens;
  if (counts.tokens == 0) counts.tokens = scaled(draws.kept_tokens(), draws.own_samples());
  counts.labels = scaled(static_cast<double>(labels), index.samples());
  return counts;
}

void SampleLoader::RequireReadable(uint32_t set, const std::vector<bool>& readable) const {
  if (UnreadableOf(readable) < readable.size()) return;
  throw NothingToRead(*set_, std::span(&order().sets()[set], 1));
}

bool SampleLoader::HasLabel() const {
  if (rules() != nullptr) {
    const SampleIndex& index = *rules()->rules().index;
    for (size_t set = 0; set < index.sets(); ++set) {
      if (rules()->kept_of(set) > 0 && index.labels_of(set) > 0) return true;
    }
    return false;
  }
  const bool reads_all = order().slots() == set_->chunks();
  if (reads_all && cutter_->HasLabel(set_->totals())) return true;
  bool has_label = false;
  for (const OrderedSet& set : order().sets()) {
    CutChunks(set, [&](const std::vector<SampleWindow::Entry>& samples) {
      has_label = std::any_of(samples.begin(), samples.end(),
                              [](const SampleWindow::Entry& sample) { return sample.labels > 0; });
      return !has_label;
    });
    if (has_label) return true;
  }
  return false;
}

template <typename Use>
void SampleLoader::CutChunks(const OrderedSet& set, const Use& use) const {
  VisitChunks(*set_, {set.first_chunk, set.chunks}, options_.skip_bad_chunks > 0,
              [&](uint64_t, const Chunk& chunk) {
                SampleWindow some = EmptyWindow(*set_);
                cutter_->Cut(chunk, &some);
                return use(some.samples);
              });
}

std::vector<uint64_t> SampleLoader::bad_chunks() const {
  return {skipped_.chunks().begin(), skipped_.chunks().end()};
}

void SampleLoader::set_bad_chunks(const std::vector<uint64_t>& chunks) {
  TRAINWRIGHT_CHECK(!loaded_);
  skipped_.Restore(chunks);
  prefetcher_->set_known_bad(skipped_.chunks());
}

LoaderState SampleLoader::state() const {
  return {.cursor = cursor_, .bad_chunks = bad_chunks(), .order_fingerprint = fingerprint()};
}

void SampleLoader::Restore(const LoaderState& state) {
  if (state.order_fingerprint != fingerprint()) {
    throw Error(ErrorCode::kBadInput, "data position", "is one in other data, or in another order of it");
  }
  set_bad_chunks(state.bad_chunks);
  Seek(state.cursor);
}

}  // namespace trainwright

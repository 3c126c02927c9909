#include "lib/loading/window_builder.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "lib/loading/set_names.h"

namespace trainwright {
namespace {

/// The same error with the chunk's place in the set.
Error PlacedError(const Error& error, const ShardSet& set, uint64_t chunk) {
  const ChunkLocation location = LocateChunk(set, chunk);
  return {error.code(), error.object(), error.problem(),
          "shard " + std::to_string(location.shard) + ", frame " + std::to_string(location.frame) +
              (error.place().empty() ? "" : ", ") + error.place(),
          "restore the file, or train without its chunks by --skip-bad-chunks N"};
}

}  // namespace

/// One window on its way.
class WindowBuilder::Work {
 public:
  Work(WindowBuilder* builder, const std::set<uint64_t>& bad, ReadingMark* reading)
      : builder_(*builder), bad_(bad), reading_(*reading) {
    built_.samples.tokens = builder->pool_->Take(builder->set_->header().tokenizer.vocab_size);
  }

 protected:
  ~Work() = default;

  /// As FrameCache::ReadChunks, of chunks that are not known to be bad; takes note of wanted[begin] when it
  /// cannot be read.
  /// \returns how many chunks were taken; 0: it cannot be read and may be skipped
  template <typename Take>
  size_t TryRead(const std::vector<uint64_t>& wanted, size_t begin, const Take& take) {
    const uint64_t chunk = wanted[begin];
    reading_.store(chunk + 1, std::memory_order_relaxed);
    try {
      return builder_.frames_.ReadChunks(wanted, begin, take);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadInput) throw;
      const Error placed = PlacedError(error, *builder_.set_, chunk);
      if (builder_.most_bad_ == 0) throw placed;
      bad_.insert(chunk);
      built_.bad.push_back({chunk, placed});
      return 0;
    }
  }

  /// Reads chunks as they lie, so that a frame that holds several of them is decoded once.
  /// \param wanted ascending; may hold one more than once
  /// \param take told the place in `wanted` and the chunk of each that can be read
  /// \param lacks told the place of each that cannot be, or is known to be bad
  template <typename Take, typename Lacks>
  void ReadAll(const std::vector<uint64_t>& wanted, const Take& take, const Lacks& lacks) {
    for (size_t i = 0; i < wanted.size();) {
      const auto take_or_not = [&](size_t taken, const Chunk& chunk) {
        // A chunk that is known to be bad stays out although its frame can be read by now.
        if (bad_.contains(wanted[taken])) {
          lacks(taken);
        } else {
          take(taken, chunk);
        }
      };
      const size_t read = bad_.contains(wanted[i]) ? 0 : TryRead(wanted, i, take_or_not);
      if (read == 0) lacks(i);
      i += std::max<size_t>(read, 1);
    }
  }

  /// Reads substitutes of a chunk until `take` has found what it wants in one of them.
  /// \param take given the number and the chunk; says whether it has
  /// \throws Error{kBadInput} when there is none
  template <typename Take>
  void ReadSubstitute(const ChunkDraw& draw, const Take& take) {
    const ChunkOrder& order = builder_.order_->chunk_order();
    // With more bad chunks than may be the window fails anyway.
    for (uint64_t attempt = 0; built_.bad.size() <= builder_.most_bad_; ++attempt) {
      if (attempt == order.sets()[draw.set].chunks) {
        throw Error(ErrorCode::kBadInput, NamesOfSets(*builder_.set_, std::span(&order.sets()[draw.set], 1)),
                    "hold no chunk that can be read in place of a bad one");
      }
      const std::vector<uint64_t> substitute = {order.Substitute(draw, attempt)};
      if (bad_.contains(substitute[0])) continue;
      bool taken = false;
      const auto try_take = [&](size_t, const Chunk& chunk) { taken = take(substitute[0], chunk); };
      if (TryRead(substitute, 0, try_take) > 0 && taken) return;
    }
  }

  /// Appends the samples of a chunk that are kept to `window`.
  void CutInto(uint64_t number, const Chunk& chunk, SampleWindow* window) const {
    const size_t begin = window->samples.size();
    builder_.cutter_->Cut(chunk, window);
    const SampleDraws* rules = builder_.order_->rules();
    if (rules == nullptr) return;
    size_t kept = begin;
    for (size_t i = begin; i < window->samples.size(); ++i) {
      if (rules->Keeps(number, static_cast<uint32_t>(i - begin))) {
        window->samples[kept++] = window->samples[i];
      }
    }
    window->samples.resize(kept);
  }

  /// OrderedSet::number of a set of the order.
  uint32_t NumberOf(size_t set) const { return builder_.order_->chunk_order().sets()[set].number; }

  BuiltWindow Finish() {
    reading_.store(0, std::memory_order_relaxed);
    return std::move(built_);
  }

  WindowBuilder& builder_;
  std::set<uint64_t> bad_;
  ReadingMark& reading_;
  BuiltWindow built_;
};

/// A window of whole chunks. Slot i takes the window's i-th chunk; their samples are put in the order of the
/// slots when all are cut.
class WindowBuilder::ChunkWork : public Work {
 public:
  ChunkWork(WindowBuilder* builder, WindowId id, const std::set<uint64_t>& bad, ReadingMark* reading)
      : Work(builder, bad, reading), draws_(builder->order_->DrawsOf(id)), samples_of_slot_(draws_.size()) {
    built_.samples.tokens.reserve(draws_.size() * builder->set_->header().chunk_tokens);
  }

  /// \returns the window, its samples in the order of the slots
  BuiltWindow Build() {
    for (const uint64_t slot : ReadDrawn()) {
      ReadSubstitute(draws_[slot], [&](uint64_t number, const Chunk& chunk) {
        Cut(slot, number, chunk);
        return true;
      });
    }
    std::vector<SampleWindow::Entry> by_slot;
    by_slot.reserve(built_.samples.samples.size());
    for (const auto& [begin, end] : samples_of_slot_) {
      for (size_t i = begin; i < end; ++i) by_slot.push_back(built_.samples.samples[i]);
    }
    built_.samples.samples = std::move(by_slot);
    return Finish();
  }

 private:
  /// Cuts the chunks that can be read.
  /// \returns the slots of those that cannot
  std::vector<uint64_t> ReadDrawn() {
    std::vector<std::pair<uint64_t, uint64_t>> slot_of_chunk;
    for (uint64_t slot = 0; slot < draws_.size(); ++slot) {
      slot_of_chunk.emplace_back(draws_[slot].chunk, slot);
    }
    std::sort(slot_of_chunk.begin(), slot_of_chunk.end());
    std::vector<uint64_t> wanted, slots_to_fill;
    for (const auto& [chunk, slot] : slot_of_chunk) wanted.push_back(chunk);
    ReadAll(
        wanted, [&](size_t i, const Chunk& chunk) { Cut(slot_of_chunk[i].second, wanted[i], chunk); },
        [&](size_t i) { slots_to_fill.push_back(slot_of_chunk[i].second); });
    return slots_to_fill;
  }

  void Cut(uint64_t slot, uint64_t number, const Chunk& chunk) {
    SampleWindow& window = built_.samples;
    const size_t begin = window.samples.size();
    CutInto(number, chunk, &window);
    const uint32_t set = NumberOf(draws_[slot].set);
    for (size_t i = begin; i < window.samples.size(); ++i) window.samples[i].set = set;
    samples_of_slot_[slot] = {begin, window.samples.size()};
    built_.chunks.push_back(number);
  }

  const std::vector<ChunkDraw> draws_;
  std::vector<std::pair<size_t, size_t>> samples_of_slot_;  // [begin, end) in the order they are cut
};

/// A window of samples that are drawn one by one: each frame is decoded once for all that are drawn from it,
/// and of a chunk only these are kept.
class WindowBuilder::DrawWork : public Work {
 public:
  DrawWork(WindowBuilder* builder, WindowId id, const std::set<uint64_t>& bad, ReadingMark* reading)
      : Work(builder, bad, reading), id_(id), draws_(builder->order_->ExtraOf(id)), drawn_(draws_.size()) {}

  /// \returns the window, its samples in the order of the draws
  BuiltWindow Build() {
    std::vector<size_t> by_place(draws_.size());
    std::iota(by_place.begin(), by_place.end(), size_t{0});
    const auto place_of = [&](size_t i) { return std::pair(draws_[i].place.chunk, i); };
    std::sort(by_place.begin(), by_place.end(),
              [&](size_t a, size_t b) { return place_of(a) < place_of(b); });
    std::vector<uint64_t> wanted;
    for (const size_t draw : by_place) wanted.push_back(draws_[draw].place.chunk);
    std::vector<size_t> lacking;
    ReadAll(
        wanted,
        [&](size_t i, const Chunk& chunk) {
          CutOnce(wanted[i], chunk);
          // The index counted the same samples, so it is there.
          Take(by_place[i], all_.samples.at(draws_[by_place[i]].place.number));
        },
        [&](size_t i) { lacking.push_back(by_place[i]); });
    for (const size_t draw : lacking) Substitute(draw);
    built_.samples.samples = std::move(drawn_);
    return Finish();
  }

 private:
  /// Makes all_ the samples of the chunk, unless it is already.
  void CutOnce(uint64_t number, const Chunk& chunk) {
    if (cut_ == number) return;
    all_ = {};
    builder_.cutter_->Cut(chunk, &all_);
    cut_ = number;
    built_.chunks.push_back(number);
  }

  void Take(size_t draw, const SampleWindow::Entry& sample) {
    drawn_[draw] = CopySample(all_, sample, &built_.samples);
    drawn_[draw].set = NumberOf(draws_[draw].set);
  }

  /// Takes one of the samples of the first substitute that holds any.
  void Substitute(size_t draw) {
    const SampleDraws::Draw& drawn = draws_[draw];
    const uint64_t first_chunk = builder_.order_->chunk_order().sets()[drawn.set].first_chunk;
    const ChunkDraw lost = {.set = static_cast<uint32_t>(drawn.set),
                            .pass = id_.epoch,
                            .place = drawn.place.chunk - first_chunk,
                            .chunk = drawn.place.chunk};
    ReadSubstitute(lost, [&](uint64_t number, const Chunk& chunk) {
      all_ = {};
      CutInto(number, chunk, &all_);
      cut_.reset();
      built_.chunks.push_back(number);
      if (all_.samples.empty()) return false;
      Take(draw, all_.samples[drawn.place.number % all_.samples.size()]);
      return true;
    });
  }

  const WindowId id_;
  const std::vector<SampleDraws::Draw> draws_;
  std::vector<SampleWindow::Entry> drawn_;  // one a draw
  SampleWindow all_;                        // of the chunk that was cut last, ids of 32 bits
  std::optional<uint64_t> cut_;             // which one that is, where all its samples are there
};

WindowBuilder::WindowBuilder(const ShardSet* set, const SampleCutter* cutter, const SampleOrder* order,
                             int64_t cache_bytes, uint64_t most_bad)
    : set_(set), cutter_(cutter), order_(order), most_bad_(most_bad), frames_(set, cache_bytes) {}

BuiltWindow WindowBuilder::Build(WindowId id, const std::set<uint64_t>& bad, ReadingMark* reading) {
  if (order_->IsDrawn(id)) return DrawWork(this, id, bad, reading).Build();
  BuiltWindow built = ChunkWork(this, id, bad, reading).Build();
  order_->Permute(id, &built.samples.samples);
  return built;
}

}  // namespace trainwright

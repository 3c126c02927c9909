#include "lib/loading/window_builder.h"

#include <algorithm>
#include <string>
#include <utility>

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

/// One window on its way. Slot i takes the window's i-th chunk; chunks are read as they lie, so that a frame
/// that holds several of them is decoded once, and their samples put in the order of the slots afterwards.
class WindowBuilder::Work {
 public:
  Work(WindowBuilder* builder, WindowId id, const std::set<uint64_t>& bad, ReadingMark* reading)
      : builder_(*builder),
        draws_(builder->order_->DrawsOf(id)),
        samples_of_slot_(draws_.size()),
        bad_(bad),
        reading_(*reading) {
    const ShardSetHeader& header = builder->set_->header();
    built_.samples.tokens = builder->pool_->Take(header.tokenizer.vocab_size);
    built_.samples.tokens.reserve(draws_.size() * header.chunk_tokens);
  }

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
    for (size_t i = 0; i < wanted.size();) {
      const auto take = [&](size_t taken, const Chunk& chunk) {
        const uint64_t slot = slot_of_chunk[taken].second;
        // A chunk that is known to be bad stays out although its frame can be read by now.
        if (bad_.contains(wanted[taken])) {
          slots_to_fill.push_back(slot);
        } else {
          Cut(slot, wanted[taken], chunk);
        }
      };
      const size_t read = bad_.contains(wanted[i]) ? 0 : TryRead(wanted, i, take);
      if (read == 0) slots_to_fill.push_back(slot_of_chunk[i].second);
      i += std::max<size_t>(read, 1);
    }
    return slots_to_fill;
  }

  /// Puts the first of the slot's substitutes that can be read in its place.
  /// \throws Error{kBadInput} when there is none
  void Substitute(uint64_t slot) {
    const ChunkOrder& order = builder_.order_->chunk_order();
    const ChunkDraw& draw = draws_[slot];
    // With more bad chunks than may be the window fails anyway.
    for (uint64_t attempt = 0; built_.bad.size() <= builder_.most_bad_; ++attempt) {
      if (attempt == order.sets()[draw.set].chunks) {
        throw Error(ErrorCode::kBadInput, "shards", "hold no chunk that can be read in place of a bad one");
      }
      const std::vector<uint64_t> substitute = {order.Substitute(draw, attempt)};
      if (bad_.contains(substitute[0])) continue;
      const auto take = [&](size_t, const Chunk& chunk) { Cut(slot, substitute[0], chunk); };
      if (TryRead(substitute, 0, take) > 0) return;
    }
  }

  /// \returns the window, its samples in the order of the slots
  BuiltWindow Finish() {
    reading_.store(0, std::memory_order_relaxed);
    std::vector<SampleWindow::Entry> by_slot;
    by_slot.reserve(built_.samples.samples.size());
    for (const auto& [begin, end] : samples_of_slot_) {
      for (size_t i = begin; i < end; ++i) by_slot.push_back(built_.samples.samples[i]);
    }
    built_.samples.samples = std::move(by_slot);
    return std::move(built_);
  }

 private:
  /// As FrameCache::ReadChunks; takes note of wanted[begin] when it cannot be read.
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

  void Cut(uint64_t slot, uint64_t number, const Chunk& chunk) {
    SampleWindow& window = built_.samples;
    const size_t begin = window.samples.size();
    builder_.cutter_->Cut(chunk, &window);
    const OrderedSet& set = builder_.order_->chunk_order().sets()[draws_[slot].set];
    for (size_t i = begin; i < window.samples.size(); ++i) window.samples[i].set = set.number;
    samples_of_slot_[slot] = {begin, window.samples.size()};
    built_.chunks.push_back(number);
  }

  WindowBuilder& builder_;
  const std::vector<ChunkDraw> draws_;
  std::vector<std::pair<size_t, size_t>> samples_of_slot_;  // [begin, end) in the order they are cut
  std::set<uint64_t> bad_;
  ReadingMark& reading_;
  BuiltWindow built_;
};

WindowBuilder::WindowBuilder(const ShardSet* set, const SampleCutter* cutter, const SampleOrder* order,
                             int64_t cache_bytes, uint64_t most_bad)
    : set_(set), cutter_(cutter), order_(order), most_bad_(most_bad), frames_(set, cache_bytes) {}

BuiltWindow WindowBuilder::Build(WindowId id, const std::set<uint64_t>& bad, ReadingMark* reading) {
  Work work(this, id, bad, reading);
  for (const uint64_t slot : work.ReadDrawn()) work.Substitute(slot);
  BuiltWindow built = work.Finish();
  order_->Permute(id, &built.samples.samples);
  return built;
}

}  // namespace trainwright

#include "lib/loading/chunk_order.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/rng.h"

namespace trainwright {
namespace {

/// floor(a * b / c) without overflow in between.
uint64_t MultiplyDivide(uint64_t a, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b / c);
}

/// The chunk at `place` of a pass over `chunks` chunks whose blocks are permuted. What is left behind the
/// last whole block is a short block, put in at a place of its own.
uint64_t ShuffledChunk(uint64_t chunks, uint64_t block_chunks, uint64_t key, uint64_t place) {
  const uint64_t blocks = chunks / block_chunks, left = chunks % block_chunks;
  if (left > 0) {
    const uint64_t short_begin = Rng::BitsOf(key, chunks) % (blocks + 1) * block_chunks;
    if (place >= short_begin) {
      if (place < short_begin + left) return blocks * block_chunks + (place - short_begin);
      place -= left;
    }
  }
  const KeyedPermutation order(blocks, key);
  return order(place / block_chunks) * block_chunks + place % block_chunks;
}

}  // namespace

ChunkOrder::ChunkOrder(std::vector<OrderedSet> sets, const ChunkOrderOptions& options)
    : sets_(std::move(sets)), options_(options) {
  TRAINWRIGHT_CHECK(!sets_.empty());
  if (options_.block_chunks < 1) {
    throw Error(ErrorCode::kUsage, "--shuffle-block", "must be at least 1 chunk");
  }
  for (const OrderedSet& set : sets_) {
    TRAINWRIGHT_CHECK(set.chunks > 0);
    if (set.weight < 1) throw Error(ErrorCode::kUsage, "--data-weights", "a weight is too small to count");
    slots_ += set.chunks;
    total_weight_ += set.weight;
  }
}

uint64_t ChunkOrder::KeyOf(const char* stream, uint64_t set, uint64_t pass) const {
  const Rng rng(options_.seed, stream, pass);
  return set == 0 ? rng.key() : rng.Bits(set);
}

ChunkDraw ChunkOrder::At(uint64_t epoch, uint64_t slot) const {
  TRAINWRIGHT_CHECK(slot < slots_);
  // Each set in turn takes its share of what the sets before it left, so all counts have a closed form.
  uint64_t rank = epoch * slots_ + slot, weight_left = total_weight_;
  uint32_t number = 0;
  for (; number + 1 < sets_.size(); ++number) {
    const uint64_t weight = sets_[number].weight;
    const uint64_t before = MultiplyDivide(rank, weight, weight_left);
    if (MultiplyDivide(rank + 1, weight, weight_left) > before) {
      rank = before;
      break;
    }
    rank -= before;
    weight_left -= weight;
  }
  const uint64_t chunks = sets_[number].chunks;
  return InPass(number, rank / chunks, rank % chunks);
}

ChunkDraw ChunkOrder::InPass(uint32_t set, uint64_t pass, uint64_t place) const {
  const OrderedSet& drawn = sets_.at(set);
  const uint64_t chunk = options_.shuffle ? ShuffledChunk(drawn.chunks, options_.block_chunks,
                                                          KeyOf("chunk order", set, pass), place)
                                          : place;
  return {.set = set, .pass = pass, .place = place, .chunk = drawn.first_chunk + chunk};
}

uint64_t ChunkOrder::Substitute(const ChunkDraw& draw, uint64_t attempt) const {
  const OrderedSet& set = sets_[draw.set];
  const KeyedPermutation order(set.chunks, KeyOf("substitutes", draw.set, draw.pass));
  return set.first_chunk + order((draw.place + attempt) % set.chunks);
}

std::vector<uint64_t> ChunkOrder::SubstitutesOf(uint32_t set, uint64_t pass,
                                                const std::vector<bool>& readable) const {
  const uint64_t first_chunk = sets_.at(set).first_chunk, chunks = sets_[set].chunks;
  TRAINWRIGHT_CHECK(readable.size() == chunks &&
                    std::find(readable.begin(), readable.end(), true) != readable.end());
  std::vector<uint64_t> substitutes;
  if (std::find(readable.begin(), readable.end(), false) == readable.end()) return substitutes;
  for (uint64_t place = 0; place < chunks; ++place) {
    const ChunkDraw draw = InPass(set, pass, place);
    if (readable[draw.chunk - first_chunk]) continue;
    uint64_t attempt = 0;
    while (!readable[Substitute(draw, attempt) - first_chunk]) ++attempt;
    substitutes.push_back(Substitute(draw, attempt));
  }
  return substitutes;
}

std::vector<uint64_t> ChunkOrder::CountsOf(uint64_t slots) const {
  std::vector<uint64_t> counts;
  uint64_t weight_left = total_weight_;
  for (const OrderedSet& set : sets_) {
    counts.push_back(MultiplyDivide(slots, set.weight, weight_left));
    slots -= counts.back();
    weight_left -= set.weight;
  }
  return counts;
}

}  // namespace trainwright

#include "lib/loading/set_batches.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/rng.h"

namespace trainwright {
namespace {

/// The set that a place is of, where set s has length_of(s) places, behind those of the sets before it.
template <typename LengthOf>
uint32_t SetAt(uint64_t place, const LengthOf& length_of) {
  uint32_t set = 0;
  while (place >= length_of(set)) place -= length_of(set++);
  return set;
}

}  // namespace

SetBatches::SetBatches(std::vector<uint64_t> samples, uint64_t batch_samples, uint64_t seed)
    : samples_(std::move(samples)), batch_samples_(batch_samples), seed_(seed) {
  TRAINWRIGHT_CHECK(batch_samples_ >= 1);
  for (const uint64_t count : samples_) {
    whole_batches_ += count / batch_samples_;
    remainder_ += count % batch_samples_;
  }
  mixed_batches_ = remainder_ / batch_samples_;
}

std::vector<uint32_t> SetBatches::SetsOf(uint64_t epoch, uint64_t batch) const {
  TRAINWRIGHT_CHECK(batch < batches());
  const uint64_t number = KeyedPermutation(batches(), Rng(seed_, "grit batches", epoch).key())(batch);
  if (number < whole_batches_) {
    const uint32_t set = SetAt(number, [&](uint32_t i) { return samples_.at(i) / batch_samples_; });
    return std::vector<uint32_t>(batch_samples_, set);
  }
  const uint64_t first = (number - whole_batches_) * batch_samples_;
  const KeyedPermutation remainders(remainder_, Rng(seed_, "grit remainders", epoch).key());
  std::vector<uint32_t> sets;
  sets.reserve(batch_samples_);
  for (uint64_t i = 0; i < batch_samples_; ++i) {
    sets.push_back(
        SetAt(remainders(first + i), [&](uint32_t set) { return samples_.at(set) % batch_samples_; }));
  }
  return sets;
}

}  // namespace trainwright

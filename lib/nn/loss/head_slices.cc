#include "lib/nn/loss/head_slices.h"

#include <algorithm>

namespace trainwright {
namespace {

constexpr int64_t kLeastRows = 64, kRowMultiple = 128;
constexpr int64_t kShareOfFree = 8;

int64_t RoundUp(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

}  // namespace

int64_t PaddedVocabulary(int64_t vocabulary, int64_t multiple) {
  return RoundUp(vocabulary, multiple);
}

int64_t HeadSliceLogits(int64_t free_bytes, int64_t vocabulary, int64_t rows, int64_t element_bytes) {
  const int64_t room = free_bytes / kShareOfFree / element_bytes;
  const int64_t wanted_rows = std::min(rows, room / vocabulary);
  return std::max(kHeadSliceLogits, wanted_rows * vocabulary);
}

int64_t HeadSliceRows(int64_t slice_logits, int64_t vocabulary, int64_t rows) {
  if (slice_logits == 0) return std::clamp<int64_t>(kHeadSliceLogits / vocabulary, kLeastRows, 4096);
  int64_t most = std::max(kLeastRows, slice_logits / vocabulary);
  if (rows <= most) return std::max<int64_t>(1, rows);
  if (most >= kRowMultiple) most = most / kRowMultiple * kRowMultiple;
  const int64_t slices = (rows + most - 1) / most;
  return std::min(most, RoundUp((rows + slices - 1) / slices, kRowMultiple));
}

}  // namespace trainwright

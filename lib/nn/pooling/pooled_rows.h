/// Which rows of a text are pooled, and with which weights: what all implementations of pooling share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/nn/pooling/span_pooling.h"

namespace trainwright {

struct PooledRows {
  int64_t begin = 0, end = 0;  ///< rows of the micro-batch
  bool rising = false;         ///< whether their weights are 1, 2, 3 ...; else each is 1
  float total = 1;             ///< of the weights

  float WeightOf(int64_t row) const { return rising ? static_cast<float>(row - begin + 1) : 1.0f; }
};

inline PooledRows PooledRowsOf(Pooling pooling, const PooledSpans& spans, int64_t text) {
  const auto at = static_cast<size_t>(text);
  PooledRows rows{.begin = spans.first_pooled[at], .end = spans.end[at]};
  if (pooling == Pooling::kCls) {
    rows.begin = spans.begin[at];
    rows.end = rows.begin + 1;
  } else if (pooling == Pooling::kLastToken) {
    rows.begin = rows.end - 1;
  }
  const int64_t count = rows.end - rows.begin;
  rows.rising = pooling == Pooling::kWeightedMean;
  rows.total = static_cast<float>(rows.rising ? count * (count + 1) / 2 : count);
  return rows;
}

}  // namespace trainwright

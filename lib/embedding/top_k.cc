#include "lib/embedding/top_k.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "lib/base/error.h"
#include "lib/embedding/row_product.h"
#include "lib/nn/linear/matmul.h"

namespace trainwright {
namespace {

constexpr int64_t kMostQueriesOfTile = 1024;
constexpr int64_t kLeastRowsOfTile = 16;
constexpr int64_t kScoresOfBlock = 32;
/// Products of two such vectors are far from the end of fp32's range.
constexpr double kLongestVector = 1e18;

/// Integers that rise as the numbers do: comparisons of integers are vectorised, those of floats are not
/// where the sign of a zero and traps count.
int32_t RisingKey(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits ^ ((bits >> 31) & std::numeric_limits<int32_t>::max());
}

bool AnyReaches(const float* scores, int32_t least_key) {
  int32_t reached = 0;
  for (int64_t i = 0; i < kScoresOfBlock; ++i) reached |= RisingKey(scores[i]) >= least_key ? 1 : 0;
  return reached != 0;
}

/// Euclidean lengths of rows [n, d].
std::vector<double> LengthsOf(const at::Tensor& rows_nd) {
  const int64_t columns = rows_nd.size(1);
  const float* const values = rows_nd.const_data_ptr<float>();
  std::vector<double> lengths(static_cast<size_t>(rows_nd.size(0)));
  at::parallel_for(0, rows_nd.size(0), 4096 / (columns + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      double squares = 0;
      for (int64_t i = 0; i < columns; ++i) {
        const double value = values[row * columns + i];
        squares += value * value;
      }
      lengths[static_cast<size_t>(row)] = std::sqrt(squares);
    }
  });
  return lengths;
}

void CheckRows(const at::Tensor& rows) {
  TRAINWRIGHT_CHECK(rows.dim() == 2 && rows.scalar_type() == at::kFloat && rows.is_contiguous() &&
                    rows.is_cpu());
}

}  // namespace

TopK::TopK(at::Tensor queries_qd, int64_t k, TieOrder ties, int64_t tile_bytes)
    : TopK(queries_qd, std::vector<size_t>(static_cast<size_t>(queries_qd.size(0)), static_cast<size_t>(k)),
           std::move(ties), tile_bytes) {}

TopK::TopK(at::Tensor queries_qd, std::vector<size_t> depths, TieOrder ties, int64_t tile_bytes)
    : queries_qd_(std::move(queries_qd)),
      depths_(std::move(depths)),
      ties_(std::move(ties)),
      tile_scores_(tile_bytes / static_cast<int64_t>(sizeof(float))) {
  CheckRows(queries_qd_);
  TRAINWRIGHT_CHECK(std::ssize(depths_) == queries_qd_.size(0));
  for (const size_t depth : depths_) TRAINWRIGHT_CHECK(depth >= 1);
  query_lengths_ = LengthsOf(queries_qd_);
  for (const double length : query_lengths_) TRAINWRIGHT_CHECK(length < kLongestVector);
  best_.resize(query_lengths_.size());
}

void TopK::Add(const at::Tensor& rows_nd) {
  CheckRows(rows_nd);
  TRAINWRIGHT_CHECK(rows_nd.size(1) == queries_qd_.size(1));
  const std::vector<double> lengths = LengthsOf(rows_nd);
  double longest = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (!(lengths[i] < kLongestVector)) {
      throw Error(ErrorCode::kBadInput, "the corpus", "has a number that is not finite, or too large",
                  "vector " + std::to_string(rows_ + i));
    }
    longest = std::max(longest, lengths[i]);
  }
  const int64_t queries = queries_qd_.size(0), rows = rows_nd.size(0);
  const int64_t query_tile = std::min(queries, kMostQueriesOfTile);
  const int64_t row_tile = query_tile == 0 ? 0 : std::max(kLeastRowsOfTile, tile_scores_ / query_tile);
  for (int64_t row = 0; queries > 0 && row < rows; row += row_tile) {
    for (int64_t query = 0; query < queries; query += query_tile) {
      AddTile(query, std::min(query_tile, queries - query), row, std::min(row_tile, rows - row), rows_nd,
              longest);
    }
  }
  rows_ += static_cast<uint64_t>(rows);
}

void TopK::AddTile(int64_t first_query, int64_t queries, int64_t first_row, int64_t rows,
                   const at::Tensor& rows_nd, double longest_row) {
  if (!tile_.defined() || tile_.numel() < queries * rows) {
    tile_ = at::empty({queries * rows}, at::kFloat);
  }
  at::Tensor scores_qn = tile_.narrow(0, 0, queries * rows).view({queries, rows});
  const at::Tensor tile_nd = rows_nd.narrow(0, first_row, rows);
  Matmul(queries_qd_.narrow(0, first_query, queries), tile_nd.t(), scores_qn);
  const float* const scores = scores_qn.const_data_ptr<float>();
  const float* const row_values = tile_nd.const_data_ptr<float>();
  at::parallel_for(0, queries, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Consider(first_query + i, scores + i * rows, rows, row_values, rows_ + static_cast<uint64_t>(first_row),
               longest_row);
    }
  });
}

void TopK::Consider(int64_t query, const float* scores, int64_t count, const float* row_values,
                    uint64_t first_row, double longest_row) {
  const int64_t columns = queries_qd_.size(1);
  const float* const query_values = queries_qd_.const_data_ptr<float>() + query * columns;
  const auto number = static_cast<size_t>(query);
  std::vector<ScoredRow>& best = best_[number];
  // A sum of d products in fp32, in whatever order, is off by at most d 2^-24 |q| |x|, to first order (Higham
  // 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1); twice that leaves room for the
  // rest.
  const double margin = static_cast<double>(columns + 2) * 0x1p-23 * query_lengths_[number] * longest_row;
  const auto least_key = [&] {
    if (best.size() < depths_[number]) return std::numeric_limits<int32_t>::min();
    const auto least = static_cast<float>(best.front().score - margin);
    return RisingKey(std::nextafter(least, -std::numeric_limits<float>::infinity()));
  };
  int32_t key = least_key();
  for (int64_t begin = 0; begin < count; begin += kScoresOfBlock) {
    const int64_t end = std::min(begin + kScoresOfBlock, count);
    if (end - begin == kScoresOfBlock && !AnyReaches(scores + begin, key)) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (RisingKey(scores[i]) < key) continue;
      const auto score = static_cast<float>(RowProduct(query_values, row_values + i * columns, columns));
      Keep({first_row + static_cast<uint64_t>(i), score}, depths_[number], &best);
      key = least_key();
    }
  }
}

void TopK::Keep(const ScoredRow& row, size_t depth, std::vector<ScoredRow>* best) const {
  const auto before = [&](const ScoredRow& a, const ScoredRow& b) { return GoesBefore(a, b, ties_); };
  if (best->size() == depth) {
    if (!before(row, best->front())) return;
    std::pop_heap(best->begin(), best->end(), before);
    best->pop_back();
  }
  best->push_back(row);
  std::push_heap(best->begin(), best->end(), before);
}

std::vector<std::vector<ScoredRow>> TopK::Take() {
  const auto before = [&](const ScoredRow& a, const ScoredRow& b) { return GoesBefore(a, b, ties_); };
  for (std::vector<ScoredRow>& best : best_) std::sort(best.begin(), best.end(), before);
  return std::move(best_);
}

}  // namespace trainwright

/// The contrastive loss by its definition: all scores at once, in double, every softmax written out. The
/// oracle of the tests of lib/nn/loss/contrastive_*, with which it shares the types of options and groups.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/nn/loss/contrastive_groups.h"
#include "lib/nn/loss/contrastive_options.h"

namespace trainwright::test {

using Rows = std::vector<std::vector<double>>;

inline Rows RowsOf(const at::Tensor& x) {
  const at::Tensor values = x.to(at::kDouble).contiguous();
  const double* data = values.const_data_ptr<double>();
  Rows rows;
  for (int64_t r = 0; r < values.size(0); ++r) {
    rows.emplace_back(data + r * values.size(1), data + (r + 1) * values.size(1));
  }
  return rows;
}

/// The first elements, of unit length again if asked for.
inline Rows CutTo(const Rows& rows, int64_t columns, bool normalize) {
  Rows cut;
  for (const std::vector<double>& row : rows) {
    cut.emplace_back(row.begin(), row.begin() + columns);
    if (!normalize || columns == static_cast<int64_t>(row.size())) continue;
    double squares = 0;
    for (const double value : cut.back()) squares += value * value;
    for (double& value : cut.back()) value /= std::sqrt(squares);
  }
  return cut;
}

/// Of one size.
class DenseContrastive {
 public:
  DenseContrastive(const ContrastiveOptions& options, const ContrastiveGroups& groups, const Rows& q,
                   const Rows& p)
      : options_(options), groups_(groups), products_(q.size(), std::vector<double>(p.size())) {
    for (size_t i = 0; i < q.size(); ++i) {
      for (size_t j = 0; j < p.size(); ++j) {
        for (size_t c = 0; c < q[i].size(); ++c) products_[i][j] += q[i][c] * p[j][c];
      }
      double farthest = std::numeric_limits<double>::infinity();
      for (size_t k = 0; k < p.size(); ++k) {
        if (IsPositive(i, k)) farthest = std::min(farthest, products_[i][k]);
      }
      farthest_.push_back(farthest);
    }
  }

  bool IsPositive(size_t i, size_t j) const {
    const int64_t place = static_cast<int64_t>(j) - groups_.first_passage[i];
    return place >= 0 && place < groups_.positives[i];
  }

  bool IsLeftOut(size_t i, size_t j) const {
    if (options_.false_negatives == FalseNegatives::kSameText) {
      const uint64_t text = groups_.passage_text[j];
      bool known = text == groups_.query_text[i];
      for (int64_t k = groups_.first_known[i]; k < groups_.first_known[i + 1]; ++k) {
        known = known || groups_.known_text[static_cast<size_t>(k)] == text;
      }
      return known;
    }
    if (options_.false_negatives == FalseNegatives::kMargin) {
      return products_[i][j] > farthest_[i] - options_.margin;
    }
    return false;
  }

  /// -log softmax of the first of some scores.
  double LossOfFirst(const std::vector<double>& scores) const {
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - largest);
    return std::log(sum) + largest - scores[0];
  }

  double LossOfQuery(size_t i) const {
    const size_t passages = products_[i].size();
    double of_row = 0, of_columns = 0;
    for (size_t k = 0; k < passages; ++k) {
      if (!IsPositive(i, k)) continue;
      std::vector<double> row = {products_[i][k] / options_.temperature}, column = row;
      for (size_t j = 0; j < passages; ++j) {
        if (!IsPositive(i, j) && !IsLeftOut(i, j)) row.push_back(products_[i][j] / options_.temperature);
      }
      for (size_t other = 0; other < products_.size(); ++other) {
        if (other != i && !IsLeftOut(other, k)) {
          column.push_back(products_[other][k] / options_.temperature);
        }
      }
      of_row += LossOfFirst(row) / groups_.positives[i];
      of_columns += LossOfFirst(column) / groups_.positives[i];
    }
    return options_.symmetric ? (of_row + of_columns) / 2 : of_row;
  }

  bool FindsPositive(size_t i) const {
    const double none = -std::numeric_limits<double>::infinity();
    double positive = none, other = none;
    for (size_t j = 0; j < products_[i].size(); ++j) {
      if (IsPositive(i, j)) {
        positive = std::max(positive, products_[i][j]);
      } else if (!IsLeftOut(i, j)) {
        other = std::max(other, products_[i][j]);
      }
    }
    return other > none && positive > other;
  }

 private:
  const ContrastiveOptions& options_;
  const ContrastiveGroups& groups_;
  Rows products_;
  std::vector<double> farthest_;  // of the positives of each query
};

/// Of each query, over all sizes.
inline std::vector<double> DenseLosses(const ContrastiveOptions& options, const ContrastiveGroups& groups,
                                       const at::Tensor& q, const at::Tensor& p) {
  std::vector<ContrastiveOptions::Size> sizes = options.sizes;
  if (sizes.empty()) sizes.push_back({.columns = q.size(1)});
  std::vector<double> losses(static_cast<size_t>(q.size(0)), 0.0);
  for (const ContrastiveOptions::Size& size : sizes) {
    const DenseContrastive dense(options, groups, CutTo(RowsOf(q), size.columns, options.normalize),
                                 CutTo(RowsOf(p), size.columns, options.normalize));
    for (size_t i = 0; i < losses.size(); ++i) losses[i] += size.weight * dense.LossOfQuery(i);
  }
  return losses;
}

inline double DenseMean(const ContrastiveOptions& options, const ContrastiveGroups& groups,
                        const at::Tensor& q, const at::Tensor& p) {
  double sum = 0;
  for (const double loss : DenseLosses(options, groups, q, p)) sum += loss;
  return sum / static_cast<double>(q.size(0));
}

}  // namespace trainwright::test

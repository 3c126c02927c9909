/// The best rows of a corpus for each of some queries, exactly.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/retrieval/scored_row.h"

namespace trainwright {

/// A row's score for a query is their RowProduct, rounded to fp32: it depends on nothing else, so that equal
/// rows have equal scores, and neither tiles nor threads change a result. GEMMs of whole tiles in fp32
/// only find the rows that may be among the best: what they may be wrong by is bounded, and every row within
/// the bound is scored again. Memory: queries, the rows that are kept, one tile. Not thread-safe.
class TopK {
 public:
  /// \param queries_qd fp32, contiguous, on the CPU, none longer than 1e18
  /// \param k rows that are kept of each query, at least 1
  /// \param ties orders rows of the corpus with equal scores; called from several threads at once
  /// \param tile_bytes of scores that are held at once, at least; at least a row of 16 of them is
  TopK(at::Tensor queries_qd, int64_t k, TieOrder ties, int64_t tile_bytes = int64_t{32} << 20);
  /// \param depths how many rows are kept of each query, at least 1
  TopK(at::Tensor queries_qd, std::vector<size_t> depths, TieOrder ties,
       int64_t tile_bytes = int64_t{32} << 20);

  /// The next rows of the corpus.
  /// \param rows_nd fp32, contiguous, on the CPU, of as many columns as the queries
  /// \throws Error{kBadInput} naming a row with a number that is not finite, or longer than 1e18
  void Add(const at::Tensor& rows_nd);
  uint64_t rows() const { return rows_; }

  /// Of each query its best rows, the best first; fewer than asked for where the corpus has fewer. To be
  /// called once, last.
  std::vector<std::vector<ScoredRow>> Take();

 private:
  void AddTile(int64_t first_query, int64_t queries, int64_t first_row, int64_t rows,
               const at::Tensor& rows_nd, double longest_row);
  /// Of one query.
  void Consider(int64_t query, const float* scores, int64_t count, const float* row_values,
                uint64_t first_row, double longest_row);
  void Keep(const ScoredRow& row, size_t depth, std::vector<ScoredRow>* best) const;

  at::Tensor queries_qd_;
  std::vector<size_t> depths_;  // of each query
  TieOrder ties_;
  int64_t tile_scores_;
  std::vector<double> query_lengths_;
  std::vector<std::vector<ScoredRow>> best_;  // of each query a heap, the one that goes last on top
  at::Tensor tile_;                           // fp32, grown to the largest so far
  uint64_t rows_ = 0;                         // of the corpus so far
};

}  // namespace trainwright

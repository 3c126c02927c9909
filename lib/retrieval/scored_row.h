/// A row of a corpus and how well it answers a query, and which of two ranks above the other.
#pragma once

#include <cstdint>
#include <functional>

namespace trainwright {

struct ScoredRow {
  uint64_t row = 0;  ///< number in the corpus, from 0
  float score = 0;
};

/// Whether row `a` ranks above row `b` where both have the same score. A strict order of all rows.
using TieOrder = std::function<bool(uint64_t a, uint64_t b)>;

/// The higher score first, and `ties` among equals.
inline bool GoesBefore(const ScoredRow& a, const ScoredRow& b, const TieOrder& ties) {
  return a.score != b.score ? a.score > b.score : ties(a.row, b.row);
}

}  // namespace trainwright

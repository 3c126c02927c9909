/// How the contrastive loss of contrastive_loss.h is computed. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

namespace trainwright {

/// Which passages of others count as negatives of a query.
enum class FalseNegatives : uint8_t {
  kKeep,      ///< all
  kSameText,  ///< not those with the text of a positive of its record, or its own
  /// Not those that are closer to it than the farthest of its positives less a margin; negatives of its own
  /// record are left out by the same rule.
  /// \source Moreira et al. 2024 (NV-Retriever), arXiv:2407.15831, for mined negatives
  kMargin,
};

struct ContrastiveOptions {
  /// Dot products are divided by it.
  double temperature = 0.02;
  /// Whether the loss is the mean of that of queries, which find their positives among passages, and that of
  /// positives, which find their queries.
  bool symmetric = false;
  /// Whether vectors cut to a size have unit length again.
  bool normalize = true;
  FalseNegatives false_negatives = FalseNegatives::kKeep;
  /// Of kMargin, in units of the dot product before the temperature: a passage j is left out of query i where
  /// x_ij > min_k x_ik - margin. Dot products that differ by less than 1e-5 of the vectors' lengths are
  /// equal.
  double margin = 0;

  /// The loss of the first elements of the vectors alone.
  struct Size {
    int64_t columns = 0;  ///< at most d
    double weight = 1;
  };
  /// The loss is the sum of theirs. Empty: that of the whole vectors.
  /// \source Kusupati et al. 2022 (Matryoshka), arXiv:2205.13147, equation 1
  std::vector<Size> sizes;

  /// About the largest memory of scores: see ContrastiveTiles.
  int64_t tile_bytes = int64_t{32} << 20;
};

}  // namespace trainwright

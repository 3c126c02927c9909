/// What the batches of an evaluation come to, added up as one rank alone adds it.
///
/// All ranks go through all batches in the same order. Batch i is computed by rank i modulo the number of
/// ranks, and what the batches come to is added in their order: the sum has the same bits for any number of
/// ranks on which a batch comes to the same.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/dist/shared_rounds.h"
#include "lib/dist/world.h"

namespace trainwright {

/// Not thread-safe: the training thread's.
class BatchSums {
 public:
  /// \param world outlives it
  explicit BatchSums(World* world);
  /// Goes through the batches, in memory that does not grow with their number.
  /// \param work calls Next for each
  /// \throws what `work` throws, once all ranks know of it; Error{kBadInput} where batches differ between the
  ///     ranks; as SharedRounds::Meet
  void Run(const std::function<void()>& work);
  /// \param tokens of the next batch, by which data that differs between the ranks is noticed
  /// \param compute what it comes to; called on the rank whose batch it is
  void Next(int64_t tokens, const std::function<double()>& compute);
  /// Of all batches, once Run has returned.
  double sum() const { return sum_; }

 private:
  /// Adds up the batches since the last meeting.
  void Meet();

  World* world_;
  SharedRounds rounds_;
  int64_t batches_ = 0, added_ = 0;  // batches gone through, and of them those in the sum
  int64_t tokens_ = 0;               // of all batches
  std::vector<double> own_;          // of this rank's batches that are not in the sum
  double sum_ = 0;
};

}  // namespace trainwright

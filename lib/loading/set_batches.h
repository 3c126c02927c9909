/// Which set each sample of a step comes from, where a step should come from one set as far as that goes: the
/// batches of an epoch of several sets. The definition: man/trainwright-sample-order.5.
///
/// Each set is divided into as many whole batches as it gives. What is left of all of them is mixed, and what
/// is left of that is dropped. The batches of an epoch, those of one set and mixed ones alike, come in an
/// order drawn again for every epoch.
#pragma once

#include <cstdint>
#include <vector>

namespace trainwright {

/// Immutable and thread-safe. Computes, holds nothing but the sizes.
class SetBatches {
 public:
  /// \param samples of an epoch of each set
  /// \param batch_samples of a batch, >= 1
  SetBatches(std::vector<uint64_t> samples, uint64_t batch_samples, uint64_t seed);
  /// Of an epoch; 0: all sets together have fewer samples than a batch.
  uint64_t batches() const { return whole_batches_ + mixed_batches_; }
  /// The set of each sample of a batch, in their order.
  /// \param batch < batches(), of the epoch
  std::vector<uint32_t> SetsOf(uint64_t epoch, uint64_t batch) const;

 private:
  std::vector<uint64_t> samples_;
  uint64_t batch_samples_, seed_;
  uint64_t whole_batches_ = 0, mixed_batches_ = 0;
  uint64_t remainder_ = 0;  // samples beyond the whole batches, of all sets
};

}  // namespace trainwright

/// How values that their owners have updated reach all ranks: see FlatParameters::Shard.
///
/// The compute copy, or under fp32 the values themselves, go range after range of the flat buffer: each rank
/// sends its pieces of a range and takes the others'. While a range is under way the next one is packed. The
/// fp32 copies of what the passes read so follow likewise. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/dist/collectives.h"
#include "lib/dist/world.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/spec/range_plan.h"

namespace trainwright {

class ValueExchange {
 public:
  /// \param world that has collectives; it and `parameters`, which are sharded over it, outlive this
  /// \param bucket_bytes of values that travel together: see WholeRounds
  ValueExchange(World* world, FlatParameters* parameters, int64_t bucket_bytes);
  /// Takes all memory that Share needs, once.
  void Prepare();
  /// Once this rank's shard and its compute copy are updated: returns when all ranks have all values, the
  /// same bits. A call that all ranks make.
  /// \throws Error{kIo} as PendingWork::Wait
  void Share();
  /// The time spent waiting for others.
  double wait_s() const { return wait_s_; }
  int64_t held_bytes() const;
  /// What Prepare will take.
  static int64_t MemoryBytes(const FlatParameters& parameters, int64_t bucket_bytes);

 private:
  /// Where elements of a plan's pieces lie.
  using View = std::function<at::Tensor(int64_t begin, int64_t size)>;
  /// What travels, of one type.
  struct Batch {
    std::vector<RangePlan> plans;
    View own, all;                             ///< of this rank's, to send; of the others', to set
    std::vector<at::Tensor> packed, gathered;  ///< memory of two plans under way
  };

  static std::vector<RangePlan> PlansOfAll(const FlatParameters& parameters, int64_t bucket_bytes);
  static std::vector<RangePlan> PlansOfCopies(const FlatParameters& parameters, int64_t bucket_bytes);
  void Share(Batch& batch);
  std::unique_ptr<PendingWork> Begin(Batch& batch, size_t number);
  void End(Batch& batch, size_t number, PendingWork* work);
  /// The fp32 copy of elements that the passes read so.
  at::Tensor CopyOf(int64_t begin, int64_t size) const;

  World* world_;
  FlatParameters* parameters_;
  Batch values_, copies_;
  double wait_s_ = 0;
};

}  // namespace trainwright

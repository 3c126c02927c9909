/// Tensors that are sharded over the ranks, brought to the writer's rank part by part: no rank ever holds one
/// whole.
///
/// The writer's work asks for the elements that it wants, in whatever order, and the other ranks give it
/// theirs until the work is done. Not thread-safe: the training thread's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lib/dist/world.h"
#include "lib/spec/shard_layout.h"

namespace trainwright {

class ShardReader {
 public:
  /// \param world that has collectives; outlives this
  /// \param part_bytes that travel at once; more where that is less than a block
  ShardReader(World* world, const ShardLayout& layout, int64_t part_bytes);
  /// Has the writer do work that may Read, while the others serve it. All ranks call it.
  /// \param shards this rank's of some tensors, as the layout says, of as many tensors and of the same types
  ///     on all ranks; one that is undefined is not read
  /// \param work of the writer; on the others not called
  /// \throws what the work throws, and what stands for that on the others: as ShareEnd
  void Run(std::vector<at::Tensor> shards, const std::function<void()>& work);
  /// Within the work.
  /// \param tensor its number among the shards
  /// \param begin number of the first element in the flat buffers
  /// \param out contiguous, on the host, of the tensor's type: as many elements as it has are read
  /// \throws Error{kIo} as PendingWork::Wait
  void Read(size_t tensor, int64_t begin, at::Tensor out);
  const ShardLayout& layout() const { return layout_; }

 private:
  /// Sends the writer this rank's pieces of a part; as the writer takes all.
  void Exchange(const at::Tensor& shard, int64_t begin, int64_t size, at::Tensor out);
  void Serve();

  World* world_;
  ShardLayout layout_;
  int64_t part_bytes_;
  std::vector<at::Tensor> shards_;  ///< while there is work
  bool lost_ = false;               ///< a rank was lost within the work
};

}  // namespace trainwright

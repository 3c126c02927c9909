#include "lib/dist/shard_reader.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "lib/base/error.h"
#include "lib/dist/collectives.h"
#include "lib/dist/shared_work.h"
#include "lib/spec/reduction_block.h"

namespace trainwright {
namespace {

/// What the writer says next.
enum class Say : int64_t { kEnd = 1, kRead = 2 };

constexpr int64_t kWriter = 0;

}  // namespace

ShardReader::ShardReader(World* world, const ShardLayout& layout, int64_t part_bytes)
    : world_(world), layout_(layout), part_bytes_(part_bytes) {
  TRAINWRIGHT_CHECK(world->collectives() != nullptr && layout.ranks() == world->size());
}

void ShardReader::Run(std::vector<at::Tensor> shards, const std::function<void()>& work) {
  shards_ = std::move(shards);
  std::exception_ptr failure;
  if (world_->is_writer()) {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    if (lost_) std::rethrow_exception(failure);
    world_->Agree({static_cast<int64_t>(Say::kEnd), 0, 0, 0});
  } else {
    Serve();
  }
  shards_.clear();
  ShareEnd(world_, failure);
}

void ShardReader::Serve() {
  while (true) {
    const std::vector<int64_t> said = world_->Agree({0, 0, 0, 0});
    if (said[0] == static_cast<int64_t>(Say::kEnd)) return;
    TRAINWRIGHT_CHECK(said[0] == static_cast<int64_t>(Say::kRead));
    Exchange(shards_.at(static_cast<size_t>(said[1])), said[2], said[3], {});
  }
}

void ShardReader::Read(size_t tensor, int64_t begin, at::Tensor out) {
  const at::Tensor& shard = shards_.at(tensor);
  TRAINWRIGHT_CHECK(world_->is_writer() && shard.scalar_type() == out.scalar_type());
  const int64_t most = std::max(kReductionBlock, part_bytes_ / static_cast<int64_t>(shard.element_size()));
  try {
    for (int64_t done = 0; done < out.numel(); done += most) {
      const int64_t size = std::min(most, out.numel() - done);
      world_->Agree({static_cast<int64_t>(Say::kRead), static_cast<int64_t>(tensor), begin + done, size});
      Exchange(shard, begin + done, size, out.narrow(0, done, size));
    }
  } catch (...) {
    lost_ = true;
    throw;
  }
}

void ShardReader::Exchange(const at::Tensor& shard, int64_t begin, int64_t size, at::Tensor out) {
  const auto ranks = static_cast<size_t>(world_->size());
  std::vector<int64_t> counts(ranks);
  for (int64_t rank = 0; rank < world_->size(); ++rank) {
    layout_.ForEachPieceOf(rank, begin, begin + size, [&](const ShardLayout::Piece& piece) {
      counts[static_cast<size_t>(rank)] += piece.size;
    });
  }
  const int64_t own = counts[static_cast<size_t>(world_->rank())];
  // A rank's pieces lie side by side in its shard.
  const int64_t first = [&] {
    int64_t place = -1;
    layout_.ForEachPiece(begin, begin + size, [&](const ShardLayout::Piece& piece) {
      if (place < 0) place = piece.place;
    });
    return std::max<int64_t>(place, 0);
  }();
  std::vector<int64_t> send_counts(ranks), receive_counts(ranks);
  send_counts[kWriter] = own;
  const bool writes = world_->is_writer();
  if (writes) receive_counts = counts;
  const at::Tensor received = at::empty({writes ? size : 0}, shard.options());
  world_->collectives()
      ->BeginExchange(shard.narrow(0, first, own), received, send_counts, receive_counts)
      ->Wait();
  if (!writes) return;
  int64_t place = 0;
  for (int64_t rank = 0; rank < world_->size(); ++rank) {
    layout_.ForEachPieceOf(rank, begin, begin + size, [&](const ShardLayout::Piece& piece) {
      out.narrow(0, piece.begin - begin, piece.size).copy_(received.narrow(0, place, piece.size));
      place += piece.size;
    });
  }
}

}  // namespace trainwright

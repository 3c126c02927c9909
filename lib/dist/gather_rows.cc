#include "lib/dist/gather_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "lib/base/error.h"
#include "lib/dist/collectives.h"

namespace trainwright {
namespace {

/// The shape of so many rows like those of `like_rd`.
std::vector<int64_t> ShapeOf(const at::Tensor& like_rd, int64_t rows) {
  std::vector<int64_t> shape = like_rd.sizes().vec();
  shape[0] = rows;
  return shape;
}

}  // namespace

RowGather::RowGather(World* world, const at::Tensor& own_rd, const std::vector<int64_t>& rows_of_rank)
    : world_(world), rows_of_rank_(rows_of_rank), own_rd_(own_rd) {
  const int64_t ranks = world->size();
  TRAINWRIGHT_CHECK(own_rd.dim() >= 1 && own_rd.is_contiguous());
  TRAINWRIGHT_CHECK(static_cast<int64_t>(rows_of_rank.size()) == ranks &&
                    rows_of_rank[static_cast<size_t>(world->rank())] == own_rd.size(0));
  const int64_t most = *std::max_element(rows_of_rank.begin(), rows_of_rank.end());
  if (ranks == 1 || most == 0) return;
  sent_ = own_rd;
  if (own_rd.size(0) < most) {
    sent_ = at::zeros(ShapeOf(own_rd, most), own_rd.options());
    sent_.narrow(0, 0, own_rd.size(0)).copy_(own_rd);
  }
  received_ = at::empty(ShapeOf(own_rd, ranks * most), own_rd.options());
  if (*std::min_element(rows_of_rank.begin(), rows_of_rank.end()) == most) return;
  const int64_t all = std::accumulate(rows_of_rank.begin(), rows_of_rank.end(), int64_t{0});
  rows_ = at::empty(ShapeOf(own_rd, all), own_rd.options());
}

at::Tensor RowGather::Gather() {
  const at::Tensor own_rd = std::exchange(own_rd_, at::Tensor());
  TRAINWRIGHT_CHECK(own_rd.defined());
  if (!received_.defined()) return own_rd;
  world_->collectives()->BeginGather(sent_.view(-1), received_.view(-1))->Wait();
  sent_ = at::Tensor();
  const at::Tensor received = std::exchange(received_, at::Tensor());
  if (!rows_.defined()) return received;
  const int64_t most = received.size(0) / world_->size();
  int64_t row = 0;
  for (size_t rank = 0; rank < rows_of_rank_.size(); ++rank) {
    const int64_t rows = rows_of_rank_[rank];
    rows_.narrow(0, row, rows).copy_(received.narrow(0, static_cast<int64_t>(rank) * most, rows));
    row += rows;
  }
  return std::exchange(rows_, at::Tensor());
}

at::Tensor GatherRows(World* world, const at::Tensor& own_rd, const std::vector<int64_t>& rows_of_rank) {
  return RowGather(world, own_rd, rows_of_rank).Gather();
}

}  // namespace trainwright

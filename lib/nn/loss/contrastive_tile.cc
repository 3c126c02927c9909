#include "lib/nn/loss/contrastive_tile.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/segment_reduce.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>

#include "lib/base/error.h"
#include "lib/device/upload.h"
#include "lib/nn/cpu/parallel.h"

namespace trainwright {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

at::Tensor SegmentReduce(const at::Tensor& values_n, const char* reduction, const at::Tensor& lengths_t) {
  return at::segment_reduce(values_n, reduction, lengths_t, /*indices=*/{}, /*offsets=*/{}, /*axis=*/0,
                            /*unsafe=*/true);
}

/// As on_device::ToWeights, row by row.
on_device::RowSums ToWeights(double factor, at::Tensor* tile_tc) {
  const int64_t rows = tile_tc->size(0), columns = tile_tc->size(1);
  const on_device::RowSums sums = {at::empty({rows}, tile_tc->options()),
                                   at::empty({rows}, tile_tc->options().dtype(at::kDouble))};
  float *tile = tile_tc->mutable_data_ptr<float>(), *largest = sums.largest_t.mutable_data_ptr<float>();
  double* total = sums.total_t.mutable_data_ptr<double>();
  cpu::ParallelRows(rows, 8 * columns, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* values = tile + row * columns;
      bool has_nan = false;
      largest[row] = cpu::BestKernels().largest(values, 0, columns, &has_nan);
      if (largest[row] == kExcluded && !has_nan) {
        largest[row] = 0;
        total[row] = 0;
        std::fill(values, values + columns, 0.0f);
        continue;
      }
      total[row] = cpu::BestKernels().exp_weights(values, largest[row], static_cast<float>(factor), values, 0,
                                                  columns);
    }
  });
  return sums;
}

}  // namespace

at::Tensor ReadPlaces(const at::Tensor& tile_tc, const at::Tensor& places_n) {
  return tile_tc.view(-1).index_select(0, places_n);
}

void WritePlaces(const at::Tensor& places_n, const at::Tensor& values_n, at::Tensor* tile_tc) {
  if (places_n.numel() > 0) tile_tc->view(-1).index_copy_(0, places_n, values_n);
}

void ExcludePlaces(const at::Tensor& places_n, at::Tensor* tile_tc) {
  if (places_n.numel() > 0) tile_tc->view(-1).index_fill_(0, places_n, kExcluded);
}

void ExcludeAbove(const at::Tensor& limits, at::Tensor* tile_tc) {
  tile_tc->masked_fill_(tile_tc->gt(limits), kExcluded);
}

void PlaceExcluder::Add(int64_t place) {
  constexpr size_t kMostPlaces = 1 << 14;
  places_.push_back(place);
  if (places_.size() == kMostPlaces) Flush();
}

void PlaceExcluder::Flush() {
  if (places_.empty()) return;
  const at::Tensor places_n = at::tensor(places_, at::TensorOptions().dtype(at::kLong));
  ExcludePlaces(Upload(places_n, tile_tc_->device()), tile_tc_);
  places_.clear();
}

RowLosses LossesOfRows(double factor, const at::Tensor& lengths_t, const at::Tensor& products_n,
                       at::Tensor* tile_tc) {
  const on_device::RowSums sums =
      tile_tc->is_cpu() ? ToWeights(factor, tile_tc) : on_device::ToWeights(factor, tile_tc);
  const auto of_pairs = [&](const at::Tensor& of_rows) {
    return at::repeat_interleave(of_rows, lengths_t, /*dim=*/0, /*output_size=*/products_n.numel());
  };
  const at::Tensor log_sum_t = sums.largest_t.to(at::kDouble).mul_(factor).add_(sums.total_t.log());
  const at::Tensor distance_n = of_pairs(log_sum_t).sub_(products_n.to(at::kDouble).mul(factor));
  const at::Tensor sigmoid_n = at::sigmoid(distance_n);
  RowLosses losses;
  losses.loss_t = SegmentReduce(at::softplus(distance_n), "mean", lengths_t);
  losses.gradient_n = sigmoid_n.div(of_pairs(lengths_t));
  losses.first_t = SegmentReduce(products_n, "max", lengths_t)
                       .gt(sums.largest_t)
                       .logical_and(sums.total_t.ne(0))
                       .to(at::kDouble);
  // The largest of the others adds 1 to their sum.
  const at::Tensor weight_t =
      SegmentReduce(sigmoid_n, "mean", lengths_t).div(sums.total_t.clamp_min(1)).to(at::kFloat);
  losses.scalars_t2 = at::stack({sums.largest_t, weight_t}, 1);
  return losses;
}

void WeighTile(double factor, const at::Tensor& rows_t2, const at::Tensor& columns_c2, at::Tensor* tile_tc) {
  const int64_t rows = tile_tc->size(0), columns = tile_tc->size(1);
  TRAINWRIGHT_CHECK(columns_c2.size(0) == columns && (!rows_t2.defined() || rows_t2.size(0) == rows));
  if (!tile_tc->is_cpu()) return on_device::WeighTile(factor, rows_t2, columns_c2, tile_tc);
  const at::Tensor of_columns = columns_c2.t().contiguous();
  const at::Tensor of_rows = rows_t2.defined() ? rows_t2.contiguous() : at::Tensor();
  const float* largest = of_columns.const_data_ptr<float>();
  const float* row_scalars = cpu::DataOrNull(of_rows);
  float* tile = tile_tc->mutable_data_ptr<float>();
  cpu::ParallelRows(rows, 16 * columns, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float row_largest = row_scalars == nullptr ? 0.0f : row_scalars[2 * row];
      const float row_weight = row_scalars == nullptr ? 0.0f : row_scalars[2 * row + 1];
      cpu::BestKernels().weigh_scores(largest, largest + columns, row_largest, row_weight,
                                      static_cast<float>(factor), tile + row * columns, 0, columns);
    }
  });
}

namespace on_device {

RowSums ToWeights(double factor, at::Tensor* tile_tc) {
  at::Tensor largest_t = tile_tc->amax({1});
  largest_t.masked_fill_(largest_t.eq(kExcluded), 0);
  tile_tc->sub_(largest_t.unsqueeze(1)).mul_(factor).exp_();
  return {largest_t, tile_tc->sum(1).to(at::kDouble)};  // a sum in fp64 would copy the tile
}

void WeighTile(double factor, const at::Tensor& rows_t2, const at::Tensor& columns_c2, at::Tensor* tile_tc) {
  // Where there are no others the largest is 0 and the weight too: e^x is to stay finite.
  constexpr double kMostExponent = 80;
  const auto weighed = [&](at::Tensor x, const at::Tensor& largest, const at::Tensor& weights) {
    return x.sub_(largest).mul_(factor).clamp_max_(kMostExponent).exp_().mul_(weights);
  };
  at::Tensor of_rows;
  if (rows_t2.defined()) {
    of_rows = weighed(tile_tc->clone(), rows_t2.narrow(1, 0, 1), rows_t2.narrow(1, 1, 1));
  }
  weighed(*tile_tc, columns_c2.select(1, 0), columns_c2.select(1, 1));
  if (of_rows.defined()) tile_tc->add_(of_rows);
}

}  // namespace on_device
}  // namespace trainwright

#include "lib/nn/loss/contrastive_tile.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lib/nn/cpu/kernels.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

constexpr double kFactor = 3.0;
constexpr float kExcluded = -std::numeric_limits<float>::infinity();

/// Rows of 37 products with excluded ones, the last with nothing else.
at::Tensor SomeTile() {
  at::Tensor tile = RandomTensor({5, 37}, 1);
  tile.view(-1).slice(0, 0, 185, 9).fill_(kExcluded);
  tile[4].fill_(kExcluded);
  return tile;
}

at::Tensor Scalars(int64_t count, uint64_t stream) {
  return at::cat({RandomTensor({count, 1}, stream), RandomTensor({count, 1}, stream + 1)}, 1);
}

TEST(ContrastiveTileTest, WeightsAreTheExponentialsWrittenOut) {
  const at::Tensor products = SomeTile(), rows = Scalars(5, 2), columns = Scalars(37, 4);
  at::Tensor tile = products.clone();
  WeighTile(kFactor, rows, columns, &tile);
  const at::Tensor x = products.to(at::kDouble), r = rows.to(at::kDouble), c = columns.to(at::kDouble);
  const at::Tensor of_rows = x.sub(r.narrow(1, 0, 1)).mul(kFactor).exp().mul(r.narrow(1, 1, 1));
  const at::Tensor of_columns = x.sub(c.select(1, 0)).mul(kFactor).exp().mul(c.select(1, 1));
  EXPECT_LT(test::RelativeDifference(tile, of_rows.add(of_columns)), 1e-6);
  at::Tensor without_rows = products.clone();
  WeighTile(kFactor, {}, columns, &without_rows);
  EXPECT_LT(test::RelativeDifference(without_rows, of_columns), 1e-6);
}

TEST(ContrastiveTileTest, EveryInstructionSetWeighsAlike) {
  const at::Tensor columns = Scalars(37, 4).t().contiguous(), products = RandomTensor({37}, 1);
  const float* largest = columns.const_data_ptr<float>();
  std::vector<const cpu::Kernels*> all = {&cpu::kBaselineKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(&cpu::kAvx2Kernels);
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) {
    all.push_back(&cpu::kAvx512Kernels);
  }
#endif
  for (const float row_weight : {0.0f, 0.5f}) {
    at::Tensor expected = products.clone();
    cpu::kBaselineKernels.weigh_scores(largest, largest + 37, 0.25f, row_weight, 3.0f,
                                       expected.mutable_data_ptr<float>(), 0, 37);
    for (const cpu::Kernels* kernels : all) {
      at::Tensor scores = products.clone();
      kernels->weigh_scores(largest, largest + 37, 0.25f, row_weight, 3.0f, scores.mutable_data_ptr<float>(),
                            0, 37);
      EXPECT_LT(test::RelativeDifference(scores, expected), 1e-6) << kernels->name;
    }
  }
}

TEST(ContrastiveTileTest, WhatOtherDevicesComputeIsTheSame) {
  const at::Tensor products_n = at::tensor(std::vector<float>{0.5f, 1.5f, -1.0f, 0.0f, 2.0f, 0.25f});
  const at::Tensor lengths_t = at::tensor(std::vector<int64_t>{1, 2, 1, 1, 1});
  at::Tensor own = SomeTile(), other = SomeTile();
  const RowLosses found = LossesOfRows(kFactor, lengths_t, products_n, &own);
  const on_device::RowSums sums = on_device::ToWeights(kFactor, &other);
  EXPECT_TRUE(at::equal(sums.largest_t, found.scalars_t2.select(1, 0)));
  EXPECT_LT(test::RelativeDifference(other, own), 1e-6);
  EXPECT_EQ(sums.total_t[4].item<double>(), 0.0);

  const at::Tensor rows = Scalars(5, 2), columns = Scalars(37, 4);
  for (const bool with_rows : {false, true}) {
    at::Tensor own_weights = SomeTile(), other_weights = SomeTile();
    WeighTile(kFactor, with_rows ? rows : at::Tensor(), columns, &own_weights);
    on_device::WeighTile(kFactor, with_rows ? rows : at::Tensor(), columns, &other_weights);
    EXPECT_LT(test::RelativeDifference(other_weights, own_weights), 1e-6);
  }
}

TEST(ContrastiveTileTest, PlacesThatComeOneByOneAreAllExcluded) {
  at::Tensor tile = RandomTensor({200, 300}, 1);
  const at::Tensor before = tile.clone();
  PlaceExcluder excluder(&tile);
  for (int64_t place = 0; place < 60000; place += 2) excluder.Add(place);
  excluder.Flush();
  EXPECT_TRUE(tile.view(-1).slice(0, 0, 60000, 2).eq(kExcluded).all().item<bool>());
  EXPECT_TRUE(at::equal(tile.view(-1).slice(0, 1, 60000, 2), before.view(-1).slice(0, 1, 60000, 2)));
}

}  // namespace
}  // namespace trainwright

#include "lib/nn/scan/diagonal_scan.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lib/nn/cpu/kernels.h"
#include "lib/nn/scan/torch_scan.h"
#include "tests/nn/instruction_sets.h"
#include "tests/nn/scan_reference.h"
#include "tests/nn/storage_types.h"

namespace trainwright {
namespace {

using test::kFp32;
using test::LargestDifference;
using test::MakeRandomScan;
using test::RandomScan;
using test::ReferenceScan;

constexpr double kTolerance = 1e-5;

/// All that the forward and the backward pass write.
struct ScanResult {
  at::Tensor c_nz, last_sz, states_cz;
  ScanGradients gradients;
};

/// \param scan of the storage type, states in fp32
ScanResult RunScan(const Numerics& numerics, const ScanOptions& options, const RandomScan& scan) {
  ScanResult result{.c_nz = at::empty_like(scan.b_nz),
                    .last_sz = at::full_like(scan.initial_sz, 99),
                    .states_cz = at::full({CountScanChunks(scan.spans, options.chunk), scan.width()}, 99.0f)};
  ScanEnds ends{.initial_sz = scan.initial_sz, .last_sz = result.last_sz};
  DiagonalScan(numerics, options, scan.decay, scan.b_nz, scan.spans, ends, result.c_nz, result.states_cz);
  result.gradients = {.b_nz = at::empty_like(scan.b_nz), .initial_sz = at::full_like(scan.initial_sz, 99)};
  if (scan.decay.selective()) {
    result.gradients.lambda_nz = at::empty_like(scan.decay.lambda_nz);
  } else {
    result.gradients.lambda_z = at::full({scan.width()}, 99.0, at::kDouble);
  }
  DiagonalScanBackward(numerics, options, scan.decay, scan.b_nz, scan.spans, ends, result.states_cz,
                       scan.d_c_nz, scan.d_last_sz, result.gradients);
  return result;
}

/// The same in double, by the recurrence as it is written and the backward pass that finite differences hold.
ScanResult InDouble(const RandomScan& scan) {
  ScanResult result{.c_nz = ReferenceScan(scan.spans, scan.Lambdas(), scan.b_nz, scan.initial_sz),
                    .last_sz = at::empty_like(scan.initial_sz)};
  for (int64_t span = 0; span + 1 < std::ssize(scan.spans.starts); ++span) {
    result.last_sz[span].copy_(result.c_nz[scan.spans.starts[static_cast<size_t>(span) + 1] - 1]);
  }
  result.gradients = {.b_nz = at::empty_like(scan.b_nz), .initial_sz = at::empty_like(scan.initial_sz)};
  if (scan.decay.selective()) {
    result.gradients.lambda_nz = at::empty_like(scan.b_nz);
  } else {
    result.gradients.lambda_z = at::empty({scan.width()}, at::kDouble);
  }
  TorchScanBackward({ScanKind::kSequential}, scan.decay, scan.b_nz, scan.spans,
                    {.initial_sz = scan.initial_sz}, scan.d_c_nz, scan.d_last_sz, result.gradients);
  return result;
}

void ExpectNear(const ScanResult& result, const ScanResult& expected, double tolerance) {
  EXPECT_LT(LargestDifference(result.c_nz, expected.c_nz), tolerance);
  EXPECT_LT(LargestDifference(result.last_sz, expected.last_sz), tolerance);
  EXPECT_LT(LargestDifference(result.gradients.b_nz, expected.gradients.b_nz), tolerance);
  EXPECT_LT(LargestDifference(result.gradients.initial_sz, expected.gradients.initial_sz), tolerance);
  if (expected.gradients.lambda_z.defined()) {
    EXPECT_LT(LargestDifference(result.gradients.lambda_z, expected.gradients.lambda_z), tolerance);
  } else {
    EXPECT_LT(LargestDifference(result.gradients.lambda_nz, expected.gradients.lambda_nz), tolerance);
  }
}

struct FusedCase {
  std::string name;
  bool selective;
  std::vector<int32_t> starts;
};
class FusedScanTest : public ::testing::TestWithParam<FusedCase> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, FusedScanTest,
    ::testing::Values(FusedCase{"Constant", false, {0, 2000}}, FusedCase{"Selective", true, {0, 2000}},
                      FusedCase{"ConstantPacked", false, {0, 1, 64, 65, 400, 912, 2000}},
                      FusedCase{"SelectivePacked", true, {0, 1, 64, 65, 400, 912, 2000}}),
    [](const auto& info) { return info.param.name; });

TEST_P(FusedScanTest, IsTheRecurrenceForAnyChunk) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomScan scan = MakeRandomScan(GetParam().starts, 37, GetParam().selective);
  const ScanResult expected = InDouble(scan);
  for (const int64_t chunk : {int64_t{1}, int64_t{7}, int64_t{64}, int64_t{256}, scan.rows()}) {
    SCOPED_TRACE("chunk " + std::to_string(chunk));
    ExpectNear(RunScan(kFp32, {ScanKind::kFused, chunk}, scan.InFp32()), expected, kTolerance);
  }
}

TEST_P(FusedScanTest, NoStatesAreZeroStates) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  RandomScan zeros = MakeRandomScan(GetParam().starts, 5, GetParam().selective).InFp32(), none = zeros;
  zeros.initial_sz.zero_();
  zeros.d_last_sz.zero_();
  const ScanResult expected = RunScan(kFp32, {}, zeros);
  at::Tensor c_nz = at::empty_like(none.b_nz), states_cz = at::empty_like(expected.states_cz);
  ScanEnds ends;
  DiagonalScan(kFp32, {}, none.decay, none.b_nz, none.spans, ends, c_nz, states_cz);
  ScanGradients gradients{.b_nz = at::empty_like(none.b_nz)};
  DiagonalScanBackward(kFp32, {}, none.decay, none.b_nz, none.spans, ends, states_cz, none.d_c_nz, {},
                       gradients);
  EXPECT_TRUE(at::equal(c_nz, expected.c_nz));
  EXPECT_LT(LargestDifference(gradients.b_nz, expected.gradients.b_nz), 1e-6);
}

TEST_P(FusedScanTest, BitsDoNotDependOnThreads) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomScan scan = MakeRandomScan(GetParam().starts, 45, GetParam().selective).InFp32();
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const ScanResult one = RunScan(kFp32, {}, scan);
  for (const int threads : {2, 3}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    at::set_num_threads(threads);
    const ScanResult several = RunScan(kFp32, {}, scan);
    EXPECT_TRUE(at::equal(several.c_nz, one.c_nz));
    EXPECT_TRUE(at::equal(several.last_sz, one.last_sz));
    EXPECT_TRUE(at::equal(several.gradients.b_nz, one.gradients.b_nz));
    EXPECT_TRUE(at::equal(several.gradients.initial_sz, one.gradients.initial_sz));
    EXPECT_TRUE(GetParam().selective ? at::equal(several.gradients.lambda_nz, one.gradients.lambda_nz)
                                     : at::equal(several.gradients.lambda_z, one.gradients.lambda_z));
  }
  at::set_num_threads(before);
}

TEST_P(FusedScanTest, ASpanHasTheBitsThatItHasAlone) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomScan packed = MakeRandomScan(GetParam().starts, 45, GetParam().selective).InFp32();
  const ScanResult together = RunScan(kFp32, {}, packed);
  for (int64_t span = 0; span + 1 < std::ssize(GetParam().starts); ++span) {
    const int32_t begin = GetParam().starts[static_cast<size_t>(span)],
                  rows = GetParam().starts[static_cast<size_t>(span) + 1] - begin;
    RandomScan alone = packed;
    alone.spans = SpanTable(std::vector<int32_t>{0, rows});
    for (at::Tensor* of_rows : {&alone.decay.lambda_nz, &alone.b_nz, &alone.d_c_nz}) {
      if (of_rows->defined()) *of_rows = of_rows->narrow(0, begin, rows).contiguous();
    }
    alone.initial_sz = packed.initial_sz.narrow(0, span, 1);
    alone.d_last_sz = packed.d_last_sz.narrow(0, span, 1);
    const ScanResult result = RunScan(kFp32, {}, alone);
    EXPECT_TRUE(at::equal(result.c_nz, together.c_nz.narrow(0, begin, rows)));
    EXPECT_TRUE(at::equal(result.gradients.b_nz, together.gradients.b_nz.narrow(0, begin, rows)));
    EXPECT_TRUE(at::equal(result.last_sz[0], together.last_sz[span]));
    EXPECT_TRUE(at::equal(result.gradients.initial_sz[0], together.gradients.initial_sz[span]));
  }
}

/// The gradient of the state between the halves goes from the second one's initial state to the first one's
/// last.
TEST_P(FusedScanTest, TwoHalvesAreTheWhole) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const int64_t rows = 500;
  for (const int64_t cut : {int64_t{1}, int64_t{256}, int64_t{301}}) {
    SCOPED_TRACE("cut at " + std::to_string(cut));
    const RandomScan whole = MakeRandomScan({0, rows}, 9, GetParam().selective).InFp32();
    const auto part = [&](int64_t begin, int64_t end) {
      RandomScan of = whole;
      of.spans = SpanTable(std::vector<int32_t>{0, static_cast<int32_t>(end - begin)});
      for (at::Tensor* of_rows : {&of.decay.lambda_nz, &of.b_nz, &of.d_c_nz}) {
        if (of_rows->defined()) *of_rows = of_rows->narrow(0, begin, end - begin).contiguous();
      }
      return of;
    };
    RandomScan first = part(0, cut), second = part(cut, rows);
    second.initial_sz = RunScan(kFp32, {}, first).last_sz;
    const ScanResult of_second = RunScan(kFp32, {}, second);
    first.d_last_sz = of_second.gradients.initial_sz;
    const ScanResult of_first = RunScan(kFp32, {}, first), expected = RunScan(kFp32, {}, whole);
    EXPECT_LT(LargestDifference(at::cat({of_first.c_nz, of_second.c_nz}), expected.c_nz), 2e-6);
    EXPECT_LT(LargestDifference(at::cat({of_first.gradients.b_nz, of_second.gradients.b_nz}),
                                expected.gradients.b_nz),
              2e-6);
    EXPECT_LT(LargestDifference(of_first.gradients.initial_sz, expected.gradients.initial_sz), 2e-6);
    if (GetParam().selective) continue;
    EXPECT_LT(LargestDifference(of_first.gradients.lambda_z.add(of_second.gradients.lambda_z),
                                expected.gradients.lambda_z),
              2e-6);
  }
}

/// With a state in bf16 or fp16 what a span remembers would be lost: here all of it but the rounding of what
/// goes in and comes out.
TEST_P(FusedScanTest, TheStateIsFp32UnderEveryPrecision) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  RandomScan scan = MakeRandomScan(GetParam().starts, 19, GetParam().selective).InFp32();
  for (const Numerics& numerics : test::ShortNumerics()) {
    SCOPED_TRACE(test::NameOf(numerics));
    RandomScan rounded = scan, stored = scan;
    for (at::Tensor RandomScan::*tensor : {&RandomScan::b_nz, &RandomScan::d_c_nz}) {
      rounded.*tensor = test::AsRead(numerics, scan.*tensor);
      stored.*tensor = test::Stored(numerics, scan.*tensor);
    }
    const ScanResult exact = RunScan(kFp32, {}, rounded), result = RunScan(numerics, {}, stored);
    test::ExpectRounded(numerics, result.c_nz, exact.c_nz);
    test::ExpectRounded(numerics, result.gradients.b_nz, exact.gradients.b_nz);
    EXPECT_LT(LargestDifference(result.last_sz, exact.last_sz), 1e-6);
    EXPECT_LT(LargestDifference(result.gradients.initial_sz, exact.gradients.initial_sz), 1e-6);
  }
}

TEST_P(FusedScanTest, AllKindsAgree) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomScan scan = MakeRandomScan(GetParam().starts, 5, GetParam().selective);
  const ScanResult expected = InDouble(scan);
  ExpectNear(RunScan(kFp32, {ScanKind::kChunked}, scan.InFp32()), expected, kTolerance);
  ExpectNear(RunScan(kFp32, {ScanKind::kSequential}, scan.InFp32()), expected, kTolerance);
}

TEST(LongScanTest, InFp32EveryKindIsTheRecurrenceInDoubleWhereMuchIsRemembered) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const RandomScan scan = MakeRandomScan({0, 32768}, 2, /*selective=*/false);
  scan.decay.log_modulus_k.fill_(std::log(0.9999));
  const at::Tensor expected = ReferenceScan(scan.spans, scan.Lambdas(), scan.b_nz, scan.initial_sz);
  const RandomScan single = scan.InFp32();
  for (const ScanKind kind : {ScanKind::kFused, ScanKind::kChunked, ScanKind::kSequential}) {
    const ScanOptions options{.kind = kind};
    at::Tensor c_nz = at::empty_like(single.b_nz),
               states_cz = at::empty({CountScanChunks(single.spans, options.chunk), single.width()});
    ScanEnds ends{.initial_sz = single.initial_sz};
    DiagonalScan(kFp32, options, single.decay, single.b_nz, single.spans, ends, c_nz, states_cz);
    EXPECT_LT(LargestDifference(c_nz, expected), kTolerance) << ScanKindName(kind);
  }
}

/// What the kernels of one instruction set make of a chunk and a range of channels, side by side.
at::Tensor ResultsOf(const cpu::Kernels& kernels, const RandomScan& scan) {
  const int64_t channels = scan.width() / 2, begin = 3, end = channels - 2;
  const at::Tensor high_z = scan.decay.selective() ? at::Tensor() : scan.Lambdas()[0].to(at::kFloat);
  const at::Tensor low_z = at::full({scan.width()}, 1e-8f);
  const ScanChunk chunk{.first = 1,
                        .rows = scan.rows() - 2,
                        .channels = channels,
                        .decay_nz = high_z.defined() ? nullptr : scan.decay.lambda_nz.const_data_ptr<float>(),
                        .high_z = high_z.defined() ? high_z.const_data_ptr<float>() : nullptr,
                        .low_z = low_z.const_data_ptr<float>()};
  const auto rows = [&] { return at::zeros_like(scan.b_nz); };
  at::Tensor ends = scan.initial_sz.clone(), products = at::zeros_like(ends), states = ends.clone(),
             c = rows(), carries = ends.clone(), back_products = products.clone(), d_b = rows(),
             d_decay = rows(), scratch = at::zeros({ScanScratch(chunk.rows, channels)}),
             d_decay_sum = at::zeros({scan.width()}, at::kDouble), last_carries = ends.clone();
  const auto data = [](at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); };
  const float *b = scan.b_nz.const_data_ptr<float>(), *g = scan.d_c_nz.const_data_ptr<float>();
  kernels.scan_end(cpu::Codec::kFp32, chunk, b, data(ends), data(products), begin, end);
  kernels.scan_rows(cpu::Codec::kFp32, chunk, b, data(states), data(c), begin, end);
  kernels.scan_backward_end(cpu::Codec::kFp32, chunk, g, data(carries), data(back_products), begin, end);
  kernels.scan_backward_rows(
      cpu::Codec::kFp32, chunk,
      {.b_nz = b,
       .d_c_nz = g,
       .state_z = scan.initial_sz.const_data_ptr<float>(),
       .carry_z = data(last_carries),
       .d_b_nz = data(d_b),
       .d_decay_z = high_z.defined() ? d_decay_sum.mutable_data_ptr<double>() : nullptr,
       .d_decay_nz = high_z.defined() ? nullptr : data(d_decay),
       .scratch = data(scratch)},
      begin, end);
  kernels.scan_carry(data(states), data(products), channels, data(carries), data(ends), begin, end);
  return at::cat({ends, products, states, c, carries, back_products, d_b, d_decay,
                  d_decay_sum.to(at::kFloat).unsqueeze(0), last_carries});
}

TEST(ScanKernelsTest, EveryInstructionSetComputesTheSameUpToRounding) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const bool selective : {false, true}) {
    const RandomScan scan = MakeRandomScan({0, 150}, 45, selective).InFp32();
    const at::Tensor expected = ResultsOf(cpu::kBaselineKernels, scan);
    for (const cpu::Kernels* kernels : test::KernelsBesideBaseline()) {
      EXPECT_LT(test::RelativeDifference(ResultsOf(*kernels, scan), expected), 2e-6) << kernels->name;
    }
  }
}

TEST(DiagonalScanTest, OfShapesAloneNothingIsComputed) {
  const at::TensorOptions meta = at::TensorOptions().dtype(at::kFloat).device(at::kMeta);
  const SpanTable spans(std::vector<int32_t>{0, 100, 130});
  const at::Tensor b_nz = at::empty({130, 8}, meta);
  const ScanDecay decay{.log_modulus_k = at::empty({4}, meta.dtype(at::kDouble)),
                        .angle_k = at::empty({4}, meta.dtype(at::kDouble))};
  at::Tensor c_nz = at::empty_like(b_nz), states_cz = at::empty({CountScanChunks(spans, 64), 8}, meta);
  ScanEnds ends;
  DiagonalScan(kFp32, {}, decay, b_nz, spans, ends, c_nz, states_cz);
  ScanGradients gradients{.b_nz = at::empty_like(b_nz), .lambda_z = at::empty({8}, meta.dtype(at::kDouble))};
  DiagonalScanBackward(kFp32, {}, decay, b_nz, spans, ends, states_cz, c_nz, {}, gradients);
  EXPECT_EQ(states_cz.size(0), 3);
}

}  // namespace
}  // namespace trainwright

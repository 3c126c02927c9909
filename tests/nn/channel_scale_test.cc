#include "lib/nn/scan/channel_scale.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::kFp32;
using test::RandomTensor;
using test::RelativeDifference;

/// The real parts of 70 rows of 9 channels, then their imaginary parts.
struct ScaleArguments {
  at::Tensor x_nz = RandomTensor({70, 18}, 1), scale_k = RandomTensor({9}, 2),
             d_out_nz = RandomTensor({70, 18}, 3);
};

struct ScaleResults {
  at::Tensor out_nz, d_x_nz, d_scale_k;
};

ScaleResults RunChannelScale(const Numerics& numerics, const ScaleArguments& of) {
  ScaleResults results{.out_nz = at::empty_like(of.x_nz),
                       .d_x_nz = at::empty_like(of.x_nz),
                       .d_scale_k = at::full({9}, 99.0, at::kDouble)};
  ChannelScale(numerics, of.x_nz, of.scale_k, results.out_nz);
  ChannelScaleBackward(numerics, of.x_nz, of.scale_k, of.d_out_nz, results.d_x_nz, results.d_scale_k);
  return results;
}

TEST(ChannelScaleTest, MultipliesBothParts) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const ScaleArguments of;
  const ScaleResults results = RunChannelScale(kFp32, of);
  // [row, part, channel]
  const at::Tensor x = of.x_nz.view({70, 2, 9}), d_out = of.d_out_nz.view({70, 2, 9});
  EXPECT_TRUE(at::equal(results.out_nz.view({70, 2, 9}), x.mul(of.scale_k)));
  EXPECT_TRUE(at::equal(results.d_x_nz.view({70, 2, 9}), d_out.mul(of.scale_k)));
  EXPECT_LT(RelativeDifference(results.d_scale_k, x.to(at::kDouble).mul(d_out).sum(0).sum(0)), 1e-6);
}

TEST(ChannelScaleTest, TorchsOperatorsComputeTheSame) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const ScaleArguments of;
  const ScaleResults expected = RunChannelScale(kFp32, of);
  at::Tensor x_nz = of.x_nz.clone(), d_nz = of.d_out_nz.clone(), d_scale_k = at::full({9}, 99.0, at::kDouble);
  on_device::ChannelScale(kFp32, x_nz, of.scale_k, x_nz);
  on_device::ChannelScaleBackward(kFp32, of.x_nz, of.scale_k, d_nz, d_nz, d_scale_k);
  EXPECT_TRUE(at::equal(x_nz, expected.out_nz));
  EXPECT_TRUE(at::equal(d_nz, expected.d_x_nz));
  EXPECT_LT(RelativeDifference(d_scale_k, expected.d_scale_k), 1e-6);
}

TEST(ChannelScaleTest, WorksInPlaceAndWithoutTheGradientOfTheScale) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const ScaleArguments of;
  const ScaleResults expected = RunChannelScale(kFp32, of);
  at::Tensor x_nz = of.x_nz.clone(), d_nz = of.d_out_nz.clone(), none;
  ChannelScale(kFp32, x_nz, of.scale_k, x_nz);
  ChannelScaleBackward(kFp32, of.x_nz, of.scale_k, d_nz, d_nz, none);
  EXPECT_TRUE(at::equal(x_nz, expected.out_nz));
  EXPECT_TRUE(at::equal(d_nz, expected.d_x_nz));
}

TEST(ChannelScaleTest, BitsDoNotDependOnThreads) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const ScaleArguments of;
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const ScaleResults one = RunChannelScale(kFp32, of);
  at::set_num_threads(3);
  const ScaleResults three = RunChannelScale(kFp32, of);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(three.out_nz, one.out_nz));
  EXPECT_TRUE(at::equal(three.d_x_nz, one.d_x_nz));
  EXPECT_TRUE(at::equal(three.d_scale_k, one.d_scale_k));
}

TEST(ChannelScaleTest, EveryPrecisionRoundsWhatItStores) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const ScaleArguments of;
  for (const Numerics numerics :
       {Numerics{Precision::kBf16, at::kBFloat16}, Numerics{Precision::kBf16, at::kFloat},
        Numerics{Precision::kFp16, at::kFloat}}) {
    SCOPED_TRACE(PrecisionName(numerics.precision) + (numerics.emulated() ? ", emulated" : ""));
    const at::ScalarType type = PrecisionDtype(numerics.precision);
    ScaleArguments rounded = of, stored = of;
    for (at::Tensor ScaleArguments::*tensor : {&ScaleArguments::x_nz, &ScaleArguments::d_out_nz}) {
      rounded.*tensor = (of.*tensor).to(type).to(at::kFloat);
      if (!numerics.emulated()) stored.*tensor = (of.*tensor).to(type);
    }
    const ScaleResults exact = RunChannelScale(kFp32, rounded), results = RunChannelScale(numerics, stored);
    EXPECT_TRUE(at::equal(results.out_nz.to(at::kFloat), exact.out_nz.to(type).to(at::kFloat)));
    EXPECT_TRUE(at::equal(results.d_x_nz.to(at::kFloat), exact.d_x_nz.to(type).to(at::kFloat)));
    EXPECT_LT(RelativeDifference(results.d_scale_k, exact.d_scale_k), 1e-6);
  }
}

TEST(ChannelScaleTest, OfShapesAloneNothingIsComputed) {
  const at::TensorOptions meta = at::TensorOptions().dtype(at::kFloat).device(at::kMeta);
  const at::Tensor x_nz = at::empty({30, 8}, meta), scale_k = at::empty({4}, meta);
  at::Tensor out_nz = at::empty_like(x_nz), d_scale_k = at::empty({4}, meta.dtype(at::kDouble));
  ChannelScale(kFp32, x_nz, scale_k, out_nz);
  ChannelScaleBackward(kFp32, x_nz, scale_k, x_nz, out_nz, d_scale_k);
  EXPECT_TRUE(out_nz.is_meta());
}

}  // namespace
}  // namespace trainwright

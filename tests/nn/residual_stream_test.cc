// A residual stream that is stored in bf16: its sums and those of its gradient are made in fp32 and rounded
// once, and the norms are those of the rounded sum. By every instruction set, against formulas in double with
// rounding at these points.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/device/cuda_backend.h"
#include "lib/nn/cpu/kernels.h"
#include "lib/nn/embedding/embedding.h"
#include "lib/nn/norm/layer_norm.h"
#include "lib/nn/norm/rms_norm.h"
#include "lib/nn/ops.h"
#include "tests/nn/instruction_sets.h"
#include "tests/nn/reference.h"
#include "tests/support/tested_device.h"

namespace trainwright {
namespace {

using test::RandomTensor;
using test::RelativeDifference;

constexpr int64_t kStreamRows = 5;
constexpr double kStreamEpsilon = 1e-5;

at::Tensor InDouble(const at::Tensor& tensor) {
  return tensor.cpu().to(at::kDouble);
}
/// As bf16 has it, in fp32.
at::Tensor InBf16(const at::Tensor& tensor) {
  return tensor.cpu().to(at::kBFloat16).to(at::kFloat);
}
/// That x is exact, rounded to bf16 after what fp32 lost.
void ExpectRoundedOnce(const at::Tensor& x, const at::Tensor& exact) {
  const at::Tensor error = InDouble(x).sub(exact).abs();
  const double lost = 2e-6 * exact.abs().max().item<double>();
  EXPECT_TRUE(error.le(exact.abs().mul(0x1p-8).add(lost)).all().item<bool>());
  EXPECT_TRUE(at::equal(InBf16(x), x.cpu().to(at::kFloat)));
}

/// What a norm reads, and what the formulas make of it.
struct NormCase {
  NormCase(int64_t width, bool layer_norm, at::ScalarType storage)
      : residual(InBf16(RandomTensor({kStreamRows, width}, 1).add(layer_norm ? 3 : 0)).to(storage)),
        update(InBf16(RandomTensor({kStreamRows, width}, 2)).to(storage)),
        d_normed(InBf16(RandomTensor({kStreamRows, width}, 3)).to(storage)),
        d_x(InBf16(RandomTensor({kStreamRows, width}, 4)).to(storage)),
        weight(RandomTensor({width}, 5)),
        bias(RandomTensor({width}, 6)),
        update_bias(RandomTensor({width}, 7)) {
    at::Tensor added = update.to(at::kFloat);
    if (layer_norm) added = added.add(update_bias);
    sum = InBf16(residual.to(at::kFloat).add(added));
    const at::Tensor x = InDouble(sum), centered = layer_norm ? x.sub(x.mean(1, true)) : x;
    mean = x.mean(1);
    const at::Tensor scale = centered.pow(2).mean(1, true).add(kStreamEpsilon).rsqrt(),
                     unit = centered.mul(scale);
    rstd = scale.squeeze(1);
    normed = unit.mul(InDouble(weight));
    if (layer_norm) normed = normed.add(InDouble(bias));
    const at::Tensor dy = InDouble(d_normed), wdy = dy.mul(InDouble(weight));
    at::Tensor own = wdy.sub(unit.mul(wdy.mul(unit).mean(1, true)));
    if (layer_norm) own = own.sub(wdy.mean(1, true));
    new_d_x = InDouble(d_x).add(own.mul(scale));
    d_weight = dy.mul(unit).sum(0);
    d_bias = dy.sum(0);
  }
  at::Tensor residual, update, d_normed, d_x, weight, bias, update_bias;
  // By the formulas, in double but for the sum.
  at::Tensor sum, mean, rstd, normed, new_d_x, d_weight, d_bias;
};

// 37 is no multiple of any vector; 300 is several of each.
constexpr int64_t kStreamWidths[] = {37, 64, 300};

struct StoredAs {
  cpu::Codec codec;
  at::ScalarType storage;
};
constexpr StoredAs kStored[] = {{cpu::Codec::kBf16, at::kBFloat16}, {cpu::Codec::kRoundedBf16, at::kFloat}};

/// Calls check(kernels, how bf16 is stored, width) for all that there are.
template <typename Check>
void ForEveryKernel(const Check& check) {
  std::vector<const cpu::Kernels*> all = test::KernelsBesideBaseline();
  all.push_back(&cpu::kBaselineKernels);
  for (const cpu::Kernels* kernels : all) {
    for (const StoredAs& stored : kStored) {
      for (const int64_t width : kStreamWidths) {
        SCOPED_TRACE(std::string(kernels->name) + " width " + std::to_string(width) +
                     (stored.storage == at::kFloat ? " emulated" : ""));
        check(*kernels, stored, width);
      }
    }
  }
}

const float* ConstFloats(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}
float* MutableFloats(at::Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}

TEST(StreamKernelsTest, RmsNormIsThatOfTheRoundedSumAndAgainTheSameBits) {
  ForEveryKernel([](const cpu::Kernels& kernels, const StoredAs& stored, int64_t width) {
    const NormCase of(width, /*layer_norm=*/false, stored.storage);
    at::Tensor sum = at::empty({kStreamRows, width}, stored.storage), normed = at::empty_like(sum),
               again = at::empty_like(sum), rstd = at::empty({kStreamRows});
    kernels.add_norm(stored.codec, stored.codec, of.residual.const_data_ptr(), of.update.const_data_ptr(),
                     ConstFloats(of.weight), kStreamEpsilon, width, sum.mutable_data_ptr(),
                     normed.mutable_data_ptr(), MutableFloats(rstd), 0, kStreamRows);
    EXPECT_TRUE(at::equal(sum.to(at::kFloat), of.sum));
    EXPECT_LT(RelativeDifference(rstd, of.rstd), 1e-6);
    ExpectRoundedOnce(normed, of.normed);
    kernels.norm_again(stored.codec, stored.codec, sum.const_data_ptr(), ConstFloats(rstd),
                       ConstFloats(of.weight), width, again.mutable_data_ptr(), 0, kStreamRows);
    EXPECT_TRUE(at::equal(again, normed));
    // Of the sum alone.
    kernels.add_norm(stored.codec, stored.codec, sum.const_data_ptr(), nullptr, ConstFloats(of.weight),
                     kStreamEpsilon, width, nullptr, again.mutable_data_ptr(), MutableFloats(rstd), 0,
                     kStreamRows);
    ExpectRoundedOnce(again, of.normed);
  });
}

TEST(StreamKernelsTest, TheGradientThroughRmsNormIsAddedInFp32AndRoundedOnce) {
  ForEveryKernel([](const cpu::Kernels& kernels, const StoredAs& stored, int64_t width) {
    const NormCase of(width, /*layer_norm=*/false, stored.storage);
    const at::Tensor x = of.sum.to(stored.storage), rstd = of.rstd.to(at::kFloat);
    at::Tensor d_x = of.d_x.clone(), d_weight = at::zeros({width});
    kernels.norm_backward(stored.codec, stored.codec, of.d_normed.const_data_ptr(), x.const_data_ptr(),
                          ConstFloats(rstd), ConstFloats(of.weight), width, d_x.mutable_data_ptr(),
                          MutableFloats(d_weight), 0, kStreamRows);
    ExpectRoundedOnce(d_x, of.new_d_x);
    EXPECT_LT(RelativeDifference(d_weight, of.d_weight), 1e-5);
  });
}

TEST(StreamKernelsTest, LayerNormIsThatOfTheRoundedSumAndAgainTheSameBits) {
  ForEveryKernel([](const cpu::Kernels& kernels, const StoredAs& stored, int64_t width) {
    const NormCase of(width, /*layer_norm=*/true, stored.storage);
    at::Tensor sum = at::empty({kStreamRows, width}, stored.storage), normed = at::empty_like(sum),
               again = at::empty_like(sum), mean = at::empty({kStreamRows}), rstd = at::empty({kStreamRows});
    kernels.add_layer_norm(stored.codec, stored.codec, of.residual.const_data_ptr(),
                           of.update.const_data_ptr(), ConstFloats(of.update_bias), ConstFloats(of.weight),
                           ConstFloats(of.bias), kStreamEpsilon, width, sum.mutable_data_ptr(),
                           normed.mutable_data_ptr(), MutableFloats(mean), MutableFloats(rstd), 0,
                           kStreamRows);
    EXPECT_TRUE(at::equal(sum.to(at::kFloat), of.sum));
    EXPECT_LT(RelativeDifference(mean, of.mean), 1e-6);
    EXPECT_LT(RelativeDifference(rstd, of.rstd), 1e-6);
    ExpectRoundedOnce(normed, of.normed);
    kernels.layer_norm_again(stored.codec, stored.codec, sum.const_data_ptr(), ConstFloats(mean),
                             ConstFloats(rstd), ConstFloats(of.weight), ConstFloats(of.bias), width,
                             again.mutable_data_ptr(), 0, kStreamRows);
    EXPECT_TRUE(at::equal(again, normed));
  });
}

TEST(StreamKernelsTest, TheGradientThroughLayerNormIsAddedInFp32AndRoundedOnce) {
  ForEveryKernel([](const cpu::Kernels& kernels, const StoredAs& stored, int64_t width) {
    const NormCase of(width, /*layer_norm=*/true, stored.storage);
    const at::Tensor x = of.sum.to(stored.storage), mean = of.mean.to(at::kFloat),
                     rstd = of.rstd.to(at::kFloat);
    at::Tensor d_x = of.d_x.clone(), d_weight = at::zeros({width}), d_bias = at::zeros({width});
    kernels.layer_norm_backward(stored.codec, stored.codec, of.d_normed.const_data_ptr(), x.const_data_ptr(),
                                ConstFloats(mean), ConstFloats(rstd), ConstFloats(of.weight), width,
                                d_x.mutable_data_ptr(), MutableFloats(d_weight), MutableFloats(d_bias), 0,
                                kStreamRows);
    ExpectRoundedOnce(d_x, of.new_d_x);
    EXPECT_LT(RelativeDifference(d_weight, of.d_weight), 1e-5);
    EXPECT_LT(RelativeDifference(d_bias, of.d_bias), 1e-5);
  });
}

TEST(StreamKernelsTest, EmbeddingsAreRoundedAndSumsOfThemRoundedOnce) {
  ForEveryKernel([](const cpu::Kernels& kernels, const StoredAs& stored, int64_t width) {
    const at::Tensor table = RandomTensor({9, width}, 8), indices = at::arange(kStreamRows, at::kLong).add(3),
                     rows = table.index_select(0, indices);
    at::Tensor out = at::empty({kStreamRows, width}, stored.storage), gradient = at::zeros({9, width});
    kernels.embed(stored.codec, ConstFloats(table), indices.const_data_ptr<int64_t>(), width,
                  out.mutable_data_ptr(), 0, kStreamRows);
    EXPECT_TRUE(at::equal(out.to(at::kFloat), InBf16(rows)));
    kernels.add_embedding(stored.codec, ConstFloats(table), indices.const_data_ptr<int64_t>(), width,
                          out.mutable_data_ptr(), 0, kStreamRows);
    EXPECT_TRUE(at::equal(out.to(at::kFloat), InBf16(InBf16(rows).add(rows))));
    kernels.embedding_backward(stored.codec, out.const_data_ptr(), indices.const_data_ptr<int64_t>(),
                               kStreamRows, width, MutableFloats(gradient), 0, width);
    EXPECT_TRUE(at::equal(gradient.index_select(0, indices), out.to(at::kFloat)));
  });
}

/// bf16 with a residual stream in it, as the CPU has it and as it emulates it.
const Numerics kNative{.precision = Precision::kBf16, .storage = at::kBFloat16, .residual = Precision::kBf16};
const Numerics kEmulated{.precision = Precision::kBf16, .storage = at::kFloat, .residual = Precision::kBf16};

TEST(StreamModulesTest, EmulatedBf16HasTheBitsOfBf16) {
  const int64_t width = 45;
  const at::Tensor table = RandomTensor({9, width}, 1), tokens = at::arange(8, at::kLong),
                   weight = RandomTensor({width}, 2), bias = RandomTensor({width}, 3);
  const auto run = [&](const Numerics& numerics) {
    const auto stored = [&](uint64_t stream) {
      return InBf16(RandomTensor({8, width}, stream)).to(numerics.storage);
    };
    at::Tensor stream = stored(0), sum = stored(0), normed = stored(0), rms = at::empty({8}),
               d_stream = stored(7), none;
    LayerNormStatistics statistics{at::empty({8}), at::empty({8})};
    Embed(numerics, table, tokens, stream);
    AddEmbedding(numerics, table, tokens, stream);
    AddRmsNorm(numerics, stream, stored(4), weight, kStreamEpsilon, sum, normed, rms);
    at::Tensor d_weight = at::zeros({width}), d_bias = at::zeros({width});
    RmsNormBackward(numerics, stored(5), sum, rms, weight, d_stream, d_weight, none);
    AddLayerNorm(numerics, sum, stored(6), bias, {weight, bias}, kStreamEpsilon, stream, normed, statistics);
    LayerNormBackward(numerics, stored(5), stream, statistics, weight, d_stream, d_weight, d_bias, none);
    at::Tensor d_table = at::zeros({9, width});
    EmbedBackward(d_stream, tokens, d_table);
    return std::vector<at::Tensor>{stream.to(at::kFloat), sum.to(at::kFloat), normed.to(at::kFloat),
                                   d_stream.to(at::kFloat), d_table};
  };
  const std::vector<at::Tensor> native = run(kNative), emulated = run(kEmulated);
  for (size_t i = 0; i < native.size(); ++i) EXPECT_TRUE(at::equal(native[i], emulated[i])) << i;
}

TEST(StreamModulesTest, AFrozenTableOfBf16IsTakenAsItIsAndAddedInFp32) {
  const at::Tensor table = RandomTensor({9, 45}, 1).to(at::kBFloat16), tokens = at::arange(8, at::kLong);
  const at::Tensor rows = table.index_select(0, tokens).to(at::kFloat);
  for (const Numerics& numerics : {kNative, kEmulated}) {
    at::Tensor stream = at::empty({8, 45}, numerics.storage);
    Embed(numerics, table, tokens, stream);
    EXPECT_TRUE(at::equal(stream.to(at::kFloat), rows));
    AddEmbedding(numerics, table, tokens.flip(0), stream);
    EXPECT_TRUE(at::equal(stream.to(at::kFloat), InBf16(rows.add(rows.flip(0)))));
  }
}

/// Operators take the type of the stream from its tensors.
class StreamOpsTest : public testing::TestWithParam<at::DeviceType> {
 protected:
  void SetUp() override {
    if (device_.is_cuda() && ProcessCudaBackend().plugin == nullptr) {
      GTEST_SKIP() << "NOT RUN: " << ProcessCudaBackend().problem;
    }
  }
  at::Tensor On(const at::Tensor& tensor) const { return tensor.to(device_); }
  at::Tensor Empty(const std::vector<int64_t>& shape, at::ScalarType dtype) const {
    return at::empty(shape, at::TensorOptions().dtype(dtype).device(device_));
  }

  const at::Device device_ = at::Device(GetParam());
  const int64_t code_ = static_cast<int64_t>(Precision::kBf16);
};

// 64 takes wide accesses on a GPU, 37 does not; 1100 and 4100: two packs of a thread, and more than it holds.
constexpr int64_t kWidthsOfDevices[] = {37, 64, 1100, 4100};

TEST_P(StreamOpsTest, RmsNormAndItsBackwardEqualTheFormulaWithARoundedStream) {
  for (const int64_t width : kWidthsOfDevices) {
    SCOPED_TRACE("width " + std::to_string(width));
    const NormCase of(width, /*layer_norm=*/false, at::kBFloat16);
    at::Tensor sum = Empty({kStreamRows, width}, at::kBFloat16),
               normed = Empty({kStreamRows, width}, at::kBFloat16),
               again = Empty({kStreamRows, width}, at::kBFloat16), rstd = Empty({kStreamRows}, at::kFloat),
               d_x = On(of.d_x.clone()), d_weight = On(at::zeros({width}));
    const at::Tensor weight = On(of.weight);
    ops::AddRmsNorm(On(of.residual), On(of.update), weight, kStreamEpsilon, code_, sum, normed, rstd);
    EXPECT_TRUE(at::equal(sum.cpu().to(at::kFloat), of.sum));
    ExpectRoundedOnce(normed, of.normed);
    ops::RmsNormAgain(sum, rstd, weight, code_, again);
    EXPECT_TRUE(at::equal(again.cpu(), normed.cpu()));
    ops::RmsNormBackward(On(of.d_normed), sum, rstd, weight, code_, d_x, d_weight, {});
    ExpectRoundedOnce(d_x, of.new_d_x);
    EXPECT_LT(RelativeDifference(InDouble(d_weight), of.d_weight), 1e-5);
  }
}

TEST_P(StreamOpsTest, LayerNormAndItsBackwardEqualTheFormulaWithARoundedStream) {
  for (const int64_t width : kWidthsOfDevices) {
    SCOPED_TRACE("width " + std::to_string(width));
    const NormCase of(width, /*layer_norm=*/true, at::kBFloat16);
    at::Tensor sum = Empty({kStreamRows, width}, at::kBFloat16),
               normed = Empty({kStreamRows, width}, at::kBFloat16),
               again = Empty({kStreamRows, width}, at::kBFloat16), mean = Empty({kStreamRows}, at::kFloat),
               rstd = Empty({kStreamRows}, at::kFloat), d_x = On(of.d_x.clone()),
               d_weight = On(at::zeros({width})), d_bias = On(at::zeros({width}));
    const at::Tensor weight = On(of.weight), bias = On(of.bias);
    ops::AddLayerNorm(On(of.residual), On(of.update), On(of.update_bias), weight, bias, kStreamEpsilon, code_,
                      sum, normed, mean, rstd);
    EXPECT_TRUE(at::equal(sum.cpu().to(at::kFloat), of.sum));
    ExpectRoundedOnce(normed, of.normed);
    ops::LayerNormAgain(sum, mean, rstd, weight, bias, code_, again);
    EXPECT_TRUE(at::equal(again.cpu(), normed.cpu()));
    ops::LayerNormBackward(On(of.d_normed), sum, mean, rstd, weight, code_, d_x, d_weight, d_bias, {});
    ExpectRoundedOnce(d_x, of.new_d_x);
    EXPECT_LT(RelativeDifference(InDouble(d_weight), of.d_weight), 1e-5);
    EXPECT_LT(RelativeDifference(InDouble(d_bias), of.d_bias), 1e-5);
  }
}

TEST_P(StreamOpsTest, EmbeddingsAreRoundedIntoTheStreamAndReadFromItsGradient) {
  for (const int64_t width : {int64_t{37}, int64_t{64}}) {
    const at::Tensor table = RandomTensor({9, width}, 1), tokens = at::arange(8, at::kLong),
                     rows = table.index_select(0, tokens);
    at::Tensor stream = Empty({8, width}, at::kBFloat16), gradient = On(at::zeros({9, width}));
    ops::Embed(On(table), On(tokens), stream);
    EXPECT_TRUE(at::equal(stream.cpu().to(at::kFloat), InBf16(rows)));
    ops::AddEmbedding(On(table), On(tokens), stream);
    EXPECT_TRUE(at::equal(stream.cpu().to(at::kFloat), InBf16(InBf16(rows).add(rows))));
    ops::EmbedBackward(stream, On(tokens), gradient);
    EXPECT_TRUE(at::equal(gradient.cpu().narrow(0, 0, 8), stream.cpu().to(at::kFloat)));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamOpsTest, testing::Values(at::kCPU, test::kTestedDevice),
                         [](const auto& info) { return test::NameOfDevice(info.param); });

}  // namespace
}  // namespace trainwright

// Packed attention on every device, backend and precision against its formula in double. Without a GPU that
// can be used the cuda instances are skipped: NOT RUN.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/error.h"
#include "lib/device/cuda_backend.h"
#include "lib/nn/attention/attention.h"
#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/position/rope.h"
#include "tests/nn/attention_reference.h"
#include "tests/nn/reference.h"
#include "tests/support/print_precision.h"
#include "tests/support/tested_device.h"

namespace trainwright {
namespace {

using test::RandomTensor;
using test::RelativeDifference;

struct Implementation {
  at::DeviceType device;
  AttentionBackend backend;
};
void PrintTo(const Implementation& implementation, std::ostream* out) {
  *out << implementation.device << ' ' << AttentionBackendName(implementation.backend);
}

class DeviceAttentionTest : public testing::TestWithParam<std::tuple<Implementation, Precision>> {
 protected:
  void SetUp() override {
    if (device_.is_cuda() && ProcessCudaBackend().plugin == nullptr) {
      GTEST_SKIP() << "NOT RUN: " << ProcessCudaBackend().problem;
    }
  }
  /// Whether the backend takes such heads; what it says when it does not is AttentionBackendTest's.
  bool Takes(int64_t head_dim) const {
    try {
      ResolveAttentionBackend(numerics_.attention, head_dim, numerics_.storage, device_);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  at::Tensor Stored(const std::vector<int64_t>& shape, uint64_t stream) const {
    return RandomTensor(shape, stream).to(PrecisionDtype(precision_)).to(numerics_.storage).to(device_);
  }
  /// Shows what was not written.
  at::Tensor NotANumber(const std::vector<int64_t>& shape, at::ScalarType dtype) const {
    return at::full(shape, NAN, at::TensorOptions().dtype(dtype).device(device_));
  }
  /// Forward and backward.
  void EqualsTheFormula(const AttentionShape& shape, const std::vector<int32_t>& starts) const;
  double tolerance() const {
    return precision_ == Precision::kFp32 ? 1e-5 : precision_ == Precision::kBf16 ? 1e-2 : 2e-3;
  }

  const at::Device device_ = at::Device(std::get<0>(GetParam()).device);
  const Precision precision_ = std::get<1>(GetParam());
  const Numerics numerics_ = {
      precision_,
      device_.is_cpu() && precision_ == Precision::kFp16 ? at::kFloat : PrecisionDtype(precision_),
      std::get<0>(GetParam()).backend};
};

struct HeadShape {
  int64_t num_heads, num_kv_heads, head_dim;
};
/// Every head with its own keys, groups, one group; sizes that only some backends take.
constexpr HeadShape kHeads[] = {{2, 2, 64}, {4, 2, 32}, {4, 1, 80}, {2, 1, 128}, {2, 1, 256}, {3, 3, 12}};
/// One token, around the blocks of 64 and 128 that kernels work in, and an empty span.
const std::vector<int32_t> kSpans = {0, 1, 64, 64, 129, 132, 260, 325};

/// Spans of one length, of which a backend may compute all at once.
const std::vector<int32_t> kEqualSpans = {0, 70, 140, 140, 210};

/// Whole spans, and a window that is shorter than some and longer than others.
constexpr int64_t kWindows[] = {0, 65};

TEST_P(DeviceAttentionTest, ForwardLogSumExpAndBackwardEqualTheFormula) {
  int taken = 0;
  for (const HeadShape& heads : kHeads) {
    if (!Takes(heads.head_dim)) continue;
    ++taken;
    for (const AttentionMask mask : test::kMasks) {
      for (const int64_t window : kWindows) {
        SCOPED_TRACE(std::to_string(heads.num_heads) + " heads, " + std::to_string(heads.num_kv_heads) +
                     " of keys, size " + std::to_string(heads.head_dim) + ", " + test::MaskName(mask) +
                     ", window " + std::to_string(window));
        for (const std::vector<int32_t>& spans : {kSpans, kEqualSpans}) {
          EqualsTheFormula({spans.back(), heads.num_heads, heads.num_kv_heads, heads.head_dim, window, mask},
                           spans);
        }
      }
    }
  }
  if (taken == 0) {
    GTEST_SKIP() << AttentionBackendName(numerics_.attention) << " takes no " << PrecisionName(precision_);
  }
}

void DeviceAttentionTest::EqualsTheFormula(const AttentionShape& shape,
                                           const std::vector<int32_t>& starts) const {
  const int64_t num_tokens = shape.num_tokens;
  const SpanTable spans(starts, device_);
  const int64_t width = shape.num_heads * shape.head_dim;
  const at::Tensor qkv = Stored({num_tokens, shape.row()}, 1), d_out = Stored({num_tokens, width}, 2);
  at::Tensor out = NotANumber({num_tokens, width}, numerics_.storage),
             lse = NotANumber({shape.num_heads, num_tokens}, at::kFloat),
             d_qkv = NotANumber({num_tokens, shape.row()}, numerics_.storage);
  PackedAttention(numerics_, shape, qkv, spans, out, lse);
  PackedAttentionBackward(numerics_, shape, d_out, qkv, out, lse, spans, d_qkv);
  const at::Tensor qkv_host = qkv.cpu(), d_out_host = d_out.cpu();
  EXPECT_LT(RelativeDifference(out.cpu(), test::Attention(qkv_host, shape, starts)), tolerance());
  EXPECT_LT(RelativeDifference(lse.cpu().t(), test::AttentionLse(qkv_host, shape, starts)), 1e-5);
  const at::Tensor expected = test::AttentionGradient(d_out_host, qkv_host, shape, starts);
  // Queries', keys' and values' apart: the largest of them must not hide the others' errors.
  const int64_t keys = shape.num_kv_heads * shape.head_dim;
  const auto difference = [&](int64_t column, int64_t columns) {
    return RelativeDifference(d_qkv.cpu().narrow(1, column, columns), expected.narrow(1, column, columns));
  };
  EXPECT_LT(difference(0, width), tolerance());
  EXPECT_LT(difference(width, keys), tolerance());
  EXPECT_LT(difference(width + keys, keys), tolerance());
}

TEST_P(DeviceAttentionTest, TheBackwardPassTurnsQueriesAndKeysBackWhereItIsAskedTo) {
  if (!Takes(32)) GTEST_SKIP() << AttentionBackendName(numerics_.attention);
  for (const std::vector<int32_t>& starts : {kSpans, kEqualSpans}) {
    const int64_t num_tokens = starts.back();
    const AttentionShape shape{num_tokens, 4, 2, 32};
    const SpanTable spans(starts, device_);
    const at::Tensor angles = RandomTensor({num_tokens, 12}, 3).to(at::kFloat);  // of 24 of 32 elements
    const RopeRows rope{angles.cos().to(device_), angles.sin().to(device_),
                        at::arange(num_tokens, at::kLong).to(device_)};
    const at::Tensor qkv = Stored({num_tokens, shape.row()}, 1), d_out = Stored({num_tokens, 128}, 2);
    at::Tensor out = NotANumber({num_tokens, 128}, numerics_.storage),
               lse = NotANumber({shape.num_heads, num_tokens}, at::kFloat),
               apart = NotANumber({num_tokens, shape.row()}, numerics_.storage),
               at_once = NotANumber({num_tokens, shape.row()}, numerics_.storage);
    PackedAttention(numerics_, shape, qkv, spans, out, lse);
    PackedAttentionBackward(numerics_, shape, d_out, qkv, out, lse, spans, apart);
    ApplyRope(numerics_, rope, shape, /*backward=*/true, apart);
    PackedAttentionBackward(numerics_, shape, d_out, qkv, out, lse, spans, at_once, &rope);
    EXPECT_LT(RelativeDifference(at_once.cpu(), apart.cpu()), 1e-6 + 0.1 * tolerance());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Devices, DeviceAttentionTest,
    testing::Combine(testing::Values(Implementation{at::kCPU, AttentionBackend::kAuto},
                                     Implementation{at::kCPU, AttentionBackend::kMath},
                                     Implementation{test::kTestedDevice, AttentionBackend::kAuto},
                                     Implementation{test::kTestedDevice, AttentionBackend::kFlash},
                                     Implementation{test::kTestedDevice, AttentionBackend::kCudnn},
                                     Implementation{test::kTestedDevice, AttentionBackend::kEfficient},
                                     Implementation{test::kTestedDevice, AttentionBackend::kMath}),
                     testing::Values(Precision::kFp32, Precision::kBf16, Precision::kFp16)),
    [](const auto& info) {
      const Implementation& implementation = std::get<0>(info.param);
      return test::NameOfDevice(implementation.device) + "_" + AttentionBackendName(implementation.backend) +
             "_" + PrecisionName(std::get<1>(info.param));
    });

}  // namespace
}  // namespace trainwright

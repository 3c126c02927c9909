// What attention on a GPU makes: the tensors of torch's kernels, taken as they are where nobody gave memory.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/nn/attention/attention.h"
#include "lib/nn/attention/attention_backend.h"
#include "tests/nn/reference.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::CountsOfDevice;
using test::kRefusingDevice;

struct ResultCase {
  AttentionBackend backend;
  std::vector<int32_t> starts;
  int64_t kernels;  ///< that run: the attention's, and a copy for each result that is not taken as it is
};
void PrintTo(const ResultCase& result_case, std::ostream* out) {
  *out << AttentionBackendName(result_case.backend) << " of " << result_case.starts.size() - 1 << " spans";
}

class AttentionResultTest : public testing::TestWithParam<ResultCase> {
 protected:
  AttentionResultTest() {
    numerics_.attention = GetParam().backend;
    shape_.num_tokens = GetParam().starts.back();
    qkv_ = test::RandomTensor({shape_.num_tokens, shape_.row()}, 1).to(at::kBFloat16).to(kRefusingDevice);
  }

  Numerics numerics_{Precision::kBf16, at::kBFloat16};
  AttentionShape shape_ = {0, 4, 2, 16};
  at::Tensor qkv_;
};

TEST_P(AttentionResultTest, IsTakenWithoutACopyWhereAllRowsAreInOrder) {
  const SpanTable spans(GetParam().starts, kRefusingDevice);
  at::Tensor out_nhk, lse_hn;
  test::ResetDeviceCounts();
  PackedAttention(numerics_, shape_, qkv_, spans, out_nhk, lse_hn);
  EXPECT_EQ(CountsOfDevice().kernels, GetParam().kernels);
  EXPECT_TRUE(out_nhk.is_contiguous() && lse_hn.is_contiguous());

  at::Tensor written_nhk = at::empty({shape_.num_tokens, 64}, qkv_.options()),
             written_hn = at::empty({4, shape_.num_tokens}, qkv_.options().dtype(at::kFloat));
  PackedAttention(numerics_, shape_, qkv_, spans, written_nhk, written_hn);
  EXPECT_TRUE(out_nhk.cpu().equal(written_nhk.cpu()));
  EXPECT_TRUE(lse_hn.cpu().equal(written_hn.cpu()));
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionResultTest,
                         testing::Values(ResultCase{AttentionBackend::kFlash, {0, 5, 12}, 1},
                                         // cuDNN has its sums by spans, so they are put in the order of rows.
                                         ResultCase{AttentionBackend::kCudnn, {0, 6, 12}, 2},
                                         ResultCase{AttentionBackend::kCudnn, {0, 12}, 2},
                                         // Two calls, and both results of each are copied.
                                         ResultCase{AttentionBackend::kCudnn, {0, 5, 12}, 6}));

}  // namespace
}  // namespace trainwright

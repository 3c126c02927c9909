// What attention gives torch's operators over cuDNN, and makes of what they give: by stand-ins on the CPU
// that demand the shapes that cuDNN's do (torch 2.11, aten/src/ATen/native/cudnn/MHA.cpp) and compute in
// double.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include "lib/nn/attention/torch_attention.h"
#include "tests/nn/attention_reference.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using at::Tensor;
using test::RandomTensor;
using test::RelativeDifference;

Tensor Scores(const Tensor& q_bhtk, const Tensor& k_bhtk, bool is_causal, double scale) {
  Tensor scores = at::matmul(q_bhtk.to(at::kDouble), k_bhtk.to(at::kDouble).transpose(2, 3)).mul_(scale);
  const int64_t length = q_bhtk.size(2);
  if (is_causal) scores.masked_fill_(at::ones({length, length}, at::kBool).triu(1), -INFINITY);
  return scores;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> Forward(
    const Tensor& q_bhtk, const Tensor& k_bhtk, const Tensor& v_bhtk, const std::optional<Tensor>&, bool,
    double, bool is_causal, bool, std::optional<double> scale) {
  const Tensor scores = Scores(q_bhtk, k_bhtk, is_causal, *scale);
  const Tensor lse = at::logsumexp(scores, {3}, /*keepdim=*/true);  // [B, H, T, 1]
  const Tensor out = at::matmul(scores.sub(lse).exp(), v_bhtk.to(at::kDouble));
  const Tensor none = at::empty({0});
  return {out.to(q_bhtk.scalar_type()),
          lse.to(at::kFloat).contiguous(),
          none,
          none,
          q_bhtk.size(2),
          k_bhtk.size(2),
          none,
          none,
          none};
}

std::tuple<Tensor, Tensor, Tensor> Backward(const Tensor& d_out_bhtk, const Tensor& q_bhtk,
                                            const Tensor& k_bhtk, const Tensor& v_bhtk,
                                            const Tensor& out_bhtk, const Tensor& lse_bht1, const Tensor&,
                                            const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                            c10::SymInt, c10::SymInt, double, bool is_causal,
                                            std::optional<double> scale) {
  const std::vector<int64_t> statistics = {q_bhtk.size(0), q_bhtk.size(1), q_bhtk.size(2), 1};
  TORCH_CHECK(
      lse_bht1.sizes() == statistics && lse_bht1.is_contiguous() && lse_bht1.scalar_type() == at::kFloat,
      "cuDNN's statistics are fp32 [B, H, T, 1], not ", lse_bht1.sizes());
  const Tensor p = Scores(q_bhtk, k_bhtk, is_causal, *scale).sub_(lse_bht1.to(at::kDouble)).exp_();
  const Tensor d_out = d_out_bhtk.to(at::kDouble);
  const Tensor delta = d_out.mul(out_bhtk.to(at::kDouble)).sum(3, /*keepdim=*/true);
  const Tensor d_scores =
      at::matmul(d_out, v_bhtk.to(at::kDouble).transpose(2, 3)).sub_(delta).mul_(p).mul_(*scale);
  const auto stored = q_bhtk.scalar_type();
  return {at::matmul(d_scores, k_bhtk.to(at::kDouble)).to(stored),
          at::matmul(d_scores.transpose(2, 3), q_bhtk.to(at::kDouble)).to(stored),
          at::matmul(p.transpose(2, 3), d_out).to(stored)};
}

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("_scaled_dot_product_cudnn_attention", &Forward);
  library.impl("_scaled_dot_product_cudnn_attention_backward", &Backward);
}

class CudnnAttentionTest : public testing::TestWithParam<AttentionMask> {};

TEST_P(CudnnAttentionTest, TakesAndGivesWhatCudnnDoes) {
  const std::vector<int32_t> starts = {0, 1, 64, 64, 130};
  const AttentionShape shape{130, 4, 2, 32, /*window=*/0, GetParam()};
  const Tensor qkv = RandomTensor({130, shape.row()}, 1).to(at::kBFloat16);
  const Tensor d_out = RandomTensor({130, 128}, 2).to(at::kBFloat16);
  Tensor out = at::full({130, 128}, NAN, at::kBFloat16), lse = at::full({4, 130}, NAN, at::kFloat),
         d_qkv = at::full({130, shape.row()}, NAN, at::kBFloat16);
  const SpanTable spans(starts);
  TorchAttention(AttentionBackend::kCudnn, shape, qkv, spans, out, lse);
  TorchAttentionBackward(AttentionBackend::kCudnn, shape, d_out, qkv, out, lse, spans, d_qkv);
  EXPECT_LT(RelativeDifference(out, test::Attention(qkv, shape, starts)), 1e-2);
  EXPECT_LT(RelativeDifference(lse.t(), test::AttentionLse(qkv, shape, starts)), 1e-5);
  EXPECT_LT(RelativeDifference(d_qkv, test::AttentionGradient(d_out, qkv, shape, starts)), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Masks, CudnnAttentionTest, testing::ValuesIn(test::kMasks),
                         [](const auto& info) { return std::string(test::MaskName(info.param)); });

}  // namespace
}  // namespace trainwright

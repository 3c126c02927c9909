// What attention gives torch's operators over cuDNN, and makes of what they give: by stand-ins on the CPU
// that demand the shapes that cuDNN's do (torch 2.11, aten/src/ATen/native/cudnn/MHA.cpp) and compute in
// double.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include "lib/nn/attention/fused_attention.h"
#include "lib/nn/attention/torch_attention.h"
#include "tests/nn/attention_reference.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using at::Tensor;
using test::RandomTensor;
using test::RelativeDifference;

constexpr Numerics kBf16{Precision::kBf16, at::kBFloat16};

/// What the operators were given since it was cleared: the queries of each call.
std::vector<Tensor>& Queries() {
  static auto* const queries = new std::vector<Tensor>;
  return *queries;
}

/// Heads that a group of query heads shares, once for each of them.
Tensor ForHeads(const Tensor& k_bgtk, const Tensor& q_bhtk) {
  TORCH_CHECK(q_bhtk.size(1) % k_bgtk.size(1) == 0, "groups of query heads share keys");
  return k_bgtk.repeat_interleave(q_bhtk.size(1) / k_bgtk.size(1), 1);
}
Tensor OfGroups(const Tensor& d_k_bhtk, const Tensor& k_bgtk) {
  return d_k_bhtk.unflatten(1, {k_bgtk.size(1), d_k_bhtk.size(1) / k_bgtk.size(1)}).sum(2);
}

void RequireSeveralTokens(const Tensor& q_bhtk) {
  TORCH_CHECK(q_bhtk.size(2) > 1, "cuDNN has no backward pass of spans of one token");
}

Tensor Scores(const Tensor& q_bhtk, const Tensor& k_bhtk, bool is_causal, double scale) {
  Tensor scores = at::matmul(q_bhtk.to(at::kDouble), k_bhtk.to(at::kDouble).transpose(2, 3)).mul_(scale);
  const int64_t length = q_bhtk.size(2);
  if (is_causal) scores.masked_fill_(at::ones({length, length}, at::kBool).triu(1), -INFINITY);
  return scores;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> Forward(
    const Tensor& q_bhtk, const Tensor& k_bgtk, const Tensor& v_bgtk, const std::optional<Tensor>&, bool,
    double, bool is_causal, bool, std::optional<double> scale) {
  RequireSeveralTokens(q_bhtk);
  Queries().push_back(q_bhtk);
  const Tensor k_bhtk = ForHeads(k_bgtk, q_bhtk), v_bhtk = ForHeads(v_bgtk, q_bhtk);
  const Tensor scores = Scores(q_bhtk, k_bhtk, is_causal, *scale);
  const Tensor lse = at::logsumexp(scores, {3}, /*keepdim=*/true);  // [B, H, T, 1]
  const Tensor out = at::matmul(scores.sub(lse).exp(), v_bhtk.to(at::kDouble));
  const Tensor none = at::empty({0});
  // In the order of the query's strides, as cuDNN's results are allocated.
  Tensor result = at::empty_like(q_bhtk);
  result.copy_(out);
  return {result, lse.to(at::kFloat).contiguous(), none, none, q_bhtk.size(2), k_bhtk.size(2), none, none,
          none};
}

std::tuple<Tensor, Tensor, Tensor> Backward(const Tensor& d_out_bhtk, const Tensor& q_bhtk,
                                            const Tensor& k_bgtk, const Tensor& v_bgtk,
                                            const Tensor& out_bhtk, const Tensor& lse_bht1, const Tensor&,
                                            const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                            c10::SymInt, c10::SymInt, double, bool is_causal,
                                            std::optional<double> scale) {
  RequireSeveralTokens(q_bhtk);
  Queries().push_back(q_bhtk);
  const Tensor k_bhtk = ForHeads(k_bgtk, q_bhtk), v_bhtk = ForHeads(v_bgtk, q_bhtk);
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
          OfGroups(at::matmul(d_scores.transpose(2, 3), q_bhtk.to(at::kDouble)), k_bgtk).to(stored),
          OfGroups(at::matmul(p.transpose(2, 3), d_out), k_bgtk).to(stored)};
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
  TorchAttentionBackward(AttentionBackend::kCudnn, kBf16, shape, d_out, qkv, out, lse, spans, d_qkv,
                         /*rope=*/nullptr);
  EXPECT_LT(RelativeDifference(out, test::Attention(qkv, shape, starts)), 1e-2);
  EXPECT_LT(RelativeDifference(lse.t(), test::AttentionLse(qkv, shape, starts)), 1e-5);
  EXPECT_LT(RelativeDifference(d_qkv, test::AttentionGradient(d_out, qkv, shape, starts)), 1e-2);
}

TEST_P(CudnnAttentionTest, SpansOfOneLengthAreOneCallOnTheRowsThemselves) {
  const std::vector<int32_t> starts = {0, 40, 80, 80, 120};
  const AttentionShape shape{120, 4, 2, 32, /*window=*/0, GetParam()};
  const Tensor qkv = RandomTensor({120, shape.row()}, 1).to(at::kBFloat16);
  const Tensor d_out = RandomTensor({120, 128}, 2).to(at::kBFloat16);
  Tensor out = at::full({120, 128}, NAN, at::kBFloat16), lse = at::full({4, 120}, NAN, at::kFloat),
         d_qkv = at::full({120, shape.row()}, NAN, at::kBFloat16);
  Queries().clear();
  TorchAttention(AttentionBackend::kCudnn, shape, qkv, SpanTable(starts), out, lse);
  TorchAttentionBackward(AttentionBackend::kCudnn, kBf16, shape, d_out, qkv, out, lse, SpanTable(starts),
                         d_qkv,
                         /*rope=*/nullptr);
  ASSERT_EQ(Queries().size(), 2u);
  for (const Tensor& q_bhtk : Queries()) {
    EXPECT_EQ(q_bhtk.sizes(), at::IntArrayRef({3, 4, 40, 32}));
    EXPECT_TRUE(q_bhtk.is_alias_of(qkv));
  }
  EXPECT_LT(RelativeDifference(out, test::Attention(qkv, shape, starts)), 1e-2);
  EXPECT_LT(RelativeDifference(lse.t(), test::AttentionLse(qkv, shape, starts)), 1e-5);
  EXPECT_LT(RelativeDifference(d_qkv, test::AttentionGradient(d_out, qkv, shape, starts)), 1e-2);
}

TEST_P(CudnnAttentionTest, IsNotAskedAboutSpansOfOneToken) {
  const std::vector<int32_t> starts = {0, 1, 2, 2, 3, 4};
  const AttentionShape shape{4, 4, 2, 32, /*window=*/0, GetParam()};
  const Tensor qkv = RandomTensor({4, shape.row()}, 1).to(at::kBFloat16);
  const Tensor d_out = RandomTensor({4, 128}, 2).to(at::kBFloat16);
  Tensor out = at::full({4, 128}, NAN, at::kBFloat16), lse = at::full({4, 4}, NAN, at::kFloat),
         d_qkv = at::full({4, shape.row()}, NAN, at::kBFloat16);
  Queries().clear();
  TorchAttention(AttentionBackend::kCudnn, shape, qkv, SpanTable(starts), out, lse);
  TorchAttentionBackward(AttentionBackend::kCudnn, kBf16, shape, d_out, qkv, out, lse, SpanTable(starts),
                         d_qkv,
                         /*rope=*/nullptr);
  EXPECT_TRUE(Queries().empty());
  EXPECT_LT(RelativeDifference(out, test::Attention(qkv, shape, starts)), 1e-6);
  EXPECT_LT(RelativeDifference(lse.t(), test::AttentionLse(qkv, shape, starts)), 1e-5);
  EXPECT_LT(RelativeDifference(d_qkv, test::AttentionGradient(d_out, qkv, shape, starts)), 1e-2);
}

TEST(DenseAttentionTest, RefusesHeadsThatTheLibraryWouldNotTake) {
  const Tensor all = at::zeros({1, 8, 16, 64}, at::kBFloat16);
  const auto heads = [&](int64_t number) { return all.narrow(1, 0, number); };
  EXPECT_NO_THROW(DenseAttention({heads(6), heads(3), heads(3)}, {}));
  EXPECT_ANY_THROW(DenseAttention({heads(6), heads(4), heads(4)}, {}));
  EXPECT_ANY_THROW(DenseAttention({heads(6), heads(3), heads(2)}, {}));
  EXPECT_ANY_THROW(DenseAttention({all.narrow(3, 0, 12), all.narrow(3, 0, 12), all.narrow(3, 0, 12)}, {}));
  EXPECT_ANY_THROW(DenseAttention({all.narrow(3, 4, 8), all.narrow(3, 4, 8), all.narrow(3, 4, 8)}, {}));
  EXPECT_ANY_THROW(DenseAttention({all, all, all.transpose(2, 3)}, {}));
}

INSTANTIATE_TEST_SUITE_P(Masks, CudnnAttentionTest, testing::ValuesIn(test::kMasks),
                         [](const auto& info) { return std::string(test::MaskName(info.param)); });

}  // namespace
}  // namespace trainwright

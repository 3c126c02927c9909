#include "lib/probe/attention_matrix.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <exception>

#include "lib/base/error.h"
#include "lib/device/device_sync.h"
#include "lib/nn/attention/attention.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

constexpr int64_t kHeadDims[] = {36, 64, 80, 96, 128, 192, 256, 512};
constexpr AttentionBackend kBackends[] = {AttentionBackend::kAuto, AttentionBackend::kFlash,
                                          AttentionBackend::kCudnn, AttentionBackend::kEfficient,
                                          AttentionBackend::kMath};
constexpr int64_t kTokens = 96, kHeads = 2;

/// Torch's own entry of a backend, without spans.
void TryUnmasked(const AttentionCase& asked, const Numerics& numerics, c10::Device device) {
  const at::Tensor q = at::ones({1, kHeads, kTokens, asked.head_dim},
                                at::TensorOptions().dtype(numerics.storage).device(device));
  switch (asked.backend) {
    case AttentionBackend::kAuto:
      at::scaled_dot_product_attention(q, q, q);
      return;
    case AttentionBackend::kFlash:
      at::_scaled_dot_product_flash_attention(q, q, q);
      return;
    case AttentionBackend::kCudnn:
      at::_scaled_dot_product_cudnn_attention(q, q, q, /*attn_bias=*/{}, /*compute_log_sumexp=*/true);
      return;
    case AttentionBackend::kEfficient:
      at::_scaled_dot_product_efficient_attention(q, q, q, /*attn_bias=*/{}, /*compute_log_sumexp=*/true);
      return;
    case AttentionBackend::kMath:
      at::_scaled_dot_product_attention_math(q, q, q);
      return;
  }
}

/// Both passes of training's attention.
void TryPacked(const AttentionCase& asked, const Numerics& numerics, c10::Device device) {
  const bool both_ways = asked.mask == ProbedMask::kPackedBothWays;
  const AttentionShape shape{.num_tokens = kTokens,
                             .num_heads = kHeads,
                             .num_kv_heads = kHeads,
                             .head_dim = asked.head_dim,
                             .mask = both_ways ? AttentionMask::kBidirectional : AttentionMask::kCausal};
  const auto stored = at::TensorOptions().dtype(numerics.storage).device(device);
  const at::Tensor qkv = at::ones({kTokens, shape.row()}, stored);
  at::Tensor out = at::zeros({kTokens, kHeads * asked.head_dim}, stored),
             lse = at::zeros({kHeads, kTokens}, stored.dtype(at::kFloat)), d_qkv = at::zeros_like(qkv);
  std::vector<int32_t> starts = {0, static_cast<int32_t>(kTokens)};
  if (asked.mask != ProbedMask::kCausal) starts = {0, 20, static_cast<int32_t>(kTokens)};
  const SpanTable spans = device.is_cpu() ? SpanTable(starts) : SpanTable(starts, device, /*pin=*/false);
  PackedAttention(numerics, shape, qkv, spans, out, lse);
  PackedAttentionBackward(numerics, shape, at::ones({kTokens, kHeads * asked.head_dim}, stored), qkv, out,
                          lse, spans, d_qkv);
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

AttentionAnswer Ask(const AttentionCase& asked, c10::Device device, bool tries) {
  AttentionAnswer answer{.of = asked};
  try {
    const AttentionBackend resolved =
        ResolveAttentionBackend(asked.backend, asked.head_dim, PrecisionDtype(asked.precision), device);
    answer.accepts = true;
    if (!tries) return answer;
    answer.tried = true;
    const Numerics numerics = ChooseNumerics(asked.precision, device, resolved);
    asked.mask == ProbedMask::kNone ? TryUnmasked(asked, numerics, device)
                                    : TryPacked(asked, numerics, device);
    WaitFor(device);
  } catch (const Error& error) {
    answer.accepts = false;
    answer.reason = error.problem();
  } catch (const std::exception& error) {  // torch's
    answer.accepts = false;
    answer.reason = FirstLine(error.what());
  }
  return answer;
}

}  // namespace

std::string ProbedMaskName(ProbedMask mask) {
  switch (mask) {
    case ProbedMask::kCausal:
      return "causal";
    case ProbedMask::kPacked:
      return "packed";
    case ProbedMask::kPackedBothWays:
      return "packed-both-ways";
    case ProbedMask::kNone:
      return "none";
  }
  return "";
}

std::vector<AttentionAnswer> AskAttention(c10::Device device, bool tries) {
  std::vector<AttentionAnswer> answers;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    for (const ProbedMask mask : kProbedMasks) {
      for (const AttentionBackend backend : kBackends) {
        for (const int64_t head_dim : kHeadDims) {
          answers.push_back(
              Ask({.precision = precision, .head_dim = head_dim, .mask = mask, .backend = backend}, device,
                  tries));
        }
      }
    }
  }
  return answers;
}

nlohmann::ordered_json EncodeAttentionAnswer(const AttentionAnswer& answer) {
  return {
      {"dtype", PrecisionName(answer.of.precision)},
      {"head_dim", answer.of.head_dim},
      {"mask", ProbedMaskName(answer.of.mask)},
      {"backend", AttentionBackendName(answer.of.backend)},
      {"accepts", answer.accepts},
      {"tried", answer.tried},
      {"reason", answer.reason.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(answer.reason)}};
}

std::string FormatAttention(const std::vector<AttentionAnswer>& answers) {
  std::vector<std::string> header = {"dtype", "mask"};
  for (const AttentionBackend backend : kBackends) header.push_back(AttentionBackendName(backend));
  Table table(header);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    for (const ProbedMask mask : kProbedMasks) {
      std::vector<std::string> row = {PrecisionName(precision), ProbedMaskName(mask)};
      for (const AttentionBackend backend : kBackends) {
        std::string takes;
        size_t count = 0;
        for (const AttentionAnswer& answer : answers) {
          const AttentionCase& of = answer.of;
          if (of.precision != precision || of.mask != mask || of.backend != backend || !answer.accepts)
            continue;
          takes += (takes.empty() ? "" : ",") + std::to_string(of.head_dim);
          ++count;
        }
        row.push_back(count == std::size(kHeadDims) ? "all" : takes.empty() ? "none" : takes);
      }
      table.AddRow(row);
    }
  }
  return table.ToString();
}

}  // namespace trainwright

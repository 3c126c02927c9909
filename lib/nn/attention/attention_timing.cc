#include "lib/nn/attention/attention_timing.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/device/device_sync.h"
#include "lib/device/gpu_limits.h"
#include "lib/nn/attention/attention.h"
#include "lib/nn/attention/attention_backend.h"

namespace trainwright {
namespace {

/// The tensors of a layer.
class Layer {
 public:
  Layer(const Numerics& numerics, const AttentionShape& shape, int64_t span_tokens, at::Device device)
      : numerics_(numerics), shape_(shape), device_(device) {
    std::vector<int32_t> starts;
    for (int64_t start = 0; start <= shape.num_tokens; start += span_tokens) {
      starts.push_back(static_cast<int32_t>(start));
    }
    spans_ = SpanTable(std::move(starts), device, /*pin=*/false);
    const auto stored = at::TensorOptions().dtype(numerics.storage).device(device);
    const int64_t width = shape.num_heads * shape.head_dim;
    qkv_ = at::zeros({shape.num_tokens, shape.row()}, stored);
    d_out_ = at::zeros({shape.num_tokens, width}, stored);
    d_qkv_ = at::empty({shape.num_tokens, shape.row()}, stored);
  }
  /// \returns seconds
  double Run(AttentionBackend backend) {
    numerics_.attention = backend;
    WaitFor(device_);
    const auto start = std::chrono::steady_clock::now();
    at::Tensor out, lse_hn;  // made by the kernels, as in training
    PackedAttention(numerics_, shape_, qkv_, spans_, out, lse_hn);
    PackedAttentionBackward(numerics_, shape_, d_out_, qkv_, out, lse_hn, spans_, d_qkv_);
    WaitFor(device_);
    return SecondsSince(start);
  }

 private:
  Numerics numerics_;
  AttentionShape shape_;
  at::Device device_;
  SpanTable spans_;
  at::Tensor qkv_, d_out_, d_qkv_;
};

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::vector<AttentionBackend> AttentionCandidates(const Numerics& numerics, const AttentionShape& shape,
                                                  int64_t span_tokens, at::Device device) {
  if (device.is_cpu()) return {};
  std::vector<AttentionBackend> candidates;
  const bool windowed = shape.window != 0 && span_tokens > shape.window;
  const bool any_order = !at::globalContext().deterministicAlgorithms();
  for (const AttentionBackend backend : {AttentionBackend::kCudnn, AttentionBackend::kFlash}) {
    if (backend == AttentionBackend::kCudnn && (windowed || !any_order)) continue;
    if (TakesHeads(backend, shape.head_dim, numerics.storage, LimitsOf(device)))
      candidates.push_back(backend);
  }
  return candidates;
}

std::vector<AttentionTiming> TimeAttention(const std::vector<AttentionBackend>& candidates,
                                           const Numerics& numerics, const AttentionShape& shape,
                                           int64_t span_tokens, at::Device device, int rounds) {
  TRAINWRIGHT_CHECK(span_tokens > 0 && shape.num_tokens % span_tokens == 0);
  std::vector<AttentionTiming> timings;
  for (const AttentionBackend backend : candidates) {
    AttentionTiming& timing = timings.emplace_back();
    timing.backend = backend;
    try {
      Layer layer(numerics, shape, span_tokens, device);
      layer.Run(backend);  // which plans and allocates
      timing.seconds = std::numeric_limits<double>::infinity();
      for (int round = 0; round < rounds; ++round) {
        timing.seconds = std::min(timing.seconds, layer.Run(backend));
      }
    } catch (const std::exception& problem) {  // of a library that lacks what the device would have
      timing.seconds = 0;
      timing.problem = FirstLine(problem.what());
    }
  }
  return timings;
}

AttentionBackend FastestAttention(const std::vector<AttentionTiming>& timings) {
  const AttentionTiming* fastest = nullptr;
  for (const AttentionTiming& timing : timings) {
    if (!timing.problem.empty()) continue;
    if (fastest == nullptr || timing.seconds < fastest->seconds) fastest = &timing;
  }
  return fastest == nullptr ? AttentionBackend::kAuto : fastest->backend;
}

}  // namespace trainwright

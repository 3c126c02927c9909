#include "lib/nn/attention/attention_backend.h"

#include <string>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// Why a backend cannot run on a GPU; empty when it can. Its limits are those of torch 2.11's checks.
std::string Refusal(AttentionBackend backend, int64_t head_dim, at::ScalarType dtype,
                    const GpuLimits& limits) {
  const bool is_short = dtype == at::kBFloat16 || dtype == at::kHalf;
  const auto heads_of = [&](int64_t multiple, int64_t largest) -> std::string {
    if (head_dim % multiple == 0 && head_dim <= largest) return "";
    return "takes heads of a multiple of " + std::to_string(multiple) + " elements up to " +
           std::to_string(largest) + ", not " + std::to_string(head_dim);
  };
  if (backend == AttentionBackend::kMath || backend == AttentionBackend::kAuto) return "";
  if (backend == AttentionBackend::kEfficient) return heads_of(is_short ? 8 : 4, 65536);
  if (!limits.flash_attention) return "needs compute capability 8.0: this is " + limits.gpu;
  if (!is_short) return "takes bf16 and fp16 only, not fp32";
  return heads_of(8, backend == AttentionBackend::kFlash ? 256 : 128);
}

[[noreturn]] void Refuse(AttentionBackend asked, const std::string& refusal) {
  throw Error(ErrorCode::kUsage, "--attn-backend", AttentionBackendName(asked) + " " + refusal, "",
              "use --attn-backend auto");
}

}  // namespace

AttentionBackend ResolveAttentionBackend(AttentionBackend asked, int64_t head_dim, at::ScalarType dtype,
                                         at::Device device) {
  if (!device.is_cpu()) return ResolveAttentionBackend(asked, head_dim, dtype, LimitsOf(device));
  if (asked != AttentionBackend::kMath && asked != AttentionBackend::kAuto)
    Refuse(asked, "runs on a GPU only");
  return asked;
}

AttentionBackend ResolveAttentionBackend(AttentionBackend asked, int64_t head_dim, at::ScalarType dtype,
                                         const GpuLimits& limits) {
  if (asked == AttentionBackend::kAuto) {
    for (const AttentionBackend backend : {AttentionBackend::kFlash, AttentionBackend::kEfficient}) {
      if (TakesHeads(backend, head_dim, dtype, limits)) return backend;
    }
    return AttentionBackend::kMath;
  }
  const std::string refusal = Refusal(asked, head_dim, dtype, limits);
  if (!refusal.empty()) Refuse(asked, refusal);
  return asked;
}

bool TakesHeads(AttentionBackend backend, int64_t head_dim, at::ScalarType dtype, const GpuLimits& limits) {
  return Refusal(backend, head_dim, dtype, limits).empty();
}

AttentionBackend AttentionBackendOf(const Numerics& numerics, const AttentionShape& shape,
                                    const SpanTable& spans, at::Device device) {
  AttentionBackend asked = numerics.attention;
  const bool chosen = numerics.equal_spans != AttentionBackend::kAuto;
  if (asked == AttentionBackend::kAuto && chosen && spans.all_equal()) {
    const bool windowed = shape.window != 0 && spans.longest() > shape.window;  // it was timed without
    if (!windowed) asked = numerics.equal_spans;
  }
  return ResolveAttentionBackend(asked, shape.head_dim, numerics.storage, device);
}

}  // namespace trainwright

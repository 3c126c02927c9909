/// Which of torch's attention kernels runs on a GPU; lib/spec/attention_backend.h names them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/device/gpu_limits.h"
#include "lib/nn/attention/attention_shape.h"
#include "lib/nn/attention/span_table.h"
#include "lib/nn/precision.h"
#include "lib/spec/attention_backend.h"

namespace trainwright {

/// What `asked` stands for with heads of `head_dim` elements of `dtype`; kAuto on a CPU: our own. Torch's
/// meta device stands for a GPU.
/// \throws Error{kUsage} saying why a backend cannot take them
AttentionBackend ResolveAttentionBackend(AttentionBackend asked, int64_t head_dim, at::ScalarType dtype,
                                         at::Device device);
/// The same for a GPU of such limits.
AttentionBackend ResolveAttentionBackend(AttentionBackend asked, int64_t head_dim, at::ScalarType dtype,
                                         const GpuLimits& limits);
/// Whether a backend can take them on such a GPU.
bool TakesHeads(AttentionBackend backend, int64_t head_dim, at::ScalarType dtype, const GpuLimits& limits);
/// What computes a micro-batch of such spans.
AttentionBackend AttentionBackendOf(const Numerics& numerics, const AttentionShape& shape,
                                    const SpanTable& spans, at::Device device);

}  // namespace trainwright

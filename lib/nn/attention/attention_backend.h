/// Which of torch's attention kernels runs on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace trainwright {

/// flash: FlashAttention 2, all spans in one launch; cudnn, efficient (CUTLASS), math (plain products and a
/// softmax): one launch a span. auto: the first of flash, efficient, math that takes the shape and type.
/// On a CPU auto is our kernel for short spans and torch's flash for long ones, and math runs too (slowly).
enum class AttentionBackend { kAuto, kFlash, kCudnn, kEfficient, kMath };

/// "auto", "flash", "cudnn", "efficient", "math".
/// \throws Error{kUsage} naming `flag`
AttentionBackend ParseAttentionBackend(const std::string& name, const std::string& flag);
std::string AttentionBackendName(AttentionBackend backend);

/// What `asked` stands for with heads of `head_dim` elements of `dtype`; kAuto on a CPU: our own. Torch's
/// meta device stands for a GPU.
/// \throws Error{kUsage} saying why a backend cannot take them
AttentionBackend ResolveAttentionBackend(AttentionBackend asked, int64_t head_dim, at::ScalarType dtype,
                                         at::Device device);

}  // namespace trainwright

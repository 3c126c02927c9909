/// Which attention kernel is asked for, by name. Free of torch; lib/nn/attention/attention_backend.h says
/// which of them runs.
#pragma once

#include <string>

namespace trainwright {

/// flash: FlashAttention 2, all spans in one launch; cudnn, efficient (CUTLASS), math (plain GEMMs and a
/// softmax): one launch a span. auto: the first of flash, efficient, math that takes the shape and type.
/// On a CPU auto is our kernel for short spans and torch's flash for long ones, and math runs too (slowly).
enum class AttentionBackend { kAuto, kFlash, kCudnn, kEfficient, kMath };

/// "auto", "flash", "cudnn", "efficient", "math".
/// \throws Error{kUsage} naming `flag`
AttentionBackend ParseAttentionBackend(const std::string& name, const std::string& flag);
std::string AttentionBackendName(AttentionBackend backend);

}  // namespace trainwright

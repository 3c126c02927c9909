#include "lib/base/bf16_instructions.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace trainwright {
namespace {

Bf16Instructions Detect() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx512bf16")) return Bf16Instructions::kNone;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kAmxBf16 = 1u << 22;
  const bool has_amx = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxBf16) != 0;
  return __builtin_cpu_is("intel") && !has_amx ? Bf16Instructions::kSlow : Bf16Instructions::kFast;
#else
  return Bf16Instructions::kNone;
#endif
}

}  // namespace

Bf16Instructions DetectBf16Instructions() {
  static const Bf16Instructions instructions = Detect();
  return instructions;
}

}  // namespace trainwright

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#define TRAINWRIGHT_UPDATE UpdateBf16MomentsAvx2
#include "lib/nn/update/bf16_moments_body.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif

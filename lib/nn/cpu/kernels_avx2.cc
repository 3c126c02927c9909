#if defined(__x86_64__)

#define TRAINWRIGHT_KERNELS kAvx2Kernels
#define TRAINWRIGHT_KERNELS_NAME "avx2"
#define TRAINWRIGHT_VECTOR_BYTES 32
#if defined(__clang__)
#define TRAINWRIGHT_BEGIN_TARGET \
  _Pragma("clang attribute push(__attribute__((target(\"avx2,fma\"))), apply_to = function)")
#define TRAINWRIGHT_END_TARGET _Pragma("clang attribute pop")
#else
#define TRAINWRIGHT_BEGIN_TARGET _Pragma("GCC target(\"avx2,fma\")")
#define TRAINWRIGHT_END_TARGET
#endif
#include "lib/nn/cpu/kernels_body.h"

#endif

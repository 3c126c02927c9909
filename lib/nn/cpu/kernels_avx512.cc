#if defined(__x86_64__)

#define TRAINWRIGHT_KERNELS kAvx512Kernels
#define TRAINWRIGHT_KERNELS_NAME "avx512"
#define TRAINWRIGHT_VECTOR_BYTES 64
#if defined(__clang__)
#define TRAINWRIGHT_BEGIN_TARGET                                                                        \
  _Pragma(                                                                                              \
      "clang attribute push(__attribute__((target(\"avx512f,avx512bw,avx512dq,avx512vl,avx2,fma\"))), " \
      "apply_to = function)")
#define TRAINWRIGHT_END_TARGET _Pragma("clang attribute pop")
#else
#define TRAINWRIGHT_BEGIN_TARGET _Pragma("GCC target(\"avx512f,avx512bw,avx512dq,avx512vl,avx2,fma\")")
#define TRAINWRIGHT_END_TARGET
#endif
#include "lib/nn/cpu/kernels_body.h"

#endif

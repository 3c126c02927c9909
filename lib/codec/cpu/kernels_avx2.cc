#if defined(__x86_64__)

#if defined(__clang__)
#define TRAINWRIGHT_BEGIN_TARGET \
  _Pragma("clang attribute push(__attribute__((target(\"avx2,bmi2\"))), apply_to = function)")
#define TRAINWRIGHT_END_TARGET _Pragma("clang attribute pop")
#else
#define TRAINWRIGHT_BEGIN_TARGET _Pragma("GCC target(\"avx2,bmi2\")")
#define TRAINWRIGHT_END_TARGET
#endif
#include <immintrin.h>

#define XXH_VECTOR XXH_AVX2
#include "lib/codec/cpu/kernels_body.h"

namespace trainwright::codec {

const Kernels kAvx2Kernels = {"avx2", Split, Merge, Hash, Histogram, RansEncodeScalar, RansDecodeScalar,
                                true, Exponents, AddExponents, Predict, Unpredict, Subtract, Add};

}  // namespace trainwright::codec

#endif

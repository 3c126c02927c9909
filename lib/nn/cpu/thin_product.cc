#include "lib/nn/cpu/thin_product.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define TRAINWRIGHT_BEGIN_TARGET(instructions) \
  _Pragma("clang attribute push(__attribute__((target(" #instructions "))), apply_to = function)")
#define TRAINWRIGHT_END_TARGET _Pragma("clang attribute pop")
#else
#define TRAINWRIGHT_PRAGMA(text) _Pragma(#text)
#define TRAINWRIGHT_BEGIN_TARGET(instructions) \
  _Pragma("GCC push_options") TRAINWRIGHT_PRAGMA(GCC target(instructions))
#define TRAINWRIGHT_END_TARGET _Pragma("GCC pop_options")
#endif

namespace trainwright::cpu {
namespace {

float FromBf16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

/// Rounds to nearest even; a NaN stays one.
uint16_t ToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (value != value) return static_cast<uint16_t>((bits | 0x00400000u) >> 16);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

void Store(const ThinProduct& p, int64_t row, int64_t column, float sum) {
  const int64_t at = row * p.out_stride + column;
  if (p.out_bf16) {
    auto* out = static_cast<uint16_t*>(p.out);
    out[at] = ToBf16(p.accumulate ? FromBf16(out[at]) + sum : sum);
  } else {
    auto* out = static_cast<float*>(p.out);
    out[at] = p.accumulate ? out[at] + sum : sum;
  }
}

float Value(float element) {
  return element;
}
float Value(uint16_t element) {
  return FromBf16(element);
}

/// In 16 interleaved parts, so that the compiler can use vectors.
template <typename Element>
void ByElement(const ThinProduct& p, int64_t begin, int64_t end) {
  constexpr int64_t kParts = 16;
  for (int64_t n = begin; n < end; ++n) {
    const Element* w = static_cast<const Element*>(p.w) + n * p.w_stride;
    for (int64_t m = 0; m < p.rows; ++m) {
      const Element* a = static_cast<const Element*>(p.a) + m * p.a_stride;
      float parts[kParts] = {}, sum = 0;
      int64_t k = 0;
      for (; k + kParts <= p.depth; k += kParts) {
        for (int64_t i = 0; i < kParts; ++i) parts[i] += Value(a[k + i]) * Value(w[k + i]);
      }
      for (int64_t i = 0; k + i < p.depth; ++i) parts[i] += Value(a[k + i]) * Value(w[k + i]);
      for (const float part : parts) sum += part;
      Store(p, m, n, sum);
    }
  }
}

#if defined(__x86_64__)

TRAINWRIGHT_BEGIN_TARGET("avx512f")
namespace fp32 {
using Element = float;
using Vector = __m512;
constexpr int64_t kStep = 16;
inline Vector Load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline Vector LoadPart(const float* from, int64_t count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
}
inline __m512 Add(__m512 sum, Vector a, Vector w) {
  return _mm512_fmadd_ps(a, w, sum);
}
#include "lib/nn/cpu/thin_product_tile.h"
}  // namespace fp32
TRAINWRIGHT_END_TARGET

TRAINWRIGHT_BEGIN_TARGET("avx512f,avx512bw,avx512bf16")
namespace bf16 {
using Element = uint16_t;
using Vector = __m512i;
constexpr int64_t kStep = 32;
inline Vector Load(const uint16_t* from) {
  return _mm512_loadu_si512(from);
}
inline Vector LoadPart(const uint16_t* from, int64_t count) {
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1), from);
}
/// Each lane adds the products of a pair.
inline __m512 Add(__m512 sum, Vector a, Vector w) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)w);
}
#include "lib/nn/cpu/thin_product_tile.h"
}  // namespace bf16
TRAINWRIGHT_END_TARGET

#endif

}  // namespace

void ComputeThinProductByElement(const ThinProduct& product, int64_t begin, int64_t end) {
  product.bf16 ? ByElement<uint16_t>(product, begin, end) : ByElement<float>(product, begin, end);
}

void ComputeThinProduct(const ThinProduct& product, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (!product.bf16 && __builtin_cpu_supports("avx512f")) return fp32::Compute(product, begin, end);
  if (product.bf16 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw")) {
    return bf16::Compute(product, begin, end);
  }
#endif
  ComputeThinProductByElement(product, begin, end);
}

}  // namespace trainwright::cpu

#include "lib/nn/linear/thin_product.h"

#include <cstring>

#include "lib/nn/linear/thin_sums.h"

namespace trainwright::cpu {
namespace {

float FromBf16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

/// Rounds to nearest even; a NaN stays one. Always inlined: loops around it take the vectors of their place.
[[gnu::always_inline]] inline uint16_t ToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  return static_cast<uint16_t>((value == value ? rounded : bits | 0x00400000u) >> 16);
}

void StoreOne(const ThinProduct& p, int64_t row, int64_t column, float sum) {
  const int64_t at = row * p.out_stride + column;
  if (p.out_bf16) {
    auto* out = static_cast<uint16_t*>(p.out);
    out[at] = ToBf16(p.accumulate ? FromBf16(out[at]) + sum : sum);
  } else {
    auto* out = static_cast<float*>(p.out);
    out[at] = p.accumulate ? out[at] + sum : sum;
  }
}

/// A tile of elements of the product, in place of what is there.
template <int kRows, int kColumns, typename Out>
[[gnu::always_inline]] inline void StoreRows(const ThinProduct& p, int64_t row, int64_t column,
                                             const Out* from) {
  for (int m = 0; m < kRows; ++m) {
    Out* out = static_cast<Out*>(p.out) + (row + m) * p.out_stride + column;
    std::memcpy(out, from + m * kColumns, kColumns * sizeof(Out));
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
      StoreOne(p, m, n, sum);
    }
  }
}

#if defined(__x86_64__)

TRAINWRIGHT_BEGIN_TARGET("avx2,fma")
namespace avx2 {
// bf16 is widened as it is read.
using Vector = __m256;
constexpr int64_t kStep = 8;
inline Vector Load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline Vector Load(const uint16_t* from) {
  const __m128i shorts = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(shorts), 16));
}
template <typename Element>
inline Vector LoadPart(const Element* from, int64_t count) {
  Element part[kStep] = {};
  for (int64_t i = 0; i < count; ++i) part[i] = from[i];
  return Load(part);
}
inline Sums Add(Sums sum, Vector a, Vector w) {
  return _mm256_fmadd_ps(a, w, sum);
}

namespace fp32 {
using Element = float;
#include "lib/nn/linear/thin_product_tile.h"
}  // namespace fp32

namespace bf16 {
using Element = uint16_t;
#include "lib/nn/linear/thin_product_tile.h"
}  // namespace bf16
}  // namespace avx2
TRAINWRIGHT_END_TARGET

TRAINWRIGHT_BEGIN_TARGET("avx512f")
namespace avx512 {
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
inline Sums Add(Sums sum, Vector a, Vector w) {
  return _mm512_fmadd_ps(a, w, sum);
}
#include "lib/nn/linear/thin_product_tile.h"
}  // namespace fp32
}  // namespace avx512
TRAINWRIGHT_END_TARGET

TRAINWRIGHT_BEGIN_TARGET("avx512f,avx512bw,avx512bf16")
namespace avx512::bf16 {
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
inline Sums Add(Sums sum, Vector a, Vector w) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)w);
}
#include "lib/nn/linear/thin_product_tile.h"
}  // namespace avx512::bf16
TRAINWRIGHT_END_TARGET

#endif

}  // namespace

void ComputeThinProductByElement(const ThinProduct& product, int64_t begin, int64_t end) {
  product.bf16 ? ByElement<uint16_t>(product, begin, end) : ByElement<float>(product, begin, end);
}

void ComputeThinProduct(const ThinProduct& product, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (product.bf16) {
    if (__builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw")) {
      return avx512::bf16::Compute(product, begin, end);
    }
  } else if (__builtin_cpu_supports("avx512f")) {
    return avx512::fp32::Compute(product, begin, end);
  }
#endif
  ComputeThinProductForAvx2(product, begin, end);
}

void ComputeThinProductForAvx2(const ThinProduct& product, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return product.bf16 ? avx2::bf16::Compute(product, begin, end) : avx2::fp32::Compute(product, begin, end);
  }
#endif
  ComputeThinProductByElement(product, begin, end);
}

}  // namespace trainwright::cpu

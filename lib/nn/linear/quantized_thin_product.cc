#include "lib/nn/linear/quantized_thin_product.h"

#include "lib/nn/linear/nf4_books.h"
#include "lib/nn/linear/thin_sums.h"

namespace trainwright::cpu {
namespace {

/// Weights of a column whose reading may begin with some work: the blocks of NF4.
constexpr int64_t kWeightBlock = kNf4Block;

/// Of a block, each step rounded as nf4.h says: this file is compiled without contraction.
[[gnu::always_inline]] inline float MagnitudeOf(const Nf4Product& p, const float* map, int64_t block) {
  const float scaled = map[p.scales[block]] * p.scale_magnitudes[block / kNf4ScaleBlock];
  return scaled + p.mean;
}

/// The sum of a[k] * weight(k), in 16 interleaved parts, so that the compiler can use vectors.
template <typename Weight>
float SumByElement(const float* a, int64_t depth, const Weight& weight) {
  constexpr int64_t kParts = 16;
  float parts[kParts] = {}, sum = 0;
  int64_t k = 0;
  for (; k + kParts <= depth; k += kParts) {
    for (int64_t i = 0; i < kParts; ++i) parts[i] += a[k + i] * weight(k + i);
  }
  for (int64_t i = 0; k + i < depth; ++i) parts[i] += a[k + i] * weight(k + i);
  for (const float part : parts) sum += part;
  return sum;
}

#if defined(__x86_64__)

/// How far ahead of what is read rows of codes are prefetched, which are too short for the processor to
/// foresee the next: some kilobytes, in whole tiles.
inline uintptr_t AheadBytes(int64_t tile_bytes) {
  constexpr int64_t kAheadBytes = 4096;
  return static_cast<uintptr_t>((kAheadBytes + tile_bytes - 1) / tile_bytes * tile_bytes);
}

[[gnu::always_inline]] inline void Prefetch(const void* from, uintptr_t ahead_bytes) {
  _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(from) + ahead_bytes), _MM_HINT_T0);
}

/// The first of the codes of each column of a tile.
template <int kColumns, typename Code>
void FindColumns(const Code* codes, int64_t column, int64_t end, int64_t stride, const Code** columns) {
  for (int n = 0; n < kColumns; ++n) {
    columns[n] = codes + (column + n < end ? column + n : end - 1) * stride;
  }
}

TRAINWRIGHT_BEGIN_TARGET("avx2,fma")
namespace avx2 {
inline constexpr int64_t kStep = 8;
inline Sums Load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline Sums LoadPart(const float* from, int64_t count) {
  float part[kStep] = {};
  for (int64_t i = 0; i < count; ++i) part[i] = from[i];
  return Load(part);
}
inline Sums Add(Sums sum, Sums a, Sums w) {
  return _mm256_fmadd_ps(a, w, sum);
}
inline Sums FromInt8(const int8_t* codes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes))));
}
/// A book of 16 values times a magnitude.
inline void Scale(const float* book, float magnitude, float* out) {
  const Sums factor = _mm256_set1_ps(magnitude);
  _mm256_store_ps(out, _mm256_mul_ps(_mm256_loadu_ps(book), factor));
  _mm256_store_ps(out + 8, _mm256_mul_ps(_mm256_loadu_ps(book + 8), factor));
}
/// The values of the 8 codes in 4 bytes. Of a byte the high half is the first: it is shifted down in one
/// 32-bit lane, and in the next only the low half counts.
inline Sums FromNf4(const uint8_t* codes, const float* book) {
  const __m256i bytes = _mm256_cvtepu8_epi64(_mm_loadu_si32(codes));
  const __m256i indices = _mm256_or_si256(_mm256_srli_epi64(bytes, 4), _mm256_slli_epi64(bytes, 32));
  // Bit 3 of a code, moved to the sign, chooses the half of the book.
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(_mm256_load_ps(book), indices),
                          _mm256_permutevar8x32_ps(_mm256_load_ps(book + 8), indices),
                          _mm256_castsi256_ps(_mm256_slli_epi32(indices, 28)));
}

namespace int8 {
#include "lib/nn/linear/quantized_int8_weights.h"
#include "lib/nn/linear/quantized_thin_tile.h"
}  // namespace int8

namespace nf4 {
#include "lib/nn/linear/quantized_nf4_weights.h"
#include "lib/nn/linear/quantized_thin_tile.h"
}  // namespace nf4
}  // namespace avx2
TRAINWRIGHT_END_TARGET

TRAINWRIGHT_BEGIN_TARGET("avx512f")
namespace avx512 {
inline constexpr int64_t kStep = 16;
inline Sums Load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline Sums LoadPart(const float* from, int64_t count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
}
inline Sums Add(Sums sum, Sums a, Sums w) {
  return _mm512_fmadd_ps(a, w, sum);
}
inline Sums FromInt8(const int8_t* codes) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes))));
}
inline void Scale(const float* book, float magnitude, float* out) {
  _mm512_store_ps(out, _mm512_mul_ps(_mm512_loadu_ps(book), _mm512_set1_ps(magnitude)));
}
/// As avx2::FromNf4, of 16 codes in 8 bytes; the permutation reads the low 4 bits of an index.
inline Sums FromNf4(const uint8_t* codes, const float* book) {
  const __m512i bytes = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
  const __m512i indices = _mm512_or_si512(_mm512_srli_epi64(bytes, 4), _mm512_slli_epi64(bytes, 32));
  return _mm512_permutexvar_ps(indices, _mm512_load_ps(book));
}

namespace int8 {
#include "lib/nn/linear/quantized_int8_weights.h"
#include "lib/nn/linear/quantized_thin_tile.h"
}  // namespace int8

namespace nf4 {
#include "lib/nn/linear/quantized_nf4_weights.h"
#include "lib/nn/linear/quantized_thin_tile.h"
}  // namespace nf4
}  // namespace avx512
TRAINWRIGHT_END_TARGET

#endif

}  // namespace

void ComputeInt8ProductByElement(const Int8Product& product, int64_t begin, int64_t end) {
  const ThinRows& thin = product.thin;
  for (int64_t n = begin; n < end; ++n) {
    const int8_t* codes = product.codes + n * thin.depth;
    for (int64_t m = 0; m < thin.rows; ++m) {
      const auto weight = [&](int64_t k) { return static_cast<float>(codes[k]); };
      thin.out[m * thin.out_stride + n] =
          SumByElement(thin.a + m * thin.depth, thin.depth, weight) * product.scales[n];
    }
  }
}

void ComputeNf4ProductByElement(const Nf4Product& product, int64_t begin, int64_t end) {
  const ThinRows& thin = product.thin;
  const float *book = Nf4CodeBook().data(), *map = DynamicMap().data();
  for (int64_t n = begin; n < end; ++n) {
    for (int64_t m = 0; m < thin.rows; ++m) {
      const auto weight = [&](int64_t k) {
        const int64_t element = n * thin.depth + k;
        const uint8_t pair = product.codes[element / 2];
        return book[element % 2 == 0 ? pair >> 4 : pair & 15] *
               MagnitudeOf(product, map, element / kNf4Block);
      };
      thin.out[m * thin.out_stride + n] = SumByElement(thin.a + m * thin.depth, thin.depth, weight);
    }
  }
}

void ComputeInt8Product(const Int8Product& product, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512::int8::Compute(product, begin, end);
#endif
  ComputeInt8ProductForAvx2(product, begin, end);
}

void ComputeNf4Product(const Nf4Product& product, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512::nf4::Compute(product, begin, end);
#endif
  ComputeNf4ProductForAvx2(product, begin, end);
}

void ComputeInt8ProductForAvx2(const Int8Product& product, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return avx2::int8::Compute(product, begin, end);
  }
#endif
  ComputeInt8ProductByElement(product, begin, end);
}

void ComputeNf4ProductForAvx2(const Nf4Product& product, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return avx2::nf4::Compute(product, begin, end);
  }
#endif
  ComputeNf4ProductByElement(product, begin, end);
}

void DequantizeInt8(const int8_t* codes, int64_t size, float scale, float* out) {
  for (int64_t i = 0; i < size; ++i) out[i] = static_cast<float>(codes[i]) * scale;
}

}  // namespace trainwright::cpu

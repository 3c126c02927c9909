#include "lib/nn/linear/nf4_block.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trainwright::cpu {

void DequantizeNf4BlockByElement(const uint8_t* codes, int64_t size, const float* book, float magnitude,
                                 float* out) {
  for (int64_t i = 0; i < size; ++i) {
    const uint8_t pair = codes[i / 2];
    out[i] = book[i % 2 == 0 ? pair >> 4 : pair & 15] * magnitude;
  }
}

#if defined(__x86_64__)
namespace {

/// The 16 codes of 8 bytes, in order.
__attribute__((target("avx2"))) inline __m128i Codes(const uint8_t* codes) {
  const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  const __m128i low_half = _mm_set1_epi8(15);
  return _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(pairs, 4), low_half), _mm_and_si128(pairs, low_half));
}

__attribute__((target("avx512f,avx512vl,avx2"))) void Avx512(const uint8_t* codes, const float* book,
                                                             float magnitude, float* out) {
  const __m512 values = _mm512_loadu_ps(book), scale = _mm512_set1_ps(magnitude);
  for (int i = 0; i < 64; i += 16) {
    const __m512i indices = _mm512_cvtepu8_epi32(Codes(codes + i / 2));
    _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_permutexvar_ps(indices, values), scale));
  }
}

__attribute__((target("avx2"))) void Avx2(const uint8_t* codes, const float* book, float magnitude,
                                          float* out) {
  const __m256 low = _mm256_loadu_ps(book), high = _mm256_loadu_ps(book + 8),
               scale = _mm256_set1_ps(magnitude);
  for (int i = 0; i < 64; i += 16) {
    const __m128i both = Codes(codes + i / 2);
    for (int half = 0; half < 2; ++half) {
      const __m256i indices = _mm256_cvtepu8_epi32(half == 0 ? both : _mm_srli_si128(both, 8));
      // Bit 3 of a code, moved to the sign, chooses the half of the book.
      const __m256 chosen =
          _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, indices), _mm256_permutevar8x32_ps(high, indices),
                           _mm256_castsi256_ps(_mm256_slli_epi32(indices, 28)));
      _mm256_storeu_ps(out + i + 8 * half, _mm256_mul_ps(chosen, scale));
    }
  }
}

}  // namespace
#endif

void DequantizeNf4Block(const uint8_t* codes, int64_t size, const float* book, float magnitude, float* out) {
#if defined(__x86_64__)
  if (size == 64 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
    return Avx512(codes, book, magnitude, out);
  }
  if (size == 64 && __builtin_cpu_supports("avx2")) return Avx2(codes, book, magnitude, out);
#endif
  DequantizeNf4BlockByElement(codes, size, book, magnitude, out);
}

}  // namespace trainwright::cpu

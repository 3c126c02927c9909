/// Vectors of fp32 and the sums of their lanes, for the tiles of GEMMs with few rows. The namespaces avx2 and
/// avx512 have Sums (a vector of kSums numbers), Zero, SumEach and StoreSums. In an unnamed namespace, since
/// the files that include it may have options of their own.
///
/// SumEach adds the lanes of kSums vectors, by halves, and gives the sums in the order of the vectors: two
/// vectors become one at each of its steps.
#pragma once

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

#if defined(__x86_64__)

namespace trainwright::cpu {
namespace {

TRAINWRIGHT_BEGIN_TARGET("avx2,fma")
namespace avx2 {
using Sums = __m256;
constexpr int kSums = 8;
inline Sums Zero() {
  return _mm256_setzero_ps();
}
inline Sums Halves(Sums x, Sums y) {
  return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
}
inline Sums Pairs(Sums x, Sums y) {
  return _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x44), _mm256_shuffle_ps(x, y, 0xEE));
}
inline Sums Lanes(Sums x, Sums y) {
  return _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x88), _mm256_shuffle_ps(x, y, 0xDD));
}
inline Sums SumEach(const Sums* v) {
  return Lanes(Pairs(Halves(v[0], v[4]), Halves(v[1], v[5])), Pairs(Halves(v[2], v[6]), Halves(v[3], v[7])));
}
inline void StoreSums(Sums sums, float* to) {
  _mm256_storeu_ps(to, sums);
}
}  // namespace avx2
TRAINWRIGHT_END_TARGET

TRAINWRIGHT_BEGIN_TARGET("avx512f")
namespace avx512 {
using Sums = __m512;
constexpr int kSums = 16;
inline Sums Zero() {
  return _mm512_setzero_ps();
}
inline Sums Halves(Sums x, Sums y) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xEE));
}
inline Sums Quarters(Sums x, Sums y) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xDD));
}
inline Sums Pairs(Sums x, Sums y) {
  return _mm512_add_ps(_mm512_shuffle_ps(x, y, 0x44), _mm512_shuffle_ps(x, y, 0xEE));
}
inline Sums Lanes(Sums x, Sums y) {
  return _mm512_add_ps(_mm512_shuffle_ps(x, y, 0x88), _mm512_shuffle_ps(x, y, 0xDD));
}
inline Sums EachFourth(const Sums* v) {
  return Quarters(Halves(v[0], v[4]), Halves(v[8], v[12]));
}
inline Sums SumEach(const Sums* v) {
  return Lanes(Pairs(EachFourth(v), EachFourth(v + 1)), Pairs(EachFourth(v + 2), EachFourth(v + 3)));
}
inline void StoreSums(Sums sums, float* to) {
  _mm512_storeu_ps(to, sums);
}
}  // namespace avx512
TRAINWRIGHT_END_TARGET

}  // namespace
}  // namespace trainwright::cpu

#endif

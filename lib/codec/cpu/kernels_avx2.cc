#if defined(__x86_64__)

#if defined(__clang__)
#define TRAINWRIGHT_BEGIN_TARGET \
  _Pragma("clang attribute push(__attribute__((target(\"avx2,popcnt\"))), apply_to = function)")
#define TRAINWRIGHT_END_TARGET _Pragma("clang attribute pop")
#else
#define TRAINWRIGHT_BEGIN_TARGET _Pragma("GCC target(\"avx2,popcnt\")")
#define TRAINWRIGHT_END_TARGET
#endif
#include <immintrin.h>

#include <array>

#define XXH_VECTOR XXH_AVX2
#include "lib/codec/cpu/kernels_body.h"

namespace trainwright::codec {
namespace {

constexpr size_t kVectors = 8;  // of 8 states

/// For each mask of 8 lanes the permutation that moves the lowest entries to the lanes in it, in order, and
/// the one that moves the lanes in it to the highest places.
struct Permutations {
  alignas(32) std::array<std::array<uint32_t, 8>, 256> spread{}, gather{};
};
constexpr Permutations MakePermutations() {
  Permutations permutations;
  for (uint32_t mask = 0; mask < 256; ++mask) {
    uint32_t taken = 0;
    const auto count = static_cast<uint32_t>(std::popcount(mask));
    for (uint32_t lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      permutations.spread[mask][lane] = taken;
      permutations.gather[mask][8 - count + taken] = lane;
      ++taken;
    }
  }
  return permutations;
}
constexpr Permutations kPermutations = MakePermutations();

}  // namespace
}  // namespace trainwright::codec

TRAINWRIGHT_BEGIN_TARGET

namespace trainwright::codec {
namespace {

inline __m256i Load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline void Store(void* to, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}
inline __m256i LoadPermutation(const std::array<uint32_t, 8>& permutation) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(permutation.data()));
}
inline unsigned MaskOf(__m256i lanes) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

/// By a mask and from zeros: the plain form waits for whatever is in the register that it writes.
inline __m256i Gather(const uint32_t* table, __m256i index) {
  return _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), reinterpret_cast<const int*>(table), index,
                                     _mm256_set1_epi32(-1), 4);
}

inline __m256i RowInBothHalves(const uint8_t* row) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(row)));
}

size_t SkipMembers(const uint8_t* bytes, size_t begin, size_t n, const NibbleRows& set) {
  const __m256i below = RowInBothHalves(set.below_128), from = RowInBothHalves(set.from_128);
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const __m256i top = _mm256_set1_epi8(-128), nibble = _mm256_set1_epi8(15);
  for (; begin + 32 <= n; begin += 32) {
    const __m256i b = Load(bytes + begin);
    // A shuffle gives 0 where the top bit is set.
    const __m256i row =
        _mm256_or_si256(_mm256_shuffle_epi8(below, b), _mm256_shuffle_epi8(from, _mm256_xor_si256(b, top)));
    const __m256i column = _mm256_shuffle_epi8(bit, _mm256_and_si256(_mm256_srli_epi16(b, 4), nibble));
    const __m256i other = _mm256_cmpeq_epi8(_mm256_and_si256(row, column), _mm256_setzero_si256());
    if (_mm256_testz_si256(other, other) == 0) break;
  }
  return begin;
}

void MarkPresent(const uint8_t* bytes, size_t n, uint8_t* present) {
  MarkOthers<32>(SkipMembers, bytes, n, present);
}

/// The entries of every fourth symbol. (Measured on a Zen 5: with a gather encoding takes 2.7 times as long.)
inline __m256i EntriesOf(const uint8_t* symbols, const uint32_t* by_symbol) {
  const auto entry = [&](size_t lane) { return static_cast<int>(by_symbol[symbols[4 * lane]]); };
  return _mm256_setr_epi32(entry(0), entry(1), entry(2), entry(3), entry(4), entry(5), entry(6), entry(7));
}

inline __m256i EncodeStep(__m256i x, __m256i entry, uint8_t** words) {
  const __m256i low_half = _mm256_set1_epi32(0xffff);
  const __m256i frequency = _mm256_and_si256(entry, low_half), start = _mm256_srli_epi32(entry, 16);
  const __m256i limit = _mm256_slli_epi32(frequency, 32 - kRansBits);
  const __m256i full = _mm256_cmpeq_epi32(_mm256_max_epu32(x, limit), x);
  const unsigned mask = MaskOf(full);
  const __m256i ordered =
      _mm256_permutevar8x32_epi32(_mm256_and_si256(x, low_half), LoadPermutation(kPermutations.gather[mask]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(*words - 16),
                   _mm_packus_epi32(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
  *words -= 2 * static_cast<size_t>(__builtin_popcount(mask));
  x = _mm256_blendv_epi8(x, _mm256_srli_epi32(x, 16), full);
  // In floats the quotient, below 2^20, is at most one off.
  const __m256 high = _mm256_cvtepi32_ps(_mm256_srli_epi32(x, 16));
  const __m256 low = _mm256_cvtepi32_ps(_mm256_and_si256(x, low_half));
  const __m256 value = _mm256_add_ps(_mm256_mul_ps(high, _mm256_set1_ps(65536.0f)), low);
  __m256i quotient = _mm256_cvttps_epi32(_mm256_div_ps(value, _mm256_cvtepi32_ps(frequency)));
  __m256i rest = _mm256_sub_epi32(x, _mm256_mullo_epi32(quotient, frequency));
  const __m256i below = _mm256_srai_epi32(rest, 31);  // -1 where the quotient is too large
  quotient = _mm256_add_epi32(quotient, below);
  rest = _mm256_add_epi32(rest, _mm256_and_si256(below, frequency));
  const __m256i above = _mm256_cmpgt_epi32(frequency, rest);  // 0 where it is too small
  quotient = _mm256_add_epi32(quotient, _mm256_add_epi32(above, _mm256_set1_epi32(1)));
  rest = _mm256_sub_epi32(rest, _mm256_andnot_si256(above, frequency));
  return _mm256_add_epi32(_mm256_slli_epi32(quotient, kRansBits), _mm256_add_epi32(start, rest));
}

uint8_t* RansEncode(const uint8_t* symbols, size_t groups, const RansEncodeTable& table, uint32_t* states,
                    uint8_t* words) {
  __m256i x[kVectors];
  for (size_t i = 0; i < kVectors; ++i) x[i] = Load(states + 8 * i);
  for (size_t group = groups; group-- > 0;) {
    const uint8_t* in = symbols + group * kRansLanes;
#pragma GCC unroll 8
    for (size_t i = 0; i < kVectors; ++i) {
      // Vector v has the states 8 v to 8 v + 7: every fourth symbol of one half of the group.
      const size_t v = kVectors - 1 - i;
      x[v] = EncodeStep(x[v], EntriesOf(in + 32 * (v % 2) + v / 2, table.by_symbol.data()), &words);
    }
  }
  for (size_t i = 0; i < kVectors; ++i) Store(states + 8 * i, x[i]);
  return words;
}

/// Bytes of words that decoding a group may read, taken or not.
constexpr ptrdiff_t kGroupWords = 2 * kRansLanes;

/// Decodes groups while kGroupWords can be read.
/// \returns the number of groups decoded
size_t DecodeGroups(const uint8_t** words, const uint8_t* words_end, size_t groups,
                    const RansDecodeTable& table, uint32_t* states, uint8_t* symbols) {
  __m256i x[kVectors];
  for (size_t i = 0; i < kVectors; ++i) x[i] = Load(states + 8 * i);
  const uint8_t* next = *words;
  size_t group = 0;
  for (; group < groups && words_end - next >= kGroupWords; ++group) {
    __m256i bytes[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) {
      const __m256i slot = _mm256_and_si256(x[v], _mm256_set1_epi32(kRansTotal - 1));
      const __m256i entry = Gather(table.by_slot.data(), slot);
      const __m256i symbol = _mm256_and_si256(entry, _mm256_set1_epi32(255));
      bytes[v % 2] = _mm256_or_si256(bytes[v % 2], _mm256_slli_epi32(symbol, static_cast<int>(8 * (v / 2))));
      const __m256i place = _mm256_and_si256(_mm256_srli_epi32(entry, 8), _mm256_set1_epi32(0xfff));
      const __m256i frequency = _mm256_srli_epi32(entry, 20);
      x[v] = _mm256_add_epi32(_mm256_mullo_epi32(frequency, _mm256_srli_epi32(x[v], kRansBits)), place);
      const __m256i low = _mm256_cmpeq_epi32(_mm256_srli_epi32(x[v], 16), _mm256_setzero_si256());
      const unsigned mask = MaskOf(low);
      const __m256i word = _mm256_permutevar8x32_epi32(
          _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(next))),
          LoadPermutation(kPermutations.spread[mask]));
      next += 2 * static_cast<size_t>(__builtin_popcount(mask));
      x[v] = _mm256_blendv_epi8(x[v], _mm256_or_si256(_mm256_slli_epi32(x[v], 16), word), low);
    }
    Store(symbols + group * kRansLanes, bytes[0]);
    Store(symbols + group * kRansLanes + 32, bytes[1]);
  }
  for (size_t i = 0; i < kVectors; ++i) Store(states + 8 * i, x[i]);
  *words = next;
  return group;
}

bool RansDecode(const uint8_t** words, const uint8_t* words_end, size_t groups, const RansDecodeTable& table,
                uint32_t* states, uint8_t* symbols) {
  return DecodeToTheEnd<kGroupWords>(DecodeGroups, words, words_end, groups, table, states, symbols);
}

}  // namespace

const Kernels kAvx2Kernels = {"avx2",       Split,      Merge,      Hash,     Histogram,
                              MarkPresent,  RansEncode, RansDecode, true,     Exponents,
                              AddExponents, Predict,    Unpredict,  Subtract, Add};

}  // namespace trainwright::codec

TRAINWRIGHT_END_TARGET

#endif

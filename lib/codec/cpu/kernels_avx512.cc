#if defined(__x86_64__)

#if defined(__clang__)
#define TRAINWRIGHT_BEGIN_TARGET \
  _Pragma(                       \
      "clang attribute push(__attribute__((target(\"avx512vl,avx512vbmi,popcnt\"))), apply_to = function)")
#define TRAINWRIGHT_END_TARGET _Pragma("clang attribute pop")
#else
#define TRAINWRIGHT_BEGIN_TARGET _Pragma("GCC target(\"avx512vl,avx512vbmi,popcnt\")")
#define TRAINWRIGHT_END_TARGET
#endif
#if !defined(__clang__)
// The intrinsics' own undefined vectors (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#define XXH_VECTOR XXH_AVX512
#include "lib/codec/cpu/kernels_body.h"

TRAINWRIGHT_BEGIN_TARGET

namespace trainwright::codec {
namespace {

constexpr size_t kVectors = 4;  // of 16 states
constexpr __mmask32 kLowHalves = 0x55555555;
constexpr int kBucketBits = 6;  // of kBucketSlots

/// Entry `index` (one a 32-bit lane, below 64) of a table of 64 words.
inline __m512i Lookup64(__m512i index, __m512i low, __m512i high) {
  return _mm512_maskz_permutex2var_epi16(kLowHalves, low, index, high);
}

/// The bytes of lane j of 64 positions: those of vector j are byte j of each 32-bit lane.
inline __m512i BytesOf(__m512i bytes, size_t vector) {
  return _mm512_and_si512(_mm512_srli_epi32(bytes, static_cast<unsigned>(8 * vector)),
                          _mm512_set1_epi32(255));
}

/// By a mask and from zeros: the plain form waits for whatever is in the register that it writes.
inline __m512i Gather(const uint32_t* table, __m512i index) {
  return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xffff, index, table, 4);
}

/// One step of encoding of 16 states, whose frequencies and first entries these are.
/// \param words moves to what comes out of the states
inline __m512i EncodeStep(__m512i x, __m512i frequency, __m512i start, uint8_t** words) {
  const __mmask16 full = _mm512_cmpge_epu32_mask(x, _mm512_slli_epi32(frequency, 32 - kRansBits));
  // The words go to the top of a register, which is stored whole: a store by mask takes far longer.
  const auto count = static_cast<size_t>(__builtin_popcount(full));
  const __m256i taken = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(full, x));
  const __m256i ascending = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m256i order = _mm256_add_epi16(ascending, _mm256_set1_epi16(static_cast<int16_t>(count)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(*words - 32), _mm256_permutexvar_epi16(order, taken));
  *words -= 2 * count;
  x = _mm512_mask_srli_epi32(x, full, x, 16);
  // Rounded down throughout, the quotient is below 2^20 and at most one too small.
  constexpr int kDown = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  const __m512 ratio =
      _mm512_div_round_ps(_mm512_cvt_roundepu32_ps(x, kDown), _mm512_cvtepi32_ps(frequency), kDown);
  __m512i quotient = _mm512_cvttps_epu32(ratio);
  __m512i rest = _mm512_sub_epi32(x, _mm512_mullo_epi32(quotient, frequency));
  const __mmask16 more = _mm512_cmpge_epu32_mask(rest, frequency);
  quotient = _mm512_mask_add_epi32(quotient, more, quotient, _mm512_set1_epi32(1));
  rest = _mm512_mask_sub_epi32(rest, more, rest, frequency);
  return _mm512_add_epi32(_mm512_slli_epi32(quotient, kRansBits), _mm512_add_epi32(start, rest));
}

template <bool kSmall>
uint8_t* RansEncodeVectors(const uint8_t* symbols, size_t groups, const RansEncodeTable& table,
                           uint32_t* states, uint8_t* words) {
  __m512i x[kVectors];
  for (size_t v = 0; v < kVectors; ++v) x[v] = _mm512_loadu_si512(states + 16 * v);
  __m512i rank[4];
  for (size_t i = 0; i < 4; ++i) rank[i] = _mm512_loadu_si512(table.rank_of.data() + 64 * i);
  const __m512i frequency_low = _mm512_load_si512(table.frequency.data());
  const __m512i frequency_high = _mm512_load_si512(table.frequency.data() + 32);
  const __m512i start_low = _mm512_load_si512(table.start.data());
  const __m512i start_high = _mm512_load_si512(table.start.data() + 32);
  for (size_t group = groups; group-- > 0;) {
    const __m512i bytes = _mm512_loadu_si512(symbols + group * kRansLanes);
    if constexpr (kSmall) {
      const __m512i ranks = _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes),
                                                   _mm512_permutex2var_epi8(rank[0], bytes, rank[1]),
                                                   _mm512_permutex2var_epi8(rank[2], bytes, rank[3]));
#pragma GCC unroll 4
      for (size_t i = 0; i < kVectors; ++i) {
        const size_t v = kVectors - 1 - i;
        const __m512i index = BytesOf(ranks, v);
        x[v] = EncodeStep(x[v], Lookup64(index, frequency_low, frequency_high),
                          Lookup64(index, start_low, start_high), &words);
      }
    } else {
#pragma GCC unroll 4
      for (size_t i = 0; i < kVectors; ++i) {
        const size_t v = kVectors - 1 - i;
        const __m512i entry = Gather(table.by_symbol.data(), BytesOf(bytes, v));
        x[v] = EncodeStep(x[v], _mm512_and_si512(entry, _mm512_set1_epi32(0xffff)),
                          _mm512_srli_epi32(entry, 16), &words);
      }
    }
  }
  for (size_t v = 0; v < kVectors; ++v) _mm512_storeu_si512(states + 16 * v, x[v]);
  return words;
}

uint8_t* RansEncode(const uint8_t* symbols, size_t groups, const RansEncodeTable& table, uint32_t* states,
                    uint8_t* words) {
  const bool small = table.symbols <= table.frequency.size();
  return small ? RansEncodeVectors<true>(symbols, groups, table, states, words)
               : RansEncodeVectors<false>(symbols, groups, table, states, words);
}

/// Fills states that have become too small from the words.
inline __m512i Renormalize(__m512i x, const uint8_t** words) {
  const __mmask16 low = _mm512_cmplt_epu32_mask(x, _mm512_set1_epi32(kRansLow));
  const __m512i next = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(*words)));
  *words += 2 * static_cast<size_t>(__builtin_popcount(low));
  return _mm512_mask_or_epi32(x, low, _mm512_slli_epi32(x, 16), _mm512_maskz_expand_epi32(low, next));
}

/// Bytes of words that decoding a group may read, taken or not.
constexpr ptrdiff_t kGroupWords = 2 * kRansLanes;

inline __m512i Half(const std::array<uint16_t, 64>& words, size_t half) {
  return _mm512_load_si512(words.data() + 32 * half);
}

/// Entry `index` (one a 16-bit lane, below 64) of a table of 64 words.
inline __m512i Lookup(__m512i index, const __m512i (&table)[2]) {
  return _mm512_permutex2var_epi16(table[0], index, table[1]);
}
inline void Load(const std::array<uint16_t, 64>& words, __m512i (&table)[2]) {
  table[0] = Half(words, 0);
  table[1] = Half(words, 1);
}

/// Decodes groups while kGroupWords can be read.
/// \returns the number of groups decoded
template <int kInside>
size_t DecodeSmall(const uint8_t** words, const uint8_t* words_end, size_t groups,
                   const RansDecodeTable& table, uint32_t* states, uint8_t* symbols) {
  __m512i x[kVectors];
  for (size_t v = 0; v < kVectors; ++v) x[v] = _mm512_loadu_si512(states + 16 * v);
  __m512i first[2], frequency[2], start[2], begin[kInside][2];
  Load(table.first, first);
  Load(table.frequency, frequency);
  Load(table.start, start);
  for (int i = 0; i < kInside; ++i) Load(table.begin[i], begin[i]);
  const __m512i symbol = _mm512_load_si512(table.symbol.data());
  const __m512i slot_bits = _mm512_set1_epi32(kRansTotal - 1);
  const uint8_t* next = *words;
  size_t group = 0;
  for (; group < groups && words_end - next >= kGroupWords; ++group) {
    __m512i rank[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      const __m512i slot = _mm512_and_si512(x[v], slot_bits);
      const __m512i bucket = _mm512_srli_epi32(slot, kBucketBits);
      __m512i r = Lookup64(bucket, first[0], first[1]);
#pragma GCC unroll 7
      for (int i = 0; i < kInside; ++i) {
        const __mmask16 behind = _mm512_cmpge_epu32_mask(slot, Lookup64(bucket, begin[i][0], begin[i][1]));
        r = _mm512_mask_add_epi32(r, behind, r, _mm512_set1_epi32(1));
      }
      rank[v] = r;
      const __m512i f = Lookup64(r, frequency[0], frequency[1]);
      const __m512i place = _mm512_sub_epi32(slot, Lookup64(r, start[0], start[1]));
      x[v] = _mm512_add_epi32(_mm512_mullo_epi32(f, _mm512_srli_epi32(x[v], kRansBits)), place);
      x[v] = Renormalize(x[v], &next);
    }
    const __m512i low = _mm512_or_si512(rank[0], _mm512_slli_epi32(rank[1], 8));
    const __m512i high = _mm512_or_si512(_mm512_slli_epi32(rank[2], 16), _mm512_slli_epi32(rank[3], 24));
    const __m512i ranks = _mm512_or_si512(low, high);
    _mm512_storeu_si512(symbols + group * kRansLanes, _mm512_permutexvar_epi8(ranks, symbol));
  }
  for (size_t v = 0; v < kVectors; ++v) _mm512_storeu_si512(states + 16 * v, x[v]);
  *words = next;
  return group;
}

/// The same with a table by slot.
size_t DecodeLarge(const uint8_t** words, const uint8_t* words_end, size_t groups,
                   const RansDecodeTable& table, uint32_t* states, uint8_t* symbols) {
  __m512i x[kVectors];
  for (size_t v = 0; v < kVectors; ++v) x[v] = _mm512_loadu_si512(states + 16 * v);
  const uint8_t* next = *words;
  size_t group = 0;
  for (; group < groups && words_end - next >= kGroupWords; ++group) {
    __m512i bytes = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      const __m512i slot = _mm512_and_si512(x[v], _mm512_set1_epi32(kRansTotal - 1));
      const __m512i entry = Gather(table.by_slot.data(), slot);
      const __m512i symbol = _mm512_and_si512(entry, _mm512_set1_epi32(255));
      bytes = _mm512_or_si512(bytes, _mm512_slli_epi32(symbol, static_cast<unsigned>(8 * v)));
      const __m512i place = _mm512_and_si512(_mm512_srli_epi32(entry, 8), _mm512_set1_epi32(0xfff));
      x[v] = _mm512_add_epi32(
          _mm512_mullo_epi32(_mm512_srli_epi32(entry, 20), _mm512_srli_epi32(x[v], kRansBits)), place);
      x[v] = Renormalize(x[v], &next);
    }
    _mm512_storeu_si512(symbols + group * kRansLanes, bytes);
  }
  for (size_t v = 0; v < kVectors; ++v) _mm512_storeu_si512(states + 16 * v, x[v]);
  *words = next;
  return group;
}

bool RansDecode(const uint8_t** words, const uint8_t* words_end, size_t groups, const RansDecodeTable& table,
                uint32_t* states, uint8_t* symbols) {
  const auto decode = table.inside <= 1                          ? DecodeSmall<1>
                      : table.inside <= 3                        ? DecodeSmall<3>
                      : table.inside <= 5                        ? DecodeSmall<5>
                      : table.inside < RansDecodeTable::kTooMany ? DecodeSmall<7>
                                                                 : DecodeLarge;
  return DecodeToTheEnd<kGroupWords>(decode, words, words_end, groups, table, states, symbols);
}

}  // namespace

const Kernels kAvx512Kernels = {"avx512", Split,     Merge,        Hash,    Histogram, RansEncode, RansDecode,
                                false,    Exponents, AddExponents, Predict, Unpredict, Subtract,   Add};

}  // namespace trainwright::codec

TRAINWRIGHT_END_TARGET

#endif

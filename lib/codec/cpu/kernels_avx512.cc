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

#include <iterator>

#define XXH_VECTOR XXH_AVX512
#include "lib/codec/cpu/kernels_body.h"

TRAINWRIGHT_BEGIN_TARGET

namespace trainwright::codec {
namespace {

constexpr size_t kVectors = 4;                       // of 16 states
constexpr __mmask64 kLowBytes = 0x1111111111111111;  // of 32-bit lanes
constexpr int kBucketBits = 6;                       // of kBucketSlots

/// Entry `index` (one a 32-bit lane, below 64) of a table of 64 bytes.
inline __m512i LookupByte(__m512i index, __m512i table) {
  return _mm512_maskz_permutexvar_epi8(kLowBytes, index, table);
}

/// Ranks' frequencies and starts in registers. (Permutations of 32-bit lanes take a third of the operations
/// that those of 16-bit lanes from two registers take on Intel's processors.)
template <bool kFew>
struct RankTable {
  __m512i entries[kFew ? 2 : 4];
};
template <bool kFew>
inline void Load(const std::array<uint32_t, kSmallSymbols>& by_rank, RankTable<kFew>* table) {
  for (size_t i = 0; i < std::size(table->entries); ++i)
    table->entries[i] = _mm512_load_si512(by_rank.data() + 16 * i);
}
template <bool kFew>
inline __m512i EntryOf(__m512i rank, const RankTable<kFew>& table) {
  const __m512i low = _mm512_permutex2var_epi32(table.entries[0], rank, table.entries[1]);
  if constexpr (kFew) {
    return low;
  } else {
    const __mmask16 is_high = _mm512_test_epi32_mask(rank, _mm512_set1_epi32(kFewSymbols));
    return _mm512_mask_blend_epi32(is_high, low,
                                   _mm512_permutex2var_epi32(table.entries[2], rank, table.entries[3]));
  }
}
inline __m512i FrequencyOf(__m512i entry) {
  return _mm512_and_si512(entry, _mm512_set1_epi32(0xffff));
}
inline __m512i StartOf(__m512i entry) {
  return _mm512_srli_epi32(entry, 16);
}

/// The bytes of lane j of 64 positions: those of vector j are byte j of each 32-bit lane.
inline __m512i BytesOf(__m512i bytes, size_t vector) {
  return _mm512_and_si512(_mm512_srli_epi32(bytes, static_cast<unsigned>(8 * vector)),
                          _mm512_set1_epi32(255));
}

inline __m512i RowInEachQuarter(const uint8_t* row) {
  return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(row)));
}

size_t SkipMembers(const uint8_t* bytes, size_t begin, size_t n, const NibbleRows& set) {
  const __m512i below = RowInEachQuarter(set.below_128), from = RowInEachQuarter(set.from_128);
  const __m512i bit = _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201u));
  const __m512i top = _mm512_set1_epi8(-128), nibble = _mm512_set1_epi8(15);
  for (; begin + 64 <= n; begin += 64) {
    const __m512i b = _mm512_loadu_si512(bytes + begin);
    // A shuffle gives 0 where the top bit is set.
    const __m512i row =
        _mm512_or_si512(_mm512_shuffle_epi8(below, b), _mm512_shuffle_epi8(from, _mm512_xor_si512(b, top)));
    const __m512i column = _mm512_shuffle_epi8(bit, _mm512_and_si512(_mm512_srli_epi16(b, 4), nibble));
    if (_mm512_testn_epi8_mask(row, column) != 0) break;
  }
  return begin;
}

void MarkPresent(const uint8_t* bytes, size_t n, uint8_t* present) {
  MarkOthers<64>(SkipMembers, bytes, n, present);
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

/// By ranks in registers.
template <bool kFew>
uint8_t* RansEncodeSmall(const uint8_t* symbols, size_t groups, const RansEncodeTable& table,
                         uint32_t* states, uint8_t* words) {
  __m512i x[kVectors];
  for (size_t v = 0; v < kVectors; ++v) x[v] = _mm512_loadu_si512(states + 16 * v);
  __m512i rank[4];
  for (size_t i = 0; i < 4; ++i) rank[i] = _mm512_loadu_si512(table.rank_of.data() + 64 * i);
  RankTable<kFew> by_rank;
  Load(table.by_rank, &by_rank);
  for (size_t group = groups; group-- > 0;) {
    const __m512i bytes = _mm512_loadu_si512(symbols + group * kRansLanes);
    const __m512i ranks =
        _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), _mm512_permutex2var_epi8(rank[0], bytes, rank[1]),
                               _mm512_permutex2var_epi8(rank[2], bytes, rank[3]));
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) {
      const size_t v = kVectors - 1 - i;
      const __m512i entry = EntryOf(BytesOf(ranks, v), by_rank);
      x[v] = EncodeStep(x[v], FrequencyOf(entry), StartOf(entry), &words);
    }
  }
  for (size_t v = 0; v < kVectors; ++v) _mm512_storeu_si512(states + 16 * v, x[v]);
  return words;
}

uint8_t* RansEncodeLarge(const uint8_t* symbols, size_t groups, const RansEncodeTable& table,
                         uint32_t* states, uint8_t* words) {
  __m512i x[kVectors];
  for (size_t v = 0; v < kVectors; ++v) x[v] = _mm512_loadu_si512(states + 16 * v);
  for (size_t group = groups; group-- > 0;) {
    const __m512i bytes = _mm512_loadu_si512(symbols + group * kRansLanes);
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) {
      const size_t v = kVectors - 1 - i;
      const __m512i entry = Gather(table.by_symbol.data(), BytesOf(bytes, v));
      x[v] = EncodeStep(x[v], FrequencyOf(entry), StartOf(entry), &words);
    }
  }
  for (size_t v = 0; v < kVectors; ++v) _mm512_storeu_si512(states + 16 * v, x[v]);
  return words;
}

uint8_t* RansEncode(const uint8_t* symbols, size_t groups, const RansEncodeTable& table, uint32_t* states,
                    uint8_t* words) {
  const auto encode = table.symbols <= kFewSymbols     ? RansEncodeSmall<true>
                      : table.symbols <= kSmallSymbols ? RansEncodeSmall<false>
                                                       : RansEncodeLarge;
  return encode(symbols, groups, table, states, words);
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

/// Decodes groups while kGroupWords can be read.
/// \returns the number of groups decoded
template <int kInside, bool kFew>
size_t DecodeSmall(const uint8_t** words, const uint8_t* words_end, size_t groups,
                   const RansDecodeTable& table, uint32_t* states, uint8_t* symbols) {
  __m512i x[kVectors];
  for (size_t v = 0; v < kVectors; ++v) x[v] = _mm512_loadu_si512(states + 16 * v);
  const __m512i first = _mm512_load_si512(table.first.data());
  __m512i begin[kInside];
  for (int i = 0; i < kInside; ++i) begin[i] = _mm512_load_si512(table.begin[i].data());
  RankTable<kFew> by_rank;
  Load(table.by_rank, &by_rank);
  const __m512i symbol = _mm512_load_si512(table.symbol.data());
  const __m512i slot_bits = _mm512_set1_epi32(kRansTotal - 1),
                inside_bits = _mm512_set1_epi32(kBucketSlots - 1);
  const uint8_t* next = *words;
  size_t group = 0;
  for (; group < groups && words_end - next >= kGroupWords; ++group) {
    __m512i rank[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      const __m512i slot = _mm512_and_si512(x[v], slot_bits), in_bucket = _mm512_and_si512(x[v], inside_bits);
      const __m512i bucket = _mm512_srli_epi32(slot, kBucketBits);
      __m512i r = LookupByte(bucket, first);
#pragma GCC unroll 7
      for (int i = 0; i < kInside; ++i) {
        const __mmask16 behind = _mm512_cmpge_epu32_mask(in_bucket, LookupByte(bucket, begin[i]));
        r = _mm512_mask_add_epi32(r, behind, r, _mm512_set1_epi32(1));
      }
      rank[v] = r;
      const __m512i entry = EntryOf(r, by_rank);
      const __m512i place = _mm512_sub_epi32(slot, StartOf(entry));
      x[v] =
          _mm512_add_epi32(_mm512_mullo_epi32(FrequencyOf(entry), _mm512_srli_epi32(x[v], kRansBits)), place);
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

template <bool kFew>
DecodeGroupsFunction DecodeSmallOf(int inside) {
  return inside <= 1   ? DecodeSmall<1, kFew>
         : inside <= 2 ? DecodeSmall<2, kFew>
         : inside <= 3 ? DecodeSmall<3, kFew>
         : inside <= 5 ? DecodeSmall<5, kFew>
                       : DecodeSmall<7, kFew>;
}

bool RansDecode(const uint8_t** words, const uint8_t* words_end, size_t groups, const RansDecodeTable& table,
                uint32_t* states, uint8_t* symbols) {
  const auto decode = table.inside >= RansDecodeTable::kTooMany ? DecodeLarge
                      : table.symbols <= kFewSymbols            ? DecodeSmallOf<true>(table.inside)
                                                                : DecodeSmallOf<false>(table.inside);
  return DecodeToTheEnd<kGroupWords>(decode, words, words_end, groups, table, states, symbols);
}

}  // namespace

const Kernels kAvx512Kernels = {"avx512",     Split,      Merge,      Hash,     Histogram,
                                MarkPresent,  RansEncode, RansDecode, false,    Exponents,
                                AddExponents, Predict,    Unpredict,  Subtract, Add};

}  // namespace trainwright::codec

TRAINWRIGHT_END_TARGET

#endif

/// The bodies of the codec's kernels that every instruction set shares; included once a set, inside the
/// target that TRAINWRIGHT_BEGIN_TARGET opens. The loops are written so that compilers vectorise them.

#include <algorithm>
#include <bit>
#include <cstring>

#include "lib/codec/cpu/kernels.h"

TRAINWRIGHT_BEGIN_TARGET

// The library as distributions build it hashes with SSE2 on every processor.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace trainwright::codec {
namespace {

template <typename Word>
Word LoadWord(const uint8_t* bytes, size_t i) {
  Word word;
  std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
  return word;
}
template <typename Word>
void StoreWord(uint8_t* bytes, size_t i, Word word) {
  std::memcpy(bytes + i * sizeof(Word), &word, sizeof(Word));
}

template <typename Word, bool kFloat>
void SplitWords(const uint8_t* __restrict elements, size_t n, uint8_t* const* planes) {
  constexpr int kBytes = sizeof(Word), kBits = 8 * kBytes;
  uint8_t* __restrict first = planes[0];
  uint8_t* __restrict second = planes[1];
  for (size_t i = 0; i < n; ++i) {
    const Word word = LoadWord<Word>(elements, i);
    if constexpr (kFloat) {
      first[i] = static_cast<uint8_t>(word >> (kBits - 9));
      second[i] = static_cast<uint8_t>((word >> (kBits - 8) & 0x80) | (word >> (kBits - 16) & 0x7f));
    } else {
      first[i] = static_cast<uint8_t>(word >> (kBits - 8));
      second[i] = static_cast<uint8_t>(word >> (kBits - 16));
    }
  }
  for (int p = 2; p < kBytes; ++p) {
    uint8_t* __restrict plane = planes[p];
    for (size_t i = 0; i < n; ++i)
      plane[i] = static_cast<uint8_t>(LoadWord<Word>(elements, i) >> (8 * (kBytes - 1 - p)));
  }
}

template <typename Word, bool kFloat>
void MergeWords(const uint8_t* const* planes, size_t n, uint8_t* __restrict elements) {
  constexpr int kBytes = sizeof(Word), kBits = 8 * kBytes;
  const uint8_t* __restrict p[kBytes];
  for (int plane = 0; plane < kBytes; ++plane) p[plane] = planes[plane];
  for (size_t i = 0; i < n; ++i) {
    Word word;
    if constexpr (kFloat) {
      word = static_cast<Word>(static_cast<Word>(p[0][i]) << (kBits - 9) |
                               static_cast<Word>(p[1][i] & 0x80) << (kBits - 8) |
                               static_cast<Word>(p[1][i] & 0x7f) << (kBits - 16));
    } else {
      word = static_cast<Word>(static_cast<Word>(p[0][i]) << (kBits - 8) | static_cast<Word>(p[1][i])
                                                                               << (kBits - 16));
    }
    for (int plane = 2; plane < kBytes; ++plane)
      word = static_cast<Word>(word | static_cast<Word>(p[plane][i]) << (8 * (kBytes - 1 - plane)));
    StoreWord<Word>(elements, i, word);
  }
}

void Split(ElementType type, const uint8_t* elements, size_t n, uint8_t* const* planes) {
  switch (type) {
    case ElementType::kInt8:
      std::copy_n(elements, n, planes[0]);
      break;
    case ElementType::kInt16:
      SplitWords<uint16_t, false>(elements, n, planes);
      break;
    case ElementType::kInt32:
      SplitWords<uint32_t, false>(elements, n, planes);
      break;
    case ElementType::kInt64:
      SplitWords<uint64_t, false>(elements, n, planes);
      break;
    case ElementType::kFloat16:
      SplitWords<uint16_t, true>(elements, n, planes);
      break;
    case ElementType::kFloat32:
      SplitWords<uint32_t, true>(elements, n, planes);
      break;
    case ElementType::kFloat64:
      SplitWords<uint64_t, true>(elements, n, planes);
      break;
  }
}

void Merge(ElementType type, const uint8_t* const* planes, size_t n, uint8_t* elements) {
  switch (type) {
    case ElementType::kInt8:
      std::copy_n(planes[0], n, elements);
      break;
    case ElementType::kInt16:
      MergeWords<uint16_t, false>(planes, n, elements);
      break;
    case ElementType::kInt32:
      MergeWords<uint32_t, false>(planes, n, elements);
      break;
    case ElementType::kInt64:
      MergeWords<uint64_t, false>(planes, n, elements);
      break;
    case ElementType::kFloat16:
      MergeWords<uint16_t, true>(planes, n, elements);
      break;
    case ElementType::kFloat32:
      MergeWords<uint32_t, true>(planes, n, elements);
      break;
    case ElementType::kFloat64:
      MergeWords<uint64_t, true>(planes, n, elements);
      break;
  }
}

template <typename Word>
void ExponentsOf(const uint8_t* __restrict elements, size_t n, uint8_t* __restrict plane) {
  for (size_t i = 0; i < n; ++i)
    plane[i] = static_cast<uint8_t>(LoadWord<Word>(elements, i) >> (8 * sizeof(Word) - 9));
}
void Exponents(ElementType type, const uint8_t* elements, size_t n, uint8_t* plane) {
  switch (ElementBytes(type)) {
    case 2:
      ExponentsOf<uint16_t>(elements, n, plane);
      break;
    case 4:
      ExponentsOf<uint32_t>(elements, n, plane);
      break;
    default:
      ExponentsOf<uint64_t>(elements, n, plane);
      break;
  }
}

/// Sum of at most 1024 bytes, in 16-bit lanes of words.
uint64_t SumOfBytes(const uint8_t* bytes, size_t n) {
  constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
  uint64_t lanes = 0, sum = 0;
  for (size_t i = 0; i < n / 8; ++i) {
    const uint64_t word = LoadWord<uint64_t>(bytes, i);
    lanes += (word & kEven) + (word >> 8 & kEven);
  }
  for (size_t i = n / 8 * 8; i < n; ++i) sum += bytes[i];
  for (; lanes != 0; lanes >>= 16) sum += lanes & 0xffff;
  return sum;
}

ExponentSum AddExponents(const uint8_t* __restrict exponents, size_t n, uint16_t* __restrict sums,
                         uint16_t* __restrict zeros) {
  constexpr size_t kPiece = 1024;
  ExponentSum all{.count = n};
  for (size_t begin = 0; begin < n; begin += kPiece) {
    const size_t end = std::min(n, begin + kPiece);
    all.sum += SumOfBytes(exponents + begin, end - begin);
    uint8_t has_zero = 0;
    for (size_t i = begin; i < end; ++i) {
      sums[i] = static_cast<uint16_t>(sums[i] + exponents[i]);
      has_zero |= exponents[i] == 0 ? 1 : 0;
    }
    if (has_zero == 0) continue;  // weights have hardly any
    for (size_t i = begin; i < end; ++i) {
      const uint16_t zero = exponents[i] == 0 ? 1 : 0;
      zeros[i] = static_cast<uint16_t>(zeros[i] + zero);
      all.count -= zero;
    }
  }
  return all;
}

uint64_t Hash(const uint8_t* bytes, size_t n, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, n, seed);
}

/// Eight tables, so that runs of one value do not wait for their own stores. Small ones are soon cleared
/// and added up.
template <typename Count>
void AddHistogram(const uint8_t* bytes, size_t n, uint32_t* counts) {
  Count tables[8][256] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const uint64_t word = LoadWord<uint64_t>(bytes + i, 0);
    for (int b = 0; b < 8; ++b) ++tables[b][word >> (8 * b) & 255];
  }
  for (; i < n; ++i) ++tables[0][bytes[i]];
  for (const auto& table : tables)
    for (int s = 0; s < 256; ++s) counts[s] += table[s];
}

void Histogram(const uint8_t* bytes, size_t n, uint32_t* counts) {
  constexpr size_t kMostOfSmall = size_t{1} << 18;
  std::fill_n(counts, 256, 0);
  n < kMostOfSmall ? AddHistogram<uint16_t>(bytes, n, counts) : AddHistogram<uint32_t>(bytes, n, counts);
}

[[maybe_unused]] void MarkPresentScalar(const uint8_t* bytes, size_t n, uint8_t* present) {
  for (size_t i = 0; i < n; ++i) present[bytes[i]] = 1;
}

/// A set of bytes as two shuffles look it up: bit `b >> 4 & 7` of row `b & 15`.
struct NibbleRows {
  alignas(16) uint8_t below_128[16] = {}, from_128[16] = {};
};

/// From `begin` on, where a vector with a byte outside the set begins, or less than a vector is left.
using SkipMembersFunction = size_t (*)(const uint8_t* bytes, size_t begin, size_t n, const NibbleRows& set);

template <size_t kVectorBytes>
[[maybe_unused]] void MarkOthers(SkipMembersFunction skip_members, const uint8_t* bytes, size_t n,
                                 uint8_t* present) {
  for (size_t i = 0; i < n;) {
    NibbleRows set;
    for (int b = 0; b < 256; ++b) {
      uint8_t& row = (b < 128 ? set.below_128 : set.from_128)[b & 15];
      row = static_cast<uint8_t>(row | present[b] << (b >> 4 & 7));
    }
    i = skip_members(bytes, i, n, set);
    const size_t others = std::min(n - i, kVectorBytes);
    MarkPresentScalar(bytes + i, others, present);
    i += others;
  }
}

/// The state that codes symbol `position` of a group of 64: states 0..15 take the positions 0, 4, 8, ...,
/// the next 16 take 1, 5, 9, ....
constexpr size_t PositionOf(size_t lane) {
  return 4 * (lane % 16) + lane / 16;
}

[[maybe_unused]] uint8_t* RansEncodeScalar(const uint8_t* symbols, size_t groups,
                                           const RansEncodeTable& table, uint32_t* states, uint8_t* words) {
  for (size_t group = groups; group-- > 0;) {
    const uint8_t* in = symbols + group * kRansLanes;
    for (size_t lane = kRansLanes; lane-- > 0;) {
      const uint32_t entry = table.by_symbol[in[PositionOf(lane)]];
      const uint32_t frequency = entry & 0xffff;
      uint32_t x = states[lane];
      if (x >= frequency << (32 - kRansBits)) {
        words -= 2;
        StoreWord<uint16_t>(words, 0, static_cast<uint16_t>(x));
        x >>= 16;
      }
      const uint32_t quotient = x / frequency;
      states[lane] = (quotient << kRansBits) + (entry >> 16) + (x - quotient * frequency);
    }
  }
  return words;
}

[[maybe_unused]] bool RansDecodeScalar(const uint8_t** words, const uint8_t* words_end, size_t groups,
                                       const RansDecodeTable& table, uint32_t* states, uint8_t* symbols) {
  const uint8_t* next = *words;
  for (size_t group = 0; group < groups; ++group) {
    uint8_t* out = symbols + group * kRansLanes;
    for (size_t lane = 0; lane < kRansLanes; ++lane) {
      uint32_t x = states[lane];
      const uint32_t entry = table.by_slot[x & (kRansTotal - 1)];
      out[PositionOf(lane)] = static_cast<uint8_t>(entry);
      x = (entry >> 20) * (x >> kRansBits) + (entry >> 8 & 0xfff);
      if (x < kRansLow) {
        if (words_end - next < 2) return false;
        x = x << 16 | LoadWord<uint16_t>(next, 0);
        next += 2;
      }
      states[lane] = x;
    }
  }
  *words = next;
  return true;
}

using DecodeGroupsFunction = size_t (*)(const uint8_t** words, const uint8_t* words_end, size_t groups,
                                        const RansDecodeTable& table, uint32_t* states, uint8_t* symbols);

/// Decodes by a function that stops where fewer than kGroupWords bytes are left to read.
template <ptrdiff_t kGroupWords>
bool DecodeToTheEnd(DecodeGroupsFunction decode, const uint8_t** words, const uint8_t* words_end,
                    size_t groups, const RansDecodeTable& table, uint32_t* states, uint8_t* symbols) {
  size_t done = decode(words, words_end, groups, table, states, symbols);
  if (done == groups) return true;
  // The last words again, with room after them. A group that takes more than there are is found at its end.
  uint8_t last[3 * kGroupWords] = {};
  const auto left = static_cast<size_t>(words_end - *words);
  std::copy_n(*words, left, last);
  const uint8_t* next = last;
  for (; done < groups; ++done) {
    decode(&next, next + kGroupWords, 1, table, states, symbols + done * kRansLanes);
    if (next > last + left) return false;
  }
  *words += next - last;
  return true;
}

// A zero has no magnitude to predict: it keeps the code 0, and what would have that takes the zero's.
void Predict(uint8_t* __restrict exponents, const int16_t* __restrict columns, int16_t row, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const auto prediction = static_cast<uint8_t>(static_cast<int16_t>(row + columns[i]) >> 3);
    const uint8_t exponent = exponents[i];
    uint8_t code = static_cast<uint8_t>(exponent - prediction);
    code = code == 0 ? static_cast<uint8_t>(-prediction) : code;
    exponents[i] = exponent == 0 ? 0 : code;
  }
}

void Unpredict(uint8_t* __restrict exponents, const int16_t* __restrict columns, int16_t row, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const auto prediction = static_cast<uint8_t>(static_cast<int16_t>(row + columns[i]) >> 3);
    const uint8_t code = exponents[i];
    uint8_t exponent = static_cast<uint8_t>(code + prediction);
    exponent = exponent == 0 ? prediction : exponent;
    exponents[i] = code == 0 ? 0 : exponent;
  }
}

template <typename Word>
void SubtractWords(const uint8_t* x, const uint8_t* base, size_t n, uint8_t* out) {
  constexpr int kTop = 8 * sizeof(Word) - 1;
  for (size_t i = 0; i < n; ++i) {
    const Word d = static_cast<Word>(LoadWord<Word>(x, i) - LoadWord<Word>(base, i));
    const Word sign = static_cast<Word>(0 - (d >> kTop));
    StoreWord<Word>(out, i, static_cast<Word>(static_cast<Word>(d << 1) ^ sign));
  }
}
template <typename Word>
void AddWords(const uint8_t* x, const uint8_t* base, size_t n, uint8_t* out) {
  for (size_t i = 0; i < n; ++i) {
    const Word z = LoadWord<Word>(x, i);
    const Word d = static_cast<Word>((z >> 1) ^ static_cast<Word>(0 - (z & 1)));
    StoreWord<Word>(out, i, static_cast<Word>(LoadWord<Word>(base, i) + d));
  }
}

void Subtract(size_t width, const uint8_t* x, const uint8_t* base, size_t n, uint8_t* out) {
  switch (width) {
    case 1:
      SubtractWords<uint8_t>(x, base, n, out);
      break;
    case 2:
      SubtractWords<uint16_t>(x, base, n, out);
      break;
    case 4:
      SubtractWords<uint32_t>(x, base, n, out);
      break;
    default:
      SubtractWords<uint64_t>(x, base, n, out);
      break;
  }
}
void Add(size_t width, const uint8_t* x, const uint8_t* base, size_t n, uint8_t* out) {
  switch (width) {
    case 1:
      AddWords<uint8_t>(x, base, n, out);
      break;
    case 2:
      AddWords<uint16_t>(x, base, n, out);
      break;
    case 4:
      AddWords<uint32_t>(x, base, n, out);
      break;
    default:
      AddWords<uint64_t>(x, base, n, out);
      break;
  }
}

}  // namespace
}  // namespace trainwright::codec

TRAINWRIGHT_END_TARGET

/// The loops of the codec, compiled once an instruction set. Every set computes the same bytes.
///
/// Pure apart from the outputs; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/codec/element_type.h"
#include "lib/codec/rans_table.h"

namespace trainwright::codec {

/// Rows of exponents whose sums fit 16 bits.
inline constexpr uint64_t kMostAddedRows = 257;

/// Sum and number of the exponents that are not 0.
struct ExponentSum {
  uint64_t sum = 0, count = 0;
};

struct Kernels {
  const char* name;

  /// Splits `n` elements into byte planes, the most significant first.
  void (*split)(ElementType type, const uint8_t* elements, size_t n, uint8_t* const* planes);
  /// The reverse.
  void (*merge)(ElementType type, const uint8_t* const* planes, size_t n, uint8_t* elements);
  /// XXH3-64.
  uint64_t (*hash)(const uint8_t* bytes, size_t n, uint64_t seed);
  /// counts[256] = how often each byte occurs. n < 2^32
  void (*histogram)(const uint8_t* bytes, size_t n, uint32_t* counts);
  /// present[b] = 1 for every byte b that occurs; the others of the 256, each 0 or 1, stay. Far faster than
  /// a histogram where most that occur are present before.
  void (*mark_present)(const uint8_t* bytes, size_t n, uint8_t* present);

  /// Codes `groups` groups of 64 symbols, the last first, and writes the words that come out of the states in
  /// front of `words_end`.
  /// \returns where they begin
  uint8_t* (*rans_encode)(const uint8_t* symbols, size_t groups, const RansEncodeTable& table,
                          uint32_t* states, uint8_t* words_end);
  /// Decodes `groups` groups and moves *words past the words that they took.
  /// \returns false, with anything in `symbols`, when there are too few
  bool (*rans_decode)(const uint8_t** words, const uint8_t* words_end, size_t groups,
                      const RansDecodeTable& table, uint32_t* states, uint8_t* symbols);
  /// Whether rans_decode reads by_slot of every table.
  bool decodes_by_slot;

  /// The first plane alone.
  void (*exponents)(ElementType type, const uint8_t* elements, size_t n, uint8_t* plane);
  /// sums[i] += exponents[i], zeros[i] += 1 where that is 0; they hold kMostAddedRows rows.
  ExponentSum (*add_exponents)(const uint8_t* exponents, size_t n, uint16_t* sums, uint16_t* zeros);
  /// Codes in place of the exponents of one matrix row, whose prediction is (row + columns[i]) >> 3.
  void (*predict)(uint8_t* exponents, const int16_t* columns, int16_t row, size_t n);
  /// The reverse.
  void (*unpredict)(uint8_t* exponents, const int16_t* columns, int16_t row, size_t n);
  /// out = zigzag(x - base) as little-endian integers of `width` bytes; and its reverse, out = base + ...
  void (*subtract)(size_t width, const uint8_t* x, const uint8_t* base, size_t n, uint8_t* out);
  void (*add)(size_t width, const uint8_t* x, const uint8_t* base, size_t n, uint8_t* out);
};

extern const Kernels kBaselineKernels, kAvx2Kernels, kAvx512Kernels;

/// The kernels that this processor can run, the fastest last.
std::span<const Kernels* const> SupportedKernels();
inline const Kernels& BestKernels() {
  return *SupportedKernels().back();
}

}  // namespace trainwright::codec

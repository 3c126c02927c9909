/// The frequencies of one rANS table: how they are chosen, stored, and laid out over the 4096 slots.
///
/// Each symbol has one range of slots, so an encoder reaches a slot by adding. The order of the ranges
/// spreads rare symbols over frequent ones: then few ranges begin in any 64 slots, and a decoder finds a
/// slot's symbol in a table by 64ths and a few comparisons, all inside vector registers.
/// \source J. Duda, arXiv:1311.2540 (rANS); F. Giesen, arXiv:1402.3392 (interleaving)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lib/base/bytes.h"

namespace trainwright {

inline constexpr int kRansBits = 12;
inline constexpr uint32_t kRansTotal = 1 << kRansBits;
inline constexpr uint32_t kRansLow = 1 << 16;  ///< states lie in [kRansLow, 2^32), and move by 16 bits
inline constexpr size_t kRansLanes = 64;
inline constexpr uint32_t kBuckets = 64;
inline constexpr uint32_t kBucketSlots = kRansTotal / kBuckets;

/// Frequency of each byte value. The sum is kRansTotal, no single one is.
using RansFrequencies = std::array<uint16_t, 256>;

/// The frequencies nearest to `counts`, at least 1 where a count is not 0. A lone symbol gets a neighbour.
/// \param counts 256, not all 0, sum below 2^32
RansFrequencies NormalizeCounts(const uint32_t* counts);

/// Appends the stored form of a table.
void AppendFrequencies(const RansFrequencies& frequencies, std::vector<uint8_t>* out);
/// Bits of that form.
uint64_t FrequenciesBits(const RansFrequencies& frequencies);
/// Reads a table; false when it is not one that AppendFrequencies writes.
bool ReadFrequencies(ByteParser* parser, RansFrequencies* frequencies);

/// The symbols with a frequency in the order of their ranges.
struct SlotOrder {
  uint32_t symbols = 0;
  std::array<uint8_t, 256> symbol;
  std::array<uint16_t, 257> start;  ///< of each range; after the last one kRansTotal
};
void OrderSlots(const RansFrequencies& frequencies, SlotOrder* order);

/// The most symbols whose tables fit vector registers, and those of which half the registers are enough.
inline constexpr uint32_t kSmallSymbols = 64, kFewSymbols = 32;

/// What an encoder looks up.
struct RansEncodeTable {
  uint32_t symbols = 0;
  std::array<uint8_t, 256> rank_of;                         ///< of a symbol, its place in the order
  alignas(64) std::array<uint32_t, kSmallSymbols> by_rank;  ///< frequency | start << 16
  alignas(64) std::array<uint32_t, 256> by_symbol;          ///< the same
};
void BuildEncodeTable(const RansFrequencies& frequencies, RansEncodeTable* table);

/// What a decoder looks up.
struct RansDecodeTable {
  /// The most ranges that begin inside one bucket, after its first slot; kTooMany when that or the symbols
  /// are too many for vector registers, and there is by_slot alone.
  static constexpr int kTooMany = 8;
  int inside = 0;
  uint32_t symbols = 0;
  alignas(64) std::array<uint8_t, kBuckets> first;  ///< by bucket: the rank at its first slot
  /// By bucket: at which of its slots those begin; kBucketSlots where there are fewer.
  alignas(64) std::array<std::array<uint8_t, kBuckets>, kTooMany - 1> begin;
  alignas(64) std::array<uint32_t, kSmallSymbols> by_rank;  ///< frequency | start << 16
  alignas(64) std::array<uint8_t, kSmallSymbols> symbol;    ///< by rank
  /// By slot: symbol | place in its range << 8 | frequency << 20. With kTooMany, or on demand.
  alignas(64) std::array<uint32_t, kRansTotal> by_slot;
};
void BuildDecodeTable(const RansFrequencies& frequencies, bool by_slot, RansDecodeTable* table);

}  // namespace trainwright

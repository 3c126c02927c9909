/// The frequencies of one rANS table: how they are chosen, stored, and laid out over the 4096 slots.
///
/// The slots are shared out by the alias method, so that a decoder finds the symbol of a slot in tables of 64
/// entries, which fit into vector registers.
/// \source J. Duda, arXiv:1311.2540 (rANS); A. J. Walker 1977 and M. D. Vose 1991 (alias method);
///         F. Giesen, arXiv:1402.3392 (interleaving) and "rANS with static probability distributions" (alias)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lib/base/bytes.h"

namespace trainwright {

inline constexpr int kRansBits = 12;
inline constexpr uint32_t kRansTotal = 1 << kRansBits;
inline constexpr uint32_t kRansLow = 1 << 16;  ///< states lie in [kRansLow, 2^32); they move in steps of 16 bits
inline constexpr size_t kRansLanes = 64;
inline constexpr uint32_t kSmallAlphabet = 64;

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

/// Slots shared out: bucket b is the slots [b * width, (b + 1) * width); those below `divider` (an absolute
/// slot) belong to the symbol of rank b, the rest to its alias. A slot's place inside its symbol is the slot
/// plus `shift`, modulo 2^16.
struct AliasLayout {
  uint32_t buckets = 0;  ///< 64, or 256 when more than 64 symbols have a frequency
  uint32_t symbols = 0;
  struct Side {
    std::array<uint8_t, 256> symbol;
    std::array<uint16_t, 256> frequency, shift;
  };
  std::array<uint16_t, 256> divider;
  Side own, alias;
};
void LayOutSlots(const RansFrequencies& frequencies, AliasLayout* layout);

/// What an encoder looks up.
struct RansEncodeTable {
  uint32_t symbols = 0;
  std::array<uint8_t, 256> rank_of;                    ///< of a symbol with a frequency
  alignas(64) std::array<uint16_t, 64> frequency;      ///< by rank; where symbols <= 64
  alignas(64) std::array<uint16_t, 64> start;          ///< by rank: first entry in slot
  alignas(64) std::array<uint32_t, 256> by_symbol;     ///< frequency | start << 16
  alignas(64) std::array<uint32_t, kRansTotal> slot;   ///< slots of each symbol, one symbol after another
};
void BuildEncodeTable(const RansFrequencies& frequencies, RansEncodeTable* table);

/// What a decoder looks up.
struct RansDecodeTable {
  uint32_t buckets = 0;
  /// For 64 buckets.
  alignas(64) std::array<uint16_t, 64> divider, own_frequency, alias_frequency, own_shift, alias_shift;
  alignas(64) std::array<uint8_t, 128> symbol;  ///< own, then alias
  /// By slot: symbol | place inside it << 8 | frequency << 20. Filled on demand.
  alignas(64) std::array<uint32_t, kRansTotal> by_slot;
};
/// \param by_slot always fill by_slot; else only where there are not 64 buckets
void BuildDecodeTable(const RansFrequencies& frequencies, bool by_slot, RansDecodeTable* table);

}  // namespace trainwright

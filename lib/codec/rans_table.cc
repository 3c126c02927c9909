#include "lib/codec/rans_table.h"

#include <bit>

namespace trainwright {

RansFrequencies NormalizeCounts(const uint32_t* counts) {
  uint64_t total = 0;
  int symbols = 0, last = 0;
  for (int s = 0; s < 256; ++s) {
    total += counts[s];
    if (counts[s] != 0) ++symbols, last = s;
  }
  RansFrequencies frequencies{};
  if (symbols == 1) {
    frequencies[last] = kRansTotal - 1;
    frequencies[last ^ 1] = 1;
    return frequencies;
  }
  std::array<uint8_t, 256> present;
  int n = 0;
  int64_t sum = 0;
  for (int s = 0; s < 256; ++s) {
    if (counts[s] == 0) continue;
    present[n++] = static_cast<uint8_t>(s);
    const uint64_t share = (uint64_t{counts[s]} * kRansTotal + total / 2) / total;
    frequencies[s] = static_cast<uint16_t>(share == 0 ? 1 : share < kRansTotal ? share : kRansTotal - 1);
    sum += frequencies[s];
  }
  // One more or less where it costs the least: the cost of f is -count log2(f), its slope is count / f.
  for (; sum > kRansTotal; --sum) {
    int best = -1;
    for (int i = 0; i < n; ++i) {
      const int s = present[i];
      if (frequencies[s] > 1 && (best < 0 || uint64_t{counts[s]} * (2u * frequencies[best] - 1) <
                                                 uint64_t{counts[best]} * (2u * frequencies[s] - 1))) {
        best = s;
      }
    }
    --frequencies[best];
  }
  for (; sum < kRansTotal; ++sum) {
    int best = -1;
    for (int i = 0; i < n; ++i) {
      const int s = present[i];
      if (frequencies[s] < kRansTotal - 1 && (best < 0 || uint64_t{counts[s]} * (2u * frequencies[best] + 1) >
                                                              uint64_t{counts[best]} * (2u * frequencies[s] + 1))) {
        best = s;
      }
    }
    ++frequencies[best];
  }
  return frequencies;
}

namespace {

struct SymbolRange {
  int first = 255, last = 0;
};
SymbolRange RangeOf(const RansFrequencies& frequencies) {
  SymbolRange range;
  for (int s = 0; s < 256; ++s) {
    if (frequencies[s] == 0) continue;
    if (s < range.first) range.first = s;
    range.last = s;
  }
  return range;
}

}  // namespace

uint64_t FrequenciesBits(const RansFrequencies& frequencies) {
  const SymbolRange range = RangeOf(frequencies);
  uint64_t bits = 16;
  for (int s = range.first; s <= range.last; ++s) {
    const int width = std::bit_width(frequencies[s]);
    bits += 4 + static_cast<uint64_t>(width > 1 ? width - 1 : 0);
  }
  return bits;
}

void AppendFrequencies(const RansFrequencies& frequencies, std::vector<uint8_t>* out) {
  const SymbolRange range = RangeOf(frequencies);
  out->push_back(static_cast<uint8_t>(range.first));
  out->push_back(static_cast<uint8_t>(range.last));
  uint32_t bits = 0;
  int filled = 0;
  const auto append = [&](uint32_t value, int width) {
    bits |= value << filled;
    for (filled += width; filled >= 8; filled -= 8, bits >>= 8) out->push_back(static_cast<uint8_t>(bits));
  };
  for (int s = range.first; s <= range.last; ++s) {
    const int width = std::bit_width(frequencies[s]);
    append(static_cast<uint32_t>(width), 4);
    if (width > 1) append(frequencies[s] & ((1u << (width - 1)) - 1), width - 1);
  }
  if (filled > 0) out->push_back(static_cast<uint8_t>(bits));
}

bool ReadFrequencies(ByteParser* parser, RansFrequencies* frequencies) {
  const int first = parser->Read<uint8_t>(), last = parser->Read<uint8_t>();
  if (parser->failed() || first >= last) return false;
  uint32_t bits = 0;
  int filled = 0;
  const auto read = [&](int width) {
    for (; filled < width; filled += 8) bits |= uint32_t{parser->Read<uint8_t>()} << filled;
    const uint32_t value = bits & ((1u << width) - 1);
    bits >>= width;
    filled -= width;
    return value;
  };
  frequencies->fill(0);
  uint32_t sum = 0;
  for (int s = first; s <= last; ++s) {
    const int width = static_cast<int>(read(4));
    if (width > kRansBits) return false;
    const uint32_t frequency = width == 0 ? 0 : width == 1 ? 1 : 1u << (width - 1) | read(width - 1);
    (*frequencies)[s] = static_cast<uint16_t>(frequency);
    sum += frequency;
  }
  return !parser->failed() && bits == 0 && sum == kRansTotal && (*frequencies)[first] != 0 &&
         (*frequencies)[last] != 0;
}

void LayOutSlots(const RansFrequencies& frequencies, AliasLayout* layout) {
  std::array<uint8_t, 256> symbol_of{};
  std::array<uint32_t, 256> left{};  // slots of each rank that have no place yet
  uint32_t symbols = 0;
  for (int s = 0; s < 256; ++s) {
    if (frequencies[s] == 0) continue;
    symbol_of[symbols] = static_cast<uint8_t>(s);
    left[symbols++] = frequencies[s];
  }
  layout->symbols = symbols;
  const uint32_t buckets = layout->buckets = symbols <= kSmallAlphabet ? kSmallAlphabet : 256;
  const uint32_t width = kRansTotal / buckets;

  // Two queues: ranks with too few slots for their bucket, and ranks with enough. Each bucket of the first
  // kind is filled up by the front of the second, which joins the first when it has too few itself.
  std::array<uint8_t, 512> poor, rich;
  uint32_t poor_begin = 0, poor_end = 0, rich_begin = 0, rich_end = 0;
  for (uint32_t rank = 0; rank < buckets; ++rank) {
    if (left[rank] < width) {
      poor[poor_end++] = static_cast<uint8_t>(rank);
    } else {
      rich[rich_end++] = static_cast<uint8_t>(rank);
    }
  }
  std::array<uint32_t, 256> own;
  std::array<uint8_t, 256> alias;
  own.fill(width);
  for (uint32_t rank = 0; rank < buckets; ++rank) alias[rank] = static_cast<uint8_t>(rank);
  while (poor_begin < poor_end) {
    const uint32_t rank = poor[poor_begin++], giver = rich[rich_begin];
    own[rank] = left[rank];
    alias[rank] = static_cast<uint8_t>(giver);
    left[giver] -= width - left[rank];
    if (left[giver] < width) {
      ++rich_begin;
      poor[poor_end++] = static_cast<uint8_t>(giver);
    }
  }

  std::array<uint32_t, 256> placed{};  // slots of each rank so far, in ascending order of slots
  for (uint32_t b = 0; b < buckets; ++b) {
    const uint32_t begin = b * width, divider = begin + own[b], other = alias[b];
    layout->divider[b] = static_cast<uint16_t>(divider);
    layout->own.symbol[b] = symbol_of[b];
    layout->own.frequency[b] = frequencies[symbol_of[b]];
    layout->own.shift[b] = static_cast<uint16_t>(placed[b] - begin);
    placed[b] += own[b];
    layout->alias.symbol[b] = symbol_of[other];
    layout->alias.frequency[b] = frequencies[symbol_of[other]];
    layout->alias.shift[b] = static_cast<uint16_t>(placed[other] - divider);
    placed[other] += width - own[b];
  }
}

void BuildEncodeTable(const RansFrequencies& frequencies, RansEncodeTable* table) {
  AliasLayout layout;
  LayOutSlots(frequencies, &layout);
  table->symbols = layout.symbols;
  table->rank_of.fill(0);
  table->frequency.fill(1);
  table->start.fill(0);
  table->by_symbol.fill(1);
  uint32_t start = 0, rank = 0;
  for (uint32_t s = 0; s < 256; ++s) {
    if (frequencies[s] == 0) continue;
    table->rank_of[s] = static_cast<uint8_t>(rank);
    if (rank < kSmallAlphabet) {
      table->frequency[rank] = frequencies[s];
      table->start[rank] = static_cast<uint16_t>(start);
    }
    table->by_symbol[s] = frequencies[s] | start << 16;
    start += frequencies[s];
    ++rank;
  }
  const uint32_t width = kRansTotal / layout.buckets;
  for (uint32_t b = 0; b < layout.buckets; ++b) {
    const uint32_t begin = b * width, divider = layout.divider[b], end = begin + width;
    const auto place = [&](const AliasLayout::Side& side, uint32_t from, uint32_t to) {
      uint32_t entry = (table->by_symbol[side.symbol[b]] >> 16) + ((from + side.shift[b]) & 0xffff);
      for (uint32_t slot = from; slot < to; ++slot) table->slot[entry++] = slot;
    };
    if (begin < divider) place(layout.own, begin, divider);
    if (divider < end) place(layout.alias, divider, end);
  }
}

void BuildDecodeTable(const RansFrequencies& frequencies, bool by_slot, RansDecodeTable* table) {
  AliasLayout layout;
  LayOutSlots(frequencies, &layout);
  table->buckets = layout.buckets;
  if (layout.buckets == kSmallAlphabet) {
    for (uint32_t b = 0; b < kSmallAlphabet; ++b) {
      table->divider[b] = layout.divider[b];
      table->own_frequency[b] = layout.own.frequency[b];
      table->alias_frequency[b] = layout.alias.frequency[b];
      table->own_shift[b] = layout.own.shift[b];
      table->alias_shift[b] = layout.alias.shift[b];
      table->symbol[b] = layout.own.symbol[b];
      table->symbol[kSmallAlphabet + b] = layout.alias.symbol[b];
    }
    if (!by_slot) return;
  }
  const uint32_t width = kRansTotal / layout.buckets;
  for (uint32_t b = 0; b < layout.buckets; ++b) {
    const uint32_t begin = b * width, divider = layout.divider[b], end = begin + width;
    const auto fill = [&](const AliasLayout::Side& side, uint32_t from, uint32_t to) {
      const uint32_t symbol = side.symbol[b], frequency = side.frequency[b];
      for (uint32_t slot = from; slot < to; ++slot)
        table->by_slot[slot] = symbol | ((slot + side.shift[b]) & 0xffff) << 8 | frequency << 20;
    };
    fill(layout.own, begin, divider);
    fill(layout.alias, divider, end);
  }
}

}  // namespace trainwright

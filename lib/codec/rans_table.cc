#include "lib/codec/rans_table.h"

#include <algorithm>
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
      if (frequencies[s] < kRansTotal - 1 &&
          (best < 0 || uint64_t{counts[s]} * (2u * frequencies[best] + 1) >
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

void OrderSlots(const RansFrequencies& frequencies, SlotOrder* order) {
  std::array<uint8_t, 256> frequent, rare;
  size_t frequents = 0, rares = 0;
  for (int s = 0; s < 256; ++s) {
    if (frequencies[s] >= kBucketSlots) {
      frequent[frequents++] = static_cast<uint8_t>(s);
    } else if (frequencies[s] > 0) {
      rare[rares++] = static_cast<uint8_t>(s);
    }
  }
  uint32_t n = 0, start = 0;
  const auto append = [&](uint8_t symbol) {
    order->symbol[n] = symbol;
    order->start[n++] = static_cast<uint16_t>(start);
    start += frequencies[symbol];
  };
  for (size_t i = 0; i < frequents; ++i) {
    append(frequent[i]);
    for (size_t j = i; j < rares; j += frequents) append(rare[j]);
  }
  if (frequents == 0)
    for (size_t j = 0; j < rares; ++j) append(rare[j]);
  order->symbols = n;
  order->start[n] = kRansTotal;
}

void BuildEncodeTable(const RansFrequencies& frequencies, RansEncodeTable* table) {
  SlotOrder order;
  OrderSlots(frequencies, &order);
  table->symbols = order.symbols;
  table->rank_of.fill(0);
  table->by_rank.fill(1);
  table->by_symbol.fill(1);
  for (uint32_t rank = 0; rank < order.symbols; ++rank) {
    const uint8_t symbol = order.symbol[rank];
    const uint32_t entry = frequencies[symbol] | static_cast<uint32_t>(order.start[rank]) << 16;
    table->rank_of[symbol] = static_cast<uint8_t>(rank);
    if (rank < kSmallSymbols) table->by_rank[rank] = entry;
    table->by_symbol[symbol] = entry;
  }
}

void BuildDecodeTable(const RansFrequencies& frequencies, bool by_slot, RansDecodeTable* table) {
  SlotOrder order;
  OrderSlots(frequencies, &order);
  table->symbols = order.symbols;
  uint32_t rank = 0, inside = 0;
  for (auto& begin : table->begin) begin.fill(kBucketSlots);
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const uint32_t first_slot = bucket * kBucketSlots;
    while (order.start[rank + 1] <= first_slot) ++rank;
    table->first[bucket] = static_cast<uint8_t>(rank);
    uint32_t n = 0;
    for (; order.start[rank + n + 1] < first_slot + kBucketSlots; ++n) {
      if (n < table->begin.size())
        table->begin[n][bucket] = static_cast<uint8_t>(order.start[rank + n + 1] - first_slot);
    }
    inside = std::max(inside, n);
  }
  const bool fits = inside < RansDecodeTable::kTooMany && order.symbols <= kSmallSymbols;
  table->inside = fits ? static_cast<int>(inside) : RansDecodeTable::kTooMany;
  if (fits) {
    for (uint32_t i = 0; i < order.symbols; ++i) {
      table->by_rank[i] = frequencies[order.symbol[i]] | static_cast<uint32_t>(order.start[i]) << 16;
      table->symbol[i] = order.symbol[i];
    }
    if (!by_slot) return;
  }
  for (uint32_t i = 0; i < order.symbols; ++i) {
    const uint32_t symbol = order.symbol[i], frequency = frequencies[symbol];
    for (uint32_t place = 0; place < frequency; ++place)
      table->by_slot[order.start[i] + place] = symbol | place << 8 | frequency << 20;
  }
}

}  // namespace trainwright

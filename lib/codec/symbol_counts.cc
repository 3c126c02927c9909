#include "lib/codec/symbol_counts.h"

#include <algorithm>
#include <vector>

namespace trainwright::codec {
namespace {

constexpr size_t kStretchBytes = 128;
constexpr size_t kLeastSampleBytes = 4096;

/// The stretches of a sample, one after another.
ByteSpan Sample(ByteSpan piece, size_t one_in) {
  static thread_local std::vector<uint8_t> sample;
  const size_t windows = piece.size() / (one_in * kStretchBytes);
  sample.resize(windows * kStretchBytes);
  uint32_t fraction = 0;  // multiples of the golden ratio: no row length of a matrix goes along with them
  for (size_t window = 0; window < windows; ++window, fraction += 0x9E3779B9u) {
    const size_t place = window * one_in + (uint64_t{fraction} * one_in >> 32);
    std::copy_n(piece.data() + place * kStretchBytes, kStretchBytes, sample.data() + window * kStretchBytes);
  }
  return sample;
}

}  // namespace

bool CountsSample(size_t piece_bytes, size_t one_in) {
  return one_in > 1 && piece_bytes >= one_in * kLeastSampleBytes;
}

SymbolCounts CountSymbols(const Kernels& kernels, ByteSpan piece, size_t one_in) {
  SymbolCounts counts;
  if (!CountsSample(piece.size(), one_in)) {
    kernels.histogram(piece.data(), piece.size(), counts.data());
    return counts;
  }
  const ByteSpan sample = Sample(piece, one_in);
  kernels.histogram(sample.data(), sample.size(), counts.data());
  std::array<uint8_t, 256> present;
  for (size_t s = 0; s < present.size(); ++s) present[s] = counts[s] != 0 ? 1 : 0;
  kernels.mark_present(piece.data(), piece.size(), present.data());
  for (size_t s = 0; s < present.size(); ++s) {
    const uint32_t estimate = counts[s] * static_cast<uint32_t>(one_in);
    counts[s] = estimate == 0 ? present[s] : estimate;
  }
  return counts;
}

}  // namespace trainwright::codec

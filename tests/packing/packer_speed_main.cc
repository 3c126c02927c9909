// Times best-fit packing of document lengths alone, without their tokens: scripts/compare/pack.sh.
//
//   packer_speed CAPACITY WINDOW ROUNDS < LENGTHS    a decimal length a line, each below CAPACITY
// Prints JSON: the least and the median time for a document, and what one pass over all windows leaves empty.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lib/packing/best_fit_bins.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const size_t capacity = std::strtoull(argv[1], nullptr, 10), window = std::strtoull(argv[2], nullptr, 10);
  const int rounds = std::atoi(argv[3]);
  std::vector<uint32_t> lengths;
  for (unsigned length; std::scanf("%u", &length) == 1;) lengths.push_back(length);
  if (lengths.empty() || window == 0 || rounds < 1) return 2;
  trainwright::BestFitBins bins(capacity);
  std::vector<double> times_ns;
  size_t used_bins = 0;
  uint64_t tokens = 0;
  for (const uint32_t length : lengths) tokens += length;
  for (int round = 0; round < rounds; ++round) {
    used_bins = 0;
    const auto start = std::chrono::steady_clock::now();
    for (size_t at = 0; at < lengths.size(); at += window) {
      bins.Fill(std::span(lengths).subspan(at, std::min(window, lengths.size() - at)));
      used_bins += bins.bins().size();
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    times_ns.push_back(time.count() / static_cast<double>(lengths.size()));
  }
  std::sort(times_ns.begin(), times_ns.end());
  std::printf(
      "{\"docs\":%zu,\"bins\":%zu,\"min_ns\":%.2f,\"median_ns\":%.2f,\"padding\":%.6f}\n", lengths.size(),
      used_bins, times_ns.front(), times_ns[times_ns.size() / 2],
      1.0 - static_cast<double>(tokens) / (static_cast<double>(used_bins) * static_cast<double>(capacity)));
  return 0;
}

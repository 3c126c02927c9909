// Times best-fit packing of document lengths alone, without their tokens: scripts/compare/pack.sh.
//
//   packer_speed CAPACITY WINDOW ROUNDS < LENGTHS    a decimal length a line, each below CAPACITY
// Prints JSON: CPU and wall seconds of all rounds, and what one pass over all windows leaves empty.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
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
  size_t used_bins = 0;
  uint64_t tokens = 0;
  for (const uint32_t length : lengths) tokens += length;
  const auto wall = std::chrono::steady_clock::now();
  timespec begin{}, end{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  for (int round = 0; round < rounds; ++round) {
    used_bins = 0;
    for (size_t at = 0; at < lengths.size(); at += window) {
      bins.Fill(std::span(lengths).subspan(at, std::min(window, lengths.size() - at)));
      used_bins += bins.bins().size();
    }
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  const std::chrono::duration<double> wall_time = std::chrono::steady_clock::now() - wall;
  const double cpu_s = static_cast<double>(end.tv_sec - begin.tv_sec) +
                       1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
  std::printf(
      "{\"docs\":%zu,\"bins\":%zu,\"cpu_s\":%.9f,\"wall_s\":%.9f,\"padding\":%.6f}\n", lengths.size(),
      used_bins, cpu_s, wall_time.count(),
      1.0 - static_cast<double>(tokens) / (static_cast<double>(used_bins) * static_cast<double>(capacity)));
  return 0;
}

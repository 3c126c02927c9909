#include "lib/dist/rank_threads.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"

namespace trainwright {
namespace {

constexpr int kMostCores = 1024, kCoresOfWord = 64;
/// What a rank tells: its machine, and a bit a core.
constexpr int64_t kWords = 1 + kMostCores / kCoresOfWord;

bool HasCore(const int64_t* words, int core) {
  return (static_cast<uint64_t>(words[1 + core / kCoresOfWord]) >> (core % kCoresOfWord) & 1) != 0;
}

}  // namespace

int ThreadsOfRanks(World* world, const std::string& machine, const std::vector<int>& cores) {
  // Each rank fills in its own part, and the sum has all.
  std::vector<int64_t> all(static_cast<size_t>(world->size() * kWords));
  const int64_t identity = std::bit_cast<int64_t>(Xxh3(AsBytes(machine)));
  int64_t* const own = all.data() + world->rank() * kWords;
  own[0] = identity;
  for (const int core : cores) {
    if (core >= kMostCores) continue;
    own[1 + core / kCoresOfWord] |= std::bit_cast<int64_t>(uint64_t{1} << (core % kCoresOfWord));
  }
  world->Reduce(&all);

  double share = 0;
  for (const int core : cores) {
    int64_t users = 0;
    for (int64_t rank = 0; rank < world->size() && core < kMostCores; ++rank) {
      const int64_t* const words = all.data() + rank * kWords;
      users += words[0] == identity && HasCore(words, core) ? 1 : 0;
    }
    if (users > 0) share += 1.0 / static_cast<double>(users);
  }
  constexpr double kRounding = 1e-6;  // of the sum
  const int64_t threads = std::max<int64_t>(1, static_cast<int64_t>(share + kRounding));
  return static_cast<int>(-world->Agree({-threads})[0]);
}

}  // namespace trainwright

#include "lib/dist/rank_threads.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/dist/gather.h"

namespace trainwright {
namespace {

constexpr int kMostCores = 1024, kCoresOfWord = 64;
/// What a rank tells: its machine, and a bit a core.
constexpr size_t kWords = 1 + kMostCores / kCoresOfWord;

size_t WordOf(int core) {
  return 1 + static_cast<size_t>(core / kCoresOfWord);
}

bool HasCore(const std::vector<int64_t>& words, int core) {
  return (static_cast<uint64_t>(words[WordOf(core)]) >> (core % kCoresOfWord) & 1) != 0;
}

}  // namespace

int ThreadsOfRanks(World* world, const std::string& machine, const std::vector<int>& cores) {
  std::vector<int64_t> own(kWords);
  own[0] = std::bit_cast<int64_t>(Xxh3(AsBytes(machine)));
  for (const int core : cores) {
    if (core >= kMostCores) continue;
    own[WordOf(core)] |= std::bit_cast<int64_t>(uint64_t{1} << (core % kCoresOfWord));
  }
  const std::vector<std::vector<int64_t>> ranks = GatherWords(world, own);

  double share = 0;
  for (const int core : cores) {
    if (core >= kMostCores) continue;
    const auto users = std::count_if(ranks.begin(), ranks.end(), [&](const std::vector<int64_t>& words) {
      return words[0] == own[0] && HasCore(words, core);
    });
    share += 1.0 / static_cast<double>(users);
  }
  constexpr double kRounding = 1e-6;  // of the sum
  const int64_t threads = std::max<int64_t>(1, static_cast<int64_t>(share + kRounding));
  return static_cast<int>(-world->Agree({-threads})[0]);
}

int64_t RanksThatShare(World* world, const std::string& identity) {
  const std::vector<std::string> all = GatherBytes(world, identity);
  return identity.empty() ? 1 : std::count(all.begin(), all.end(), identity);
}

int64_t ThingsOfRanks(World* world, const std::string& identity) {
  const std::vector<std::string> all = GatherBytes(world, identity);
  const std::set<std::string> known(all.begin(), all.end());
  const auto unknown = static_cast<int64_t>(std::count(all.begin(), all.end(), ""));
  return static_cast<int64_t>(known.size() - known.count("")) + unknown;
}

}  // namespace trainwright

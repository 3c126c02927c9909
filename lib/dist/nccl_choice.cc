#include "lib/dist/nccl_choice.h"

#include <cstdint>
#include <map>
#include <vector>

#include "lib/dist/gather.h"

namespace trainwright {
namespace {

constexpr char kHasNccl = '+', kHasNone = '-';

std::string NameOf(size_t rank) {
  return "rank " + std::to_string(rank);
}

}  // namespace

std::string WhyNotNccl(World* world, const RankGpu& own) {
  const std::vector<std::string> told =
      GatherBytes(world, (own.has_nccl ? kHasNccl : kHasNone) + own.identity);
  std::map<std::string, size_t> rank_of;
  for (size_t rank = 0; rank < told.size(); ++rank) {
    const std::string identity = told[rank].substr(1);
    if (told[rank][0] != kHasNccl) return "the CUDA plugin of " + NameOf(rank) + " was built without NCCL";
    if (identity.empty()) return NameOf(rank) + " cannot tell its GPU from others";
    const auto [other, is_new] = rank_of.emplace(identity, rank);
    if (!is_new)
      return "ranks " + std::to_string(other->second) + " and " + std::to_string(rank) + " share a GPU";
  }
  return "";
}

}  // namespace trainwright

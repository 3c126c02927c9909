#include "lib/dist/loopback_ranks.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace trainwright {
namespace {

constexpr char kYes[] = "yes", kNo[] = "no";

std::string LoopbackKey(int64_t rank) {
  return "loopback/" + std::to_string(rank);
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

bool AllOnLoopback(const RankPlace& place, RankStore* store) {
  const bool own = place.local_ranks == place.ranks || IsLoopback(place.store_host);
  store->Set(LoopbackKey(place.rank), own ? kYes : kNo);
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < place.ranks; ++rank) keys.push_back(LoopbackKey(rank));
  const std::vector<std::string> answers = store->Get(keys);
  return std::all_of(answers.begin(), answers.end(),
                     [](const std::string& answer) { return answer == kYes; });
}

}  // namespace trainwright

#include "lib/dist/rank_waits.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr double kPerSecond = 1e6;  // of what is told

}  // namespace

void RankWaits::Add(const RankWaits& more) {
  waits_s.resize(std::max(waits_s.size(), more.waits_s.size()));
  for (size_t rank = 0; rank < more.waits_s.size(); ++rank) waits_s[rank] += more.waits_s[rank];
}

int64_t RankWaits::slowest() const {
  TRAINWRIGHT_CHECK(!waits_s.empty());
  return std::min_element(waits_s.begin(), waits_s.end()) - waits_s.begin();
}

double RankWaits::ShareOf(double time_s) const {
  TRAINWRIGHT_CHECK(!waits_s.empty());
  const double all_s = time_s * static_cast<double>(waits_s.size());
  if (!(all_s > 0)) return 0;
  return std::min(1.0, std::accumulate(waits_s.begin(), waits_s.end(), 0.0) / all_s);
}

std::vector<int64_t> WaitAnswers(const World& world, double wait_s) {
  if (world.size() == 1) return {};
  std::vector<int64_t> answers(static_cast<size_t>(world.size()));
  answers[static_cast<size_t>(world.rank())] = std::llround(kPerSecond * wait_s);
  return answers;
}

RankWaits WaitsOf(const std::vector<int64_t>& agreed) {
  RankWaits waits;
  for (const int64_t wait : agreed) waits.waits_s.push_back(static_cast<double>(wait) / kPerSecond);
  return waits;
}

}  // namespace trainwright

#include "lib/nn/linear/product_chooser.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/log.h"
#include "lib/device/device_sync.h"

namespace trainwright {
namespace {

constexpr int64_t kMostCandidates = 8;
constexpr int kRounds = 3;  // that are timed, after one that is not

/// The least seconds of the rounds; infinite where it fails, negative where there is no such candidate.
double TimeOf(const ProductChooser::Trial& trial, int64_t candidate, at::Device device) {
  double least = std::numeric_limits<double>::infinity();
  try {
    if (!trial(candidate)) return -1;
    for (int round = 0; round < kRounds; ++round) {
      WaitFor(device);
      const auto start = std::chrono::steady_clock::now();
      trial(candidate);
      WaitFor(device);
      least = std::min(least, SecondsSince(start));
    }
  } catch (const std::exception& error) {
    LogWarning(std::string("a GEMM kernel failed, and will not be used: ") + error.what());
    return std::numeric_limits<double>::infinity();
  }
  return least;
}

}  // namespace

int64_t ProductChooser::CandidateOf(const std::string& product, at::Device device, const Trial& trial) {
  asked_ = true;
  const auto chosen = choices_.find(product);
  if (chosen != choices_.end()) return chosen->second;
  if (!tries_) return 0;
  std::vector<double> seconds;
  for (int64_t candidate = 0; candidate < kMostCandidates; ++candidate) {
    const double time = TimeOf(trial, candidate, device);
    if (time < 0) break;
    seconds.push_back(time);
  }
  if (seconds.empty()) return 0;  // the library has none: parts are computed
  return choices_[product] = FastestCandidate(seconds);
}

}  // namespace trainwright

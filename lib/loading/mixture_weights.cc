#include "lib/loading/mixture_weights.h"

#include <charconv>
#include <cmath>

#include "lib/base/error.h"

namespace trainwright {

std::vector<uint64_t> ParseMixtureWeights(const std::string& text, size_t sets) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorCode::kUsage, "--data-weights", "'" + text + "' " + problem, "",
                "give one number above 0 for each --data, in their order: --data-weights 0.7,0.3");
  };
  std::vector<double> shares;
  double sum = 0;
  const char *at = text.data(), *const end = at + text.size();
  while (true) {
    double share = 0;
    const auto [behind, status] = std::from_chars(at, end, share);
    if (status != std::errc() || !(share > 0) || !std::isfinite(share))
      refuse("holds what is no number above 0");
    shares.push_back(share);
    sum += share;
    if (behind == end) break;
    if (*behind != ',') refuse("is no list of numbers");
    at = behind + 1;
  }
  if (shares.size() != sets) {
    refuse("has " + std::to_string(shares.size()) + " shares, for " + std::to_string(sets) +
           " sets of --data");
  }
  std::vector<uint64_t> weights;
  for (const double share : shares) {
    weights.push_back(static_cast<uint64_t>(std::llround(share / sum * 0x1p32)));
    if (weights.back() == 0) refuse("holds a share too small to count");
  }
  return weights;
}

}  // namespace trainwright

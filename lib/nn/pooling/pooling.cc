#include "lib/nn/pooling/pooling.h"

#include <array>
#include <cstddef>

namespace trainwright {
namespace {

constexpr std::array<const char*, 4> kNames = {"mean", "weightedmean", "cls", "lasttoken"};

}  // namespace

std::string PoolingName(Pooling pooling) {
  return kNames[static_cast<size_t>(pooling)];
}

std::optional<Pooling> FindPooling(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Pooling>(i);
  }
  return std::nullopt;
}

std::vector<std::string> PoolingNames() {
  return {kNames.begin(), kNames.end()};
}

}  // namespace trainwright

#include "lib/spec/sharding.h"

#include "lib/base/error.h"

namespace trainwright {

bool GivesGradientsAway(Sharding sharding, ZeroAccumulation accumulation, int64_t micro_batches, bool exact) {
  if (sharding != Sharding::kGradients) return false;
  return micro_batches == 1 || (accumulation == ZeroAccumulation::kReduce && !exact);
}

std::string ZeroAccumulationName(ZeroAccumulation accumulation) {
  return accumulation == ZeroAccumulation::kReduce ? "reduce" : "keep";
}

ZeroAccumulation ParseZeroAccumulation(const std::string& text, const std::string& flag) {
  for (const ZeroAccumulation known : {ZeroAccumulation::kReduce, ZeroAccumulation::kKeep}) {
    if (ZeroAccumulationName(known) == text) return known;
  }
  throw Error(ErrorCode::kUsage, flag, "unknown '" + text + "'", "", "use reduce or keep");
}

}  // namespace trainwright

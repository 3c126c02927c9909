#include "lib/spec/sharding.h"

#include "lib/base/error.h"

namespace trainwright {

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

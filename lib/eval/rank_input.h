/// What several ranks that evaluate or generate together must have in common.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/model/open_model.h"
#include "lib/nn/precision.h"

namespace trainwright {

using RankFacts = std::map<std::string, std::string>;  ///< as RequireEqual takes them

/// The hashes of the weights, and the precision.
RankFacts FactsOf(const Checkpoint& checkpoint, Precision precision);

/// \param flag, path an input that each rank reads whole
/// \throws Error{kUsage} where there are several ranks and it can be read once only: standard input, a pipe
void RefuseSharedPipe(int64_t ranks, const std::string& flag, const std::string& path);

}  // namespace trainwright

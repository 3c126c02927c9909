/// What several ranks that evaluate or generate together must have in common.
#pragma once

#include <cstdint>
#include <string>

#include "lib/dist/facts.h"
#include "lib/model/open_model.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// The hashes of the weights, and the precision.
Facts FactsOf(const Checkpoint& checkpoint, Precision precision);

/// \param flag, path an input that each rank reads whole
/// \throws Error{kUsage} where there are several ranks and it can be read once only: standard input, a pipe
void RefuseSharedPipe(int64_t ranks, const std::string& flag, const std::string& path);

}  // namespace trainwright

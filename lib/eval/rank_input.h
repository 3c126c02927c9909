/// What several ranks that evaluate or generate together must have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/dist/facts.h"
#include "lib/model/open_model.h"
#include "lib/nn/precision.h"
#include "lib/report/option_value.h"

namespace trainwright {

/// The hashes of the weights, and the precision.
Facts FactsOf(const Checkpoint& checkpoint, Precision precision);

/// The values of options by their flags; a hash of what is long.
/// \param keys of those that shape the result
Facts FactsOfOptions(const std::vector<OptionValue>& options, const std::vector<std::string>& keys);

/// Of a path that machines may write otherwise: whether it is given.
std::string FactOfPath(const std::string& path);

/// \param flag, path an input that each rank reads whole
/// \throws Error{kUsage} where there are several ranks and it can be read once only: standard input, a pipe
void RefuseSharedPipe(int64_t ranks, const std::string& flag, const std::string& path);

}  // namespace trainwright

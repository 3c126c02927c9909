/// What must be the same in all ranks of a world, by a name that messages use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {

using Facts = std::map<std::string, std::string>;

std::string EncodeFacts(const Facts& facts);
Facts DecodeFacts(const std::string& encoded);

/// What is said to a rank that has other facts than rank 0.
struct FactsRule {
  ErrorCode code = ErrorCode::kUsage;
  std::string hint = "start all ranks with the same program, options and data";
};

/// \param facts of all ranks; those of rank 0 are right
/// \param self the rank that checks
/// \throws Error{rule.code} where this rank has other facts than rank 0, naming the first and both values;
///     Error{kIo} in the others, naming the first rank that has
void CheckFacts(const std::vector<Facts>& facts, int64_t self, const FactsRule& rule = {});

}  // namespace trainwright

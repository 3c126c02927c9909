/// The pooling of the first token, which is of no use where that sees nothing but itself. Free of torch.
#pragma once

#include <string>

#include "lib/spec/family.h"

namespace trainwright {

/// What is wrong with it under attention by a code of GRIT's (cccc, bb), as words that follow the pooling's
/// name; empty: nothing.
std::string ProblemOfFirstToken(const FamilyDescription& family, const std::string& code);

}  // namespace trainwright

/// What ended a world of ranks, in the words that all of them use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/launch/rank_place.h"

namespace trainwright {

struct Fault {
  int64_t rank = -1;  ///< at fault; -1 where it is another party or several
  std::string who;    ///< "rank 3"
  std::string what;   ///< "ended with status 6: the loss is not finite"
  std::string hint;   ///< may be empty
};

/// "rank 3".
std::string RankName(int64_t rank);
/// "rank 3", "ranks 2 and 3", "ranks 2, 3, 4 and 12 more".
std::string RankNames(const std::vector<int64_t>& ranks);

/// "the store at node1:29500".
std::string StoreName(const RankPlace& place);
/// That of the process that serves the store: rank 0, or the launcher's.
Fault FaultOfStore(const RankPlace& place, const std::string& what);
/// That of one that could not be reached in time.
Fault DidNotCome(const RankPlace& place, double timeout_s, const std::string& problem);

/// One value of a store, and back; what a rank of another version wrote comes back as text of nobody's.
std::string EncodeFault(const Fault& fault);
Fault DecodeFault(const std::string& encoded);

/// Error{kIo} as the rank `self` reports it.
Error ErrorOf(const Fault& fault, int64_t self);

}  // namespace trainwright

/// Several shard sets as one, for a mixture: their chunks are numbered on from set to set.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/formats/shard_set.h"

namespace trainwright {

/// One of the sets and what it is called in messages.
struct NamedShardSet {
  std::string name;
  std::unique_ptr<ShardSet> set;
};

/// A single set comes back as it is.
/// \throws Error{kBadInput} naming the first set whose tokenizer, records or chunk length are not those of
///     sets[0]
std::unique_ptr<ShardSet> JoinShardSets(std::vector<NamedShardSet> sets);

}  // namespace trainwright

/// What sets of shards are called in messages.
#pragma once

#include <span>
#include <string>

#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"

namespace trainwright {

/// The names of sets, with commas; "shards" when they have none.
/// \param sets of an order; empty: all of `set`
std::string NamesOfSets(const ShardSet& set, std::span<const OrderedSet> sets);

}  // namespace trainwright

/// Several shard sets as one, for a mixture: their chunks are numbered on from set to set.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"

namespace trainwright {

/// One of the sets and what it is called in messages.
struct NamedShardSet {
  std::string name;
  std::unique_ptr<ShardSet> set;
};

/// Whether sets of unlike records, or with chunks of unlike lengths, may be joined.
enum class UnlikeSets { kRefused, kTaken };

/// A single set stays as it is, but for the name of its part. Of unlike sets the header's record_kind is that
/// of the first and its chunk_tokens the largest; parts() gives those of each, by the names given here. Of
/// several, provenance is a list of that of each.
/// \throws Error{kBadInput} naming the first set whose tokenizer is not that of sets[0] or, where they are
///     refused, whose records or chunk length are not
std::unique_ptr<ShardSet> JoinShardSets(std::vector<NamedShardSet> sets,
                                        UnlikeSets unlike = UnlikeSets::kRefused);

/// Refuses a joined set as JoinShardSets refuses unlike sets.
void RequireAlikeParts(const ShardSet& set);

/// The parts of a set, as many chunks of each as it has: every chunk comes once an epoch.
std::vector<OrderedSet> OrderedSetsOf(const ShardSet& set);

}  // namespace trainwright

/// The indexes of samples that a run has made: who opens its data again need not read all of it once more to
/// count them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "lib/loading/sample_index.h"

namespace trainwright {

/// Not thread-safe.
class SampleIndexes {
 public:
  /// As SampleIndex::Count, which it calls for what was not counted before.
  /// \param choice what the numbers depend on besides the cutter's identity; may be empty
  std::shared_ptr<const SampleIndex> Get(const ShardSet& set, const SampleCutter& cutter,
                                         std::span<const OrderedSet> sets, bool skip_bad,
                                         const std::string& choice);

 private:
  std::map<std::string, std::shared_ptr<const SampleIndex>> by_identity_;
};

}  // namespace trainwright

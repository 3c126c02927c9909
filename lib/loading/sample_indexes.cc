#include "lib/loading/sample_indexes.h"

#include "lib/base/checksum.h"

namespace trainwright {

std::shared_ptr<const SampleIndex> SampleIndexes::Get(const ShardSet& set, const SampleCutter& cutter,
                                                      std::span<const OrderedSet> sets, bool skip_bad,
                                                      const std::string& choice) {
  std::string identity = HexEncode(set.content_sha256()) + "\n" + cutter.Identity() + "sequence_tokens " +
                         std::to_string(cutter.sequence_tokens()) + (skip_bad ? "\nskips bad\n" : "\n") +
                         choice + "\n";
  for (const OrderedSet& part : sets) {
    identity += std::to_string(part.number) + " " + std::to_string(part.first_chunk) + " " +
                std::to_string(part.chunks) + "\n";
  }
  std::shared_ptr<const SampleIndex>& index = by_identity_[identity];
  if (index == nullptr) index = SampleIndex::Count(set, cutter, sets, skip_bad);
  return index;
}

}  // namespace trainwright

/// The most samples that a run takes of each of its sets.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/formats/shard_set.h"

namespace trainwright {

/// What a set is called there: the last part of its path.
std::string BaseNameOf(const std::string& path);

/// Reads a JSON object of whole numbers by names of sets.
/// \throws Error{kBadInput, kIo}
std::map<std::string, uint64_t> ReadSampleCaps(const std::string& path);

/// The lower of `most` and of what a file says, of each part; 0: all.
/// \param path of that file, as ReadSampleCaps takes it; empty: none
/// \throws as ReadSampleCaps; Error{kUsage} on a part that the file does not name, or gives no sample, and on
///     parts of one name
std::vector<uint64_t> SampleCapsOf(std::span<const ShardSetPart> parts, uint64_t most,
                                   const std::string& path);

}  // namespace trainwright

/// A copy of a shard set on a disk that is faster than the one it comes from: train --cache-dir.
#pragma once

#include <memory>
#include <string>

#include "lib/formats/shard_set.h"

namespace trainwright {

/// Opens the set's copy in a folder, and makes it first where there is none: one file,
/// trainwright-<16 hex digits of the content hash>.tws, which appears whole or not at all and stays for later
/// runs; a copy that is cut or holds something else is made again. When one is made, others may go
/// (copy_retirement.h). Of several processes that want it, one copies and the others wait.
/// \param path a sealed folder or a file of shards; on the file system of `folder` it is opened as it is
/// \param folder is made where it is missing
/// \param copies_always also on one file system, as tests do
/// \throws Error{kBadInput} on a set that cannot be read; Error{kIo},
///     also when `folder` has no room; Error{kInterrupted, kTerminated} once a stop signal arrived
std::unique_ptr<ShardSet> OpenCachedShardSet(const std::string& path, const std::string& folder,
                                             bool copies_always = false);

}  // namespace trainwright

/// A shard set that arrives through a pipe, made fit for random access.
#pragma once

#include <memory>
#include <string>

#include "lib/formats/shard_set.h"
#include "lib/io/byte_source.h"

namespace trainwright {

/// Copies a stream of shards into an unnamed temporary file, checking it on the way in constant memory, and
/// opens that file. It has no name, so it is gone when the set is destroyed or the process dies, whatever the
/// cause.
/// \param folder where the file's blocks live; a file system with room for the whole stream
/// \throws Error{kBadInput} on a cut or corrupt stream, Error{kIo} when the folder has no room
/// \param stall_warning_s after this long without a byte, and each doubling, a warning says where the stream
///     is
std::unique_ptr<ShardSet> SpoolShardSet(std::unique_ptr<ByteSource> source, const std::string& folder,
                                        double stall_warning_s = 10);

}  // namespace trainwright

/// Where the shards of a set go: a folder, a file, or standard output.
#pragma once

#include <memory>
#include <string>

#include "lib/formats/shard.h"
#include "lib/io/byte_sink.h"

namespace trainwright {

/// Readers see nothing of a file or a folder's new set before Seal, and nothing at all without it. Not
/// thread-safe.
class ShardOutput {
 public:
  virtual ~ShardOutput() = default;
  /// What is written next goes after the sealed set of the folder.
  /// \param provenance_json of what is to come
  virtual void ContinueSealedSet(const std::string& provenance_json);
  /// The sink of the next shard; one is open at a time.
  virtual ByteSink* OpenShard() = 0;
  /// \param finished the writer that filled the open shard
  virtual void CommitShard(const ShardWriter& finished) = 0;
  /// Called once, last.
  /// \throws Error{kIo}
  virtual void Seal(const ShardSetHeader& header) = 0;
};

/// \param path a folder (ends in '/', or exists), a file, or "-" for standard output
/// \param allow_terminal whether standard output may be one
/// \throws Error{kUsage} when a folder is in use, or standard output is a terminal; Error{kBadInput, kIo}
std::unique_ptr<ShardOutput> OpenShardOutput(const std::string& path, bool allow_terminal);

}  // namespace trainwright

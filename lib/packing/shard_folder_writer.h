/// Writes a set of shards into a folder so that readers see the former set or the new one, never a mixture,
/// whatever happens at whatever moment.
///
/// A shard is written under a temporary name and takes its final name when complete; shards of two sets never
/// share a name unless they are equal byte for byte (the name holds a hash of the bytes). MANIFEST.json,
/// written last, turns the readers over to the new set; only then the former set's shards go. A journal in
/// the folder (".pack-journal") names every shard before it appears and every shard before it goes, so that
/// the next writer can clean up after a killed one without touching a file that is not ours: what the journal
/// names and the manifest does not, is deleted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/formats/shard_set.h"
#include "lib/io/byte_sink.h"
#include "lib/io/folder_lock.h"

namespace trainwright {

/// Not thread-safe. Holds the folder's lock: a second writer, in this process or another, is refused.
class ShardFolderWriter {
 public:
  /// Creates the folder if need be, locks it and cleans up after a killed writer (and says so).
  /// \throws Error{kUsage} when the folder is in use, Error{kBadInput} when its MANIFEST.json is not one of
  /// ours,
  ///         Error{kIo}
  explicit ShardFolderWriter(const std::string& folder);
  /// Unless sealed: deletes the shards written so far, and leaves a former set as it was. Where the seal
  /// failed once its manifest was in place, what that names stays.
  ~ShardFolderWriter();

  /// What is written next goes after the folder's sealed set, which is not empty: its shards stay, the last
  /// one as a copy that no longer says that it is the last. Called before the first OpenShard.
  /// \param provenance_json of the shards to come
  /// \throws Error{kBadInput} when the last shard is damaged
  void ContinueSealedSet(const std::string& provenance_json);

  /// The sink of the next shard; one is open at a time.
  ByteSink* OpenShard();
  /// Gives the open shard its final name. `finished` is the writer that filled it.
  void CommitShard(const ShardWriter& finished);
  /// Writes the manifest, then deletes the former set's shards. Called once, last.
  void Seal(const ShardSetHeader& header);

 private:
  class HashingFile;

  std::string PathOf(const std::string& file_name) const { return folder_ + "/" + file_name; }
  void AppendToJournal(const std::vector<std::string>& file_names);
  /// Deletes what the journal names and `keep`, the manifest in place, does not, then the journal.
  /// \returns the number of shards deleted
  int ReplayJournal(const std::vector<ManifestEntry>& keep);
  /// Sets sealed_; a folder without a manifest leaves it as it is.
  void ReadManifest();
  void CommitEntry(ManifestEntry entry);

  std::string folder_;
  std::unique_ptr<FolderLock> lock_;
  std::vector<ManifestEntry> sealed_;  // what the folder's manifest names
  std::vector<ManifestEntry> written_;
  std::string provenance_json_;  // of shards that are appended
  std::unique_ptr<HashingFile> open_;
};

}  // namespace trainwright

/// Writes a folder of token streams, one after the other, so that a run that was ended at any moment goes on
/// where it was.
///
/// A stream appears whole, by a rename, and a line of the journal (kStreamJournalName) then says how to know
/// it again. The journal's first line names every stream before it appears; MANIFEST.json, written last,
/// seals the set; then the files that only the journal or a former manifest names are deleted, and no other.
/// Streams of one key hold the same bytes, whatever their number: a former one is linked to the name it has
/// now.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/formats/token_stream_set.h"
#include "lib/io/folder_lock.h"

namespace trainwright {

/// Not thread-safe. Holds the folder's lock: a second writer, in this process or another, is refused.
class TokenStreamFolderWriter {
 public:
  /// Creates the folder if need be, locks it and removes the temporaries of a killed writer.
  /// \throws Error{kUsage} when the folder is in use, Error{kBadInput} when it holds another kind of set,
  /// Error{kIo}
  explicit TokenStreamFolderWriter(const std::string& folder);

  /// What manifest and journal name: streams of former runs, whole or not, the oldest first.
  std::vector<StreamEntry> former() const;
  /// Says which streams the set should have, and takes over those that are there and whole. Called once,
  /// first.
  /// \throws Error{kIo, kInterrupted, kTerminated}
  void Plan(const std::vector<std::string>& keys);
  /// The stream that was taken over or added, else none.
  const std::optional<StreamEntry>& entry(size_t number) const { return entries_[number]; }
  /// Where the stream is to be written, whole or not at all.
  std::string PathOf(size_t number) const;
  /// What is at PathOf(number) is this stream.
  /// \throws Error{kIo}
  void Add(size_t number, const std::string& source, const nlohmann::json& counts);
  /// Once every stream is there: writes the manifest and deletes what it does not name.
  /// \throws Error{kIo}
  void Seal();

 private:
  std::string Inside(const std::string& file_name) const { return folder_ + "/" + file_name; }
  void ReadManifest();
  void ReadJournal();
  void WriteJournal(const std::vector<StreamEntry>& candidates);
  void TakeOver(size_t number, const StreamEntry& candidate);

  std::string folder_;
  std::unique_ptr<FolderLock> lock_;
  std::vector<StreamEntry> sealed_;    // what the manifest names
  std::vector<StreamEntry> finished_;  // what the journal of an ended run names
  std::set<std::string> files_;        // every file that manifest and journals name
  bool has_journal_ = false;
  std::vector<std::string> keys_;
  std::vector<std::optional<StreamEntry>> entries_;
};

}  // namespace trainwright

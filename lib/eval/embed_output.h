/// Where vectors go, and how a stopped run continues.
///
/// A file NAME is ".NAME.partial" until it is whole, its ids likewise, and ".NAME.embed-journal" says from
/// time to time how far both are; a reader sees none of them as NAME. Where NAME is a symbolic link, the file
/// that it leads to is meant. Standard output, pipes and devices have
/// no journal.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "lib/io/byte_sink.h"
#include "lib/io/resumable_file.h"
#include "lib/retrieval/vector_writer.h"

namespace trainwright {

/// How far a run is.
struct EmbedPosition {
  uint64_t texts = 0;
  std::string input_sha256;  ///< of the input so far, as EmbedInput::consumed_sha256
};

struct EmbedOutputOptions {
  std::string path;  ///< "-" is standard output
  VectorFileInfo info;
  bool has_ids = false;       ///< whether texts have names
  std::string making_sha256;  ///< of all that shapes the vectors, in hexadecimal: a resumed run has the same
  bool resume = false;
  bool force_terminal = false;
};

/// Not thread-safe.
class EmbedOutput {
 public:
  /// Without `resume`, or where there is no journal, it begins again.
  /// \throws Error{kUsage} when another process writes the file, on a run that was made otherwise, on
  ///     `resume` of what is no file; Error{kBadInput} on a damaged journal; Error{kIo}
  explicit EmbedOutput(EmbedOutputOptions options);
  /// Without a Commit() files stay where a journal says how far they are, and are removed where none does.
  ~EmbedOutput();
  EmbedOutput(const EmbedOutput&) = delete;
  EmbedOutput& operator=(const EmbedOutput&) = delete;

  /// Where a run goes on; 0 texts: at the beginning.
  const EmbedPosition& start() const { return start_; }

  /// \param ids as VectorWriter::Add; of files each is one line
  /// \throws Error{kBadInput} on an id that is none; as VectorWriter::Add
  void Add(std::span<const float> values, std::span<const std::string> ids);
  /// Has the disk keep what was added, and the journal say so, once 10 s have passed since it last did, or
  /// `now`.
  /// \param position after what was added
  void Save(const EmbedPosition& position, bool now);
  bool resumable() const { return file_ != nullptr; }
  /// Makes the file visible, and removes the journal. Where names have a file of their own, an older file
  /// is removed before the names appear and the new one appears after them: at no time do names lie beside
  /// vectors of other texts. A run that is killed in between is continued as any other.
  /// \param end of the input, after what was added
  void Commit(const EmbedPosition& end);

 private:
  /// Whether names go into a file of their own.
  bool HasIdsFile() const;
  /// nullopt: there is none, or not the file that it is about.
  std::optional<nlohmann::json> ReadJournal() const;
  void OpenFiles(const nlohmann::json* journal);
  /// Of a run that was killed when its names had appeared, and its vectors had not.
  void TakeBackIds() const;
  /// Removes older vectors where they, or the new ones, have a file of names, and then that.
  void RemoveOtherPair();
  std::string JournalPath() const;

  EmbedOutputOptions options_;
  EmbedPosition start_;
  ResumableFileSink* file_ = nullptr;      // what sink_ is, where it is a file
  OverwritableSink* beginning_ = nullptr;  // what sink_ is, where the format has a beginning
  std::unique_ptr<ByteSink> sink_;
  std::unique_ptr<ResumableFileSink> ids_;
  std::unique_ptr<VectorWriter> writer_;
  std::chrono::steady_clock::time_point saved_;
  bool has_journal_ = false;
  bool is_committed_ = false;
};

}  // namespace trainwright

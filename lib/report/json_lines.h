/// JSON Lines for metrics: one object a line, each line one write(2), so that a reader that follows the file
/// and a process that is killed never see or leave half a line between others; nor does a full disk, which
/// cuts a write short: what was written of the line is cut off again.
///
/// Doubles are written with the fewest digits that read back to the same value; NaN and infinities become
/// null; bytes that are not UTF-8 are replaced. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

namespace trainwright {

class JsonLinesWriter {
 public:
  /// Opens `path` for appending, and first cuts off a last line without its end, which a killed writer may
  /// leave.
  /// \throws Error{kIo}
  explicit JsonLinesWriter(const std::string& path);
  ~JsonLinesWriter();
  JsonLinesWriter(const JsonLinesWriter&) = delete;
  JsonLinesWriter& operator=(const JsonLinesWriter&) = delete;

  /// Appends one line; it survives the death of this process, not of the machine.
  /// \throws Error{kIo}; what was written of the line is then cut off, at the latest before the next one
  void Write(const nlohmann::ordered_json& object);
  /// Makes the lines so far survive a power loss.
  /// \throws Error{kIo}
  void Sync();
  const std::string& path() const { return path_; }
  /// How many bytes of a torn last line were cut off on opening.
  uint64_t repaired_bytes() const { return repaired_bytes_; }

 private:
  /// Cuts off what a write that failed left of its line.
  /// \returns whether nothing of it is left; else errno says why
  bool CutTornLine();

  std::string path_;
  int fd_ = -1;
  uint64_t repaired_bytes_ = 0;
  std::mutex mutex_;
  size_t torn_bytes_ = 0;  // at the end of the file, of a line that is not complete
};

}  // namespace trainwright

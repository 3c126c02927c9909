/// The records of one input, one after the other, for readers that have no need of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/documents/document_reader.h"

namespace trainwright {

/// Where a line is.
struct JsonPlace {
  std::string file, line;
  Error Bad(const std::string& problem, const std::string& hint = "") const {
    return Error(ErrorCode::kBadInput, file, problem, line, hint);
  }
};

/// gzip and zstd content is decompressed; memory holds one batch of DocumentReader. Not thread-safe.
class RecordReader {
 public:
  /// \param path "-" is standard input
  /// \throws Error{kUsage} as DocumentReader
  RecordReader(const std::string& path, InputFormat format);

  /// The next record, as RawRecord gives it: blank ones, too. Valid until the next call.
  /// \returns nullopt after the last
  /// \throws Error{kBadInput} on a record of 1 GiB and when the file was written to since reading it began;
  ///     Error{kIo}; Error{kInterrupted, kTerminated} after a stop signal
  std::optional<std::string_view> Next();
  /// The same without records of nothing but white space.
  std::optional<std::string_view> NextFilled();
  /// Of the last record.
  const JsonPlace& place() const { return place_; }

  /// As in DocumentReader.
  void HashStoredBytes() { documents_.HashStoredBytes(); }
  std::string stored_sha256() const { return documents_.stored_sha256(); }
  uint64_t stored_bytes_read() const { return documents_.stored_bytes_read(); }
  uint64_t stored_bytes_total() const { return documents_.stored_bytes_total(); }

 private:
  DocumentReader documents_;
  RecordBatch batch_;
  size_t next_ = 0;  // record of the batch
  JsonPlace place_;
};

}  // namespace trainwright

/// Text columns of a parquet file, row by row, through the plugin libtrainwright_parquet.so.
///
/// The plugin is optional and is loaded when the first file is opened: $TRAINWRIGHT_PARQUET_PLUGIN, or beside
/// the program, or in ../libexec/trainwright. A file is read forward, one row group after the other; memory
/// holds a page of each column, with its dictionary, and one batch of rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/io/file_state.h"
#include "lib/io/parquet_plugin.h"

namespace trainwright {

struct ParquetRows {
  size_t count = 0;
  std::span<const ParquetCell> cells;  ///< row after row, a cell for each column
};

/// Not thread-safe.
class ParquetFile {
 public:
  /// \param columns names, or paths through structs as "message.content". One that is missing or holds no
  /// text is no
  ///   error here: see column()
  /// \throws Error{kUsage} without the plugin, and for what is no regular file; Error{kBadInput} for what is
  /// no whole
  ///   parquet file; Error{kIo}
  ParquetFile(std::string path, const std::vector<std::string>& columns);
  ~ParquetFile();
  /// Finds out early whether files can be read at all.
  /// \param path for the message
  /// \throws Error{kUsage}
  static void RequirePlugin(const std::string& path);
  ParquetFile(const ParquetFile&) = delete;
  ParquetFile& operator=(const ParquetFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return state_.size_bytes; }
  uint64_t rows() const;
  const ParquetColumn& column(size_t index) const;
  /// All columns of the file, for people: "id, text".
  std::string column_names() const;
  /// Continues with this row, counted from 0; after the last one nothing follows.
  /// \throws Error{kBadInput}
  void Seek(uint64_t row);
  /// The next rows, at least one and at most `max_rows` > 0, valid until the next call; fewer where they are
  /// large.
  /// \returns no row at the end
  /// \throws Error{kBadInput}, also when the file was written to since it was opened; Error{kInterrupted,
  ///     kTerminated} after a stop signal
  ParquetRows Next(uint64_t max_rows);

 private:
  void Throw(ParquetStatus status) const;

  std::string path_;
  const FileState state_;  // when it was opened
  const size_t column_count_;
  uint64_t row_ = 0;  // the next one
  const ParquetPlugin* plugin_;
  void* reader_ = nullptr;
};

}  // namespace trainwright

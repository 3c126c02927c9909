/// What lib/io and the plugin libtrainwright_parquet.so, the only part of the suite that knows Arrow, say to
/// each other: plain structs and functions, so that neither needs the other's compiler, library or
/// exceptions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainwright {

inline constexpr uint32_t kParquetPluginInterface = 1;
inline constexpr char kParquetPluginEntry[] = "trainwright_parquet_plugin";

/// What a column path leads to.
enum class ParquetColumnKind : uint8_t { kText, kMissing, kOtherType };

struct ParquetColumn {
  ParquetColumnKind kind;
  const char* type;  ///< of kOtherType, in words
};

/// One value of one column. \invariant data is null where the value is
struct ParquetCell {
  const char* data;
  size_t size_bytes;
};

enum class ParquetStatus : int { kDone = 0, kRows = 1, kCannotOpen = 2, kBroken = 3 };

/// One open file. Everything a function hands out is the plugin's own and lives until the next call with the
/// same reader. A reader is used by one thread at a time. No function throws.
struct ParquetPlugin {
  uint32_t interface;
  const char* trainwright_version;
  /// \param columns paths through structs, as "message.content"; the names are read once
  /// \returns a reader that is to be closed, whether it could be opened (kDone) or not
  void* (*open)(const char* path, const char* const* columns, size_t column_count, ParquetStatus* status);
  uint64_t (*rows)(void* reader);
  const ParquetColumn* (*columns)(void* reader);
  /// The file's columns for people: "id, text".
  const char* (*column_names)(void* reader);
  /// The next call of `next` begins with this row, counted from 0; at most rows().
  ParquetStatus (*seek)(void* reader, uint64_t row);
  /// The next rows, at most `max_rows`, fewer where they are large, none across two row groups.
  /// \param cells row after row, a cell for each column; columns that are no text have null cells
  /// \returns kRows, kDone after the last row, or kBroken
  ParquetStatus (*next)(void* reader, uint64_t max_rows, const ParquetCell** cells, size_t* rows);
  /// What was wrong, in words, after a status other than kDone and kRows.
  const char* (*problem)(void* reader);
  void (*close)(void* reader);
};

using ParquetPluginEntry = const ParquetPlugin* (*)();

}  // namespace trainwright

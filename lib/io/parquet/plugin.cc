// The plugin libtrainwright_parquet.so: lib/io/parquet_plugin.h over Arrow's Parquet library. Columns are
// read page by page through the column readers, without Arrow's tables: a page and its dictionary are what
// memory holds.
#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/types.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/version.h"
#include "lib/io/parquet_plugin.h"

namespace trainwright {
namespace {

constexpr int64_t kBufferBytes = 256 << 10;
constexpr size_t kBatchBytes = 256 << 10;
/// Values looked at together: few, since one value of a dictionary may be long and come often.
constexpr int64_t kStepRows = 32;

struct CannotOpen : std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool IsText(const parquet::ColumnDescriptor& column) {
  if (column.physical_type() != parquet::Type::BYTE_ARRAY || column.max_repetition_level() > 0) return false;
  const auto& logical = column.logical_type();
  return logical == nullptr || logical->is_none() || !logical->is_valid() || logical->is_string() ||
         logical->is_JSON() || logical->is_enum();
}

std::string TypeName(const parquet::ColumnDescriptor& column) {
  if (column.max_repetition_level() > 0) return "a list";
  const auto& logical = column.logical_type();
  if (logical != nullptr && logical->is_valid() && !logical->is_none()) {
    return "of type " + logical->ToString();
  }
  return "of type " + parquet::TypeToString(column.physical_type());
}

struct Column {
  int leaf = -1;  // -1: not to be read
  ParquetColumnKind kind = ParquetColumnKind::kMissing;
  std::string type;
  std::shared_ptr<parquet::ByteArrayReader> reader;  // of the current row group
  std::string bytes;                                 // of the current batch
  std::vector<std::pair<size_t, size_t>> ranges;     // in bytes; npos, 0: null
};

class Reader {
 public:
  std::string problem;

  void Open(const std::string& path, const char* const* names, size_t count) {
    auto file = arrow::io::ReadableFile::Open(path, arrow::system_memory_pool());
    if (!file.ok()) throw CannotOpen(file.status().message());
    parquet::ReaderProperties properties(arrow::system_memory_pool());
    properties.enable_buffered_stream();
    properties.set_buffer_size(kBufferBytes);
    properties.set_page_checksum_verification(true);
    file_ = parquet::ParquetFileReader::Open(*file, properties);
    const parquet::FileMetaData& metadata = *file_->metadata();
    for (int group = 0; group < metadata.num_row_groups(); ++group) {
      const int64_t rows = metadata.RowGroup(group)->num_rows();
      if (rows < 0)
        throw std::runtime_error("row group " + std::to_string(group) + " has a negative number of rows");
      rows_ += static_cast<uint64_t>(rows);
    }
    for (size_t i = 0; i < count; ++i) columns_.push_back(Find(names[i]));
    for (const Column& column : columns_) views_.push_back({column.kind, column.type.c_str()});
    const parquet::schema::GroupNode& root = *metadata.schema()->group_node();
    for (int field = 0; field < root.field_count(); ++field) {
      if (!column_names_.empty()) column_names_ += ", ";
      column_names_ += root.field(field)->name();
    }
  }

  uint64_t rows() const { return rows_; }
  const ParquetColumn* columns() const { return views_.data(); }
  const char* column_names() const { return column_names_.c_str(); }

  void Seek(uint64_t row) {
    group_ = -1;
    group_rows_left_ = 0;
    while (row > 0) {
      if (!OpenNextGroup()) return;
      const uint64_t skipped = std::min(row, group_rows_left_);
      row -= skipped;
      group_rows_left_ -= skipped;
      if (group_rows_left_ > 0) Skip(skipped);
    }
  }

  ParquetStatus Next(uint64_t max_rows, const ParquetCell** cells, size_t* rows) {
    while (group_rows_left_ == 0) {
      if (!OpenNextGroup()) return ParquetStatus::kDone;
    }
    for (Column& column : columns_) {
      column.bytes.clear();
      column.ranges.clear();
    }
    const uint64_t wanted = std::min(max_rows, group_rows_left_);
    uint64_t done = 0;
    size_t bytes = 0;
    while (done < wanted && bytes < kBatchBytes) {
      const uint64_t step = std::min<uint64_t>(wanted - done, kStepRows);
      for (Column& column : columns_) {
        if (column.leaf >= 0) bytes += ReadValues(step, &column);
      }
      done += step;
    }
    group_rows_left_ -= done;
    cells_.assign(done * columns_.size(), {nullptr, 0});
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      for (size_t row = 0; row < column.ranges.size(); ++row) {
        const auto [begin, size] = column.ranges[row];
        if (begin != std::string::npos)
          cells_[row * columns_.size() + i] = {column.bytes.data() + begin, size};
      }
    }
    *cells = cells_.data();
    *rows = done;
    return ParquetStatus::kRows;
  }

 private:
  Column Find(const std::string& name) const {
    const parquet::SchemaDescriptor& schema = *file_->metadata()->schema();
    Column found;
    size_t found_depth = SIZE_MAX;
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      const parquet::ColumnDescriptor& column = *schema.Column(leaf);
      const std::string path = column.path()->ToDotString();
      const size_t depth = column.path()->ToDotVector().size();
      if (path == name && depth < found_depth) {  // a column whose own name has the dots wins
        found_depth = depth;
        const bool text = IsText(column);
        found.leaf = text ? leaf : -1;
        found.kind = text ? ParquetColumnKind::kText : ParquetColumnKind::kOtherType;
        found.type = text ? "" : TypeName(column);
      } else if (found.kind == ParquetColumnKind::kMissing && path.starts_with(name + ".")) {
        found.kind = ParquetColumnKind::kOtherType;
        found.type = column.max_repetition_level() > 0 ? "a list" : "a struct";
      }
    }
    return found;
  }

  bool OpenNextGroup() {
    if (group_ + 1 >= file_->metadata()->num_row_groups()) return false;
    ++group_;
    const auto group = file_->RowGroup(group_);
    group_rows_left_ = static_cast<uint64_t>(group->metadata()->num_rows());
    for (Column& column : columns_) {
      column.reader.reset();
      if (column.leaf < 0 || group_rows_left_ == 0) continue;
      column.reader = std::static_pointer_cast<parquet::ByteArrayReader>(group->Column(column.leaf));
    }
    return true;
  }

  [[noreturn]] void ThrowEnded(const Column& column) const {
    throw std::runtime_error("column " +
                             file_->metadata()->schema()->Column(column.leaf)->path()->ToDotString() +
                             " of row group " + std::to_string(group_) + " ends before the group's last row");
  }

  void Skip(uint64_t rows) {
    for (Column& column : columns_) {
      if (column.leaf < 0) continue;
      for (uint64_t left = rows; left > 0;) {
        const int64_t skipped = column.reader->Skip(static_cast<int64_t>(left));
        if (skipped <= 0) ThrowEnded(column);
        left -= static_cast<uint64_t>(skipped);
      }
    }
  }

  /// \returns the values' bytes
  size_t ReadValues(uint64_t rows, Column* column) {
    const int16_t defined = file_->metadata()->schema()->Column(column->leaf)->max_definition_level();
    const size_t bytes_before = column->bytes.size();
    int16_t levels[kStepRows];
    parquet::ByteArray values[kStepRows];
    for (uint64_t left = rows; left > 0;) {
      int64_t value_count = 0;
      const int64_t count =
          column->reader->ReadBatch(static_cast<int64_t>(left), levels, nullptr, values, &value_count);
      if (count <= 0 || value_count > count) ThrowEnded(*column);
      int64_t value = 0;
      for (int64_t i = 0; i < count; ++i) {
        if (defined > 0 && levels[i] < defined) {
          column->ranges.emplace_back(std::string::npos, 0);
          continue;
        }
        if (value == value_count) ThrowEnded(*column);
        const parquet::ByteArray& bytes = values[value++];
        column->ranges.emplace_back(column->bytes.size(), bytes.len);
        column->bytes.append(reinterpret_cast<const char*>(bytes.ptr), bytes.len);
      }
      left -= static_cast<uint64_t>(count);
    }
    return column->bytes.size() - bytes_before;
  }

  std::unique_ptr<parquet::ParquetFileReader> file_;
  std::vector<Column> columns_;
  std::vector<ParquetColumn> views_;
  std::vector<ParquetCell> cells_;
  std::string column_names_;
  uint64_t rows_ = 0, group_rows_left_ = 0;
  int group_ = -1;
};

Reader& AsReader(void* reader) {
  return *static_cast<Reader*>(reader);
}

/// Runs `use`, and keeps in the reader what it throws.
template <typename Use>
ParquetStatus Guarded(Reader& reader, const Use& use) {
  try {
    return use();
  } catch (const CannotOpen& error) {
    reader.problem = error.what();
    return ParquetStatus::kCannotOpen;
  } catch (const std::exception& error) {
    reader.problem = error.what();
  } catch (...) {
    reader.problem = "unknown exception";
  }
  return ParquetStatus::kBroken;
}

constexpr ParquetPlugin kPlugin = {
    .interface = kParquetPluginInterface,
    .trainwright_version = TRAINWRIGHT_VERSION,
    .open = [](const char* path, const char* const* columns, size_t column_count,
               ParquetStatus* status) -> void* {
      auto* reader = new Reader;
      *status = Guarded(*reader, [&] {
        reader->Open(path, columns, column_count);
        return ParquetStatus::kDone;
      });
      return reader;
    },
    .rows = [](void* reader) { return AsReader(reader).rows(); },
    .columns = [](void* reader) { return AsReader(reader).columns(); },
    .column_names = [](void* reader) { return AsReader(reader).column_names(); },
    .seek =
        [](void* reader, uint64_t row) {
          return Guarded(AsReader(reader), [&] {
            AsReader(reader).Seek(row);
            return ParquetStatus::kDone;
          });
        },
    .next =
        [](void* reader, uint64_t max_rows, const ParquetCell** cells, size_t* rows) {
          return Guarded(AsReader(reader), [&] { return AsReader(reader).Next(max_rows, cells, rows); });
        },
    .problem = [](void* reader) { return AsReader(reader).problem.c_str(); },
    .close = [](void* reader) { delete static_cast<Reader*>(reader); },
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const ParquetPlugin* trainwright_parquet_plugin() {
  return &kPlugin;
}

}  // namespace trainwright

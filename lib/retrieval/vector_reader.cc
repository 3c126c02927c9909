#include "lib/retrieval/vector_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "lib/base/error.h"
#include "lib/documents/byte_order_mark.h"
#include "lib/documents/json_objects.h"
#include "lib/documents/record_reader.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/json_text.h"
#include "lib/io/file_checksum.h"
#include "lib/io/random_reader.h"
#include "lib/retrieval/corpus.h"
#include "lib/retrieval/vector_layout.h"
#include "lib/retrieval/vector_writer.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr char kFloatHint[] =
    "save it as little-endian float32 [n, d] in C order: numpy.save(f, x.astype('<f4'))";

/// Where the names of a file's rows are: beside it, or beside what it links to; empty: nowhere.
std::string IdsFileOf(const std::string& path) {
  std::error_code none;
  const std::filesystem::path target = std::filesystem::canonical(path, none);
  for (const std::string& file : {path, none ? path : target.string()}) {
    if (std::filesystem::exists(IdsPathOf(file))) return IdsPathOf(file);
  }
  return "";
}

/// Where the rows of a .npy or raw file lie.
struct RowsInFile {
  uint64_t offset_bytes = 0;
  uint64_t rows = 0;
  uint32_t columns = 0;
};

/// What stands behind "'<key>':" in the header of a .npy file, up to what ends it.
std::string_view NpyField(std::string_view header, const std::string& key, std::string_view ends) {
  const std::string quoted = "'" + key + "':";
  const size_t found = header.find(quoted);
  if (found == std::string_view::npos) return {};
  header.remove_prefix(found + quoted.size());
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header.substr(0, header.find_first_of(ends));
}

/// The whole number that a text begins with, which is cut off together with blanks and a comma behind it.
std::optional<uint64_t> TakeNumber(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(' '), text->size()));
  uint64_t number = 0;
  const auto [end, status] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (status != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  text->remove_prefix(std::min(text->find_first_not_of(" ,L"), text->size()));
  return number;
}

RowsInFile NpyRows(const RandomReader& reader) {
  constexpr uint64_t kMostHeaderBytes = 1 << 16;
  const std::string& name = reader.name();
  const auto beginning = reader.ReadAt(0, std::min<uint64_t>(12, reader.size_bytes()));
  if (beginning.size() < 12) throw CutShortAt(beginning.size(), name, ".npy file");
  ByteParser parser(beginning);
  parser.ReadBytes(kNpyMagic.size());
  const auto major = parser.Read<uint8_t>();
  parser.Read<uint8_t>();
  if (major != 1 && major != 2) throw BadInputAt(6, name, "is .npy of version " + std::to_string(major));
  const uint64_t header_bytes = major == 1 ? parser.Read<uint16_t>() : parser.Read<uint32_t>();
  const uint64_t header_begin = major == 1 ? 10 : 12;
  if (header_bytes > kMostHeaderBytes) throw BadInputAt(8, name, "has a header of more than 64 KiB");
  const auto bytes = reader.ReadAt(header_begin, header_bytes);
  const std::string_view header = AsText(bytes);
  const std::string_view type = NpyField(header, "descr", ",}");
  if (type != "'<f4'" && type != "'=f4'") {
    throw BadInputAt(header_begin, name, "holds numbers of type " + Quoted(type) + ", not float32",
                     kFloatHint);
  }
  if (NpyField(header, "fortran_order", ",}") != "False") {
    throw BadInputAt(header_begin, name, "has its columns together, not its rows", kFloatHint);
  }
  std::string_view shape = NpyField(header, "shape", ")}");
  const bool is_tuple = shape.starts_with('(');
  if (is_tuple) shape.remove_prefix(1);
  const std::optional<uint64_t> rows = TakeNumber(&shape), columns = TakeNumber(&shape);
  if (!is_tuple || !rows || !columns || !shape.empty() || *columns > std::numeric_limits<uint32_t>::max()) {
    throw BadInputAt(header_begin, name, "has not two dimensions", kFloatHint);
  }
  return {header_begin + header_bytes, *rows, static_cast<uint32_t>(*columns)};
}

RowsInFile RawRows(const RandomReader& reader) {
  const auto beginning = reader.ReadAt(0, std::min<uint64_t>(kRawBeginningBytes, reader.size_bytes()));
  if (beginning.size() < kRawBeginningBytes)
    throw CutShortAt(beginning.size(), reader.name(), "file of vectors");
  ByteParser parser(beginning);
  parser.ReadBytes(kRawMagic.size());
  const auto rows = parser.Read<uint64_t>();
  const auto columns = parser.Read<uint32_t>();
  if ((parser.Read<uint32_t>() & ~kRawNormalized) != 0) {
    throw BadInputAt(20, reader.name(), "has flags that this version does not know", "update trainwright");
  }
  return {kRawBeginningBytes, rows, columns};
}

/// \throws Error{kBadInput} where the file is not as long as its rows make it
void CheckSize(const RandomReader& reader, const RowsInFile& rows) {
  const std::string& name = reader.name();
  if (rows.rows == 0 || rows.columns == 0) throw Error(ErrorCode::kBadInput, name, "holds no vector");
  const uint64_t row_bytes = uint64_t{rows.columns} * sizeof(float);
  const uint64_t size_bytes = reader.size_bytes();
  const uint64_t content_bytes = size_bytes - std::min(size_bytes, rows.offset_bytes);
  if (content_bytes / row_bytes < rows.rows) throw CutShortAt(size_bytes, name, "file of vectors");
  if (content_bytes != rows.rows * row_bytes) {
    throw BadInputAt(rows.offset_bytes + rows.rows * row_bytes, name, "goes on after its last vector");
  }
}

/// Of rows from number `first` on.
void RefuseNotFinite(std::span<const float> values, uint32_t columns, uint64_t first,
                     const std::string& name) {
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (bad == values.end()) return;
  const uint64_t row = first + static_cast<uint64_t>(bad - values.begin()) / columns;
  throw Error(ErrorCode::kBadInput, name, "has a number that is not finite", "vector " + std::to_string(row));
}

class BinaryVectors final : public VectorReader {
 public:
  BinaryVectors(std::unique_ptr<RandomReader> reader, const RowsInFile& rows)
      : reader_(std::move(reader)), rows_(rows) {
    CheckSize(*reader_, rows_);
    const std::string path = IdsFileOf(reader_->name());
    if (path.empty()) return;
    ForEachTextLine(path, [&](std::string_view line, const JsonPlace&) {
      if (line.ends_with('\r')) line.remove_suffix(1);
      ids_.emplace_back(line);
    });
    if (ids_.size() == rows_.rows) return;
    throw Error(ErrorCode::kBadInput, path,
                "has " + std::to_string(ids_.size()) + " ids, and " + reader_->name() + " has " +
                    std::to_string(rows_.rows) + " vectors",
                "", "put the ids of these vectors there, or remove it");
  }
  uint32_t columns() const override { return rows_.columns; }
  bool has_ids() const override { return !ids_.empty(); }

  size_t Read(size_t most_rows, std::vector<float>* values, std::vector<std::string>* ids) override {
    const auto count = static_cast<size_t>(std::min<uint64_t>(most_rows, rows_.rows - next_));
    const size_t row_bytes = size_t{rows_.columns} * sizeof(float);
    values->resize(count * rows_.columns);
    ids->clear();
    if (count == 0) return 0;
    reader_->ReadAt(rows_.offset_bytes + next_ * row_bytes,
                    std::span<uint8_t>(reinterpret_cast<uint8_t*>(values->data()), count * row_bytes));
    RefuseNotFinite(*values, rows_.columns, next_, reader_->name());
    for (uint64_t row = next_; row < next_ + count; ++row) {
      ids->push_back(ids_.empty() ? std::to_string(row) : ids_[row]);
    }
    next_ += count;
    return count;
  }
  std::string Sha256() const override { return Sha256OfFile(reader_->name()); }

 private:
  std::unique_ptr<RandomReader> reader_;
  RowsInFile rows_;
  std::vector<std::string> ids_;  // of the rows, or none
  uint64_t next_ = 0;
};

class JsonlVectors final : public VectorReader {
 public:
  explicit JsonlVectors(const std::string& path) : path_(path), reader_(path, InputFormat::kJsonl) {
    if (!NextRow()) throw Error(ErrorCode::kBadInput, path, "holds no vector");
    columns_ = static_cast<uint32_t>(row_.size());
  }
  uint32_t columns() const override { return columns_; }
  bool has_ids() const override { return has_ids_; }

  size_t Read(size_t most_rows, std::vector<float>* values, std::vector<std::string>* ids) override {
    values->clear();
    ids->clear();
    size_t count = 0;
    while (count < most_rows && !row_.empty()) {
      values->insert(values->end(), row_.begin(), row_.end());
      ids->push_back(id_);
      ++count;
      NextRow();
    }
    return count;
  }
  std::string Sha256() const override { return Sha256OfFile(path_); }

 private:
  /// Reads the next row, or leaves an empty one behind the last.
  bool NextRow() {
    row_.clear();
    const std::optional<std::string_view> line = reader_.NextFilled();
    if (!line) return false;
    const JsonPlace& place = reader_.place();
    const auto object = JsonOf(*line);
    if (!object.is_object()) throw place.Bad("is no JSON object");
    const nlohmann::json& embedding = MemberOf(object, {"embedding"}, place);
    if (!embedding.is_array() || embedding.empty()) throw place.Bad("its embedding is no array of numbers");
    for (const nlohmann::json& number : embedding) {
      if (!number.is_number()) throw place.Bad("its embedding is no array of numbers");
      row_.push_back(static_cast<float>(number.get<double>()));
      if (!std::isfinite(row_.back())) throw place.Bad("its embedding has a number that is not finite");
    }
    if (columns_ != 0 && row_.size() != columns_) {
      throw place.Bad("has " + std::to_string(row_.size()) + " numbers, and the vectors before have " +
                      std::to_string(columns_));
    }
    const bool has_id = object.contains("_id") || object.contains("id");
    id_ = has_id ? IdOf(object, place) : std::to_string(rows_read_);
    if (rows_read_++ == 0) has_ids_ = has_id;
    return true;
  }

  std::string path_;
  RecordReader reader_;
  uint32_t columns_ = 0;
  bool has_ids_ = false;
  std::vector<float> row_;  // the next one; empty behind the last
  std::string id_;          // its name
  uint64_t rows_read_ = 0;
};

}  // namespace

std::unique_ptr<VectorReader> OpenVectors(const std::string& path) {
  auto reader = OpenRandomReader(path);
  const auto start = reader->ReadAt(0, std::min<uint64_t>(kStartBytes, reader->size_bytes()));
  const auto begins_with = [&](ByteSpan magic) {
    return start.size() >= magic.size() && std::equal(magic.begin(), magic.end(), start.begin());
  };
  if (begins_with(kNpyMagic)) {
    const RowsInFile rows = NpyRows(*reader);
    return std::make_unique<BinaryVectors>(std::move(reader), rows);
  }
  if (begins_with(kRawMagic)) {
    const RowsInFile rows = RawRows(*reader);
    return std::make_unique<BinaryVectors>(std::move(reader), rows);
  }
  const std::string_view text = WithoutByteOrderMark(AsText(start));
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (IsCompressed(start) || (first != std::string_view::npos && text[first] == '{')) {
    return std::make_unique<JsonlVectors>(path);
  }
  throw Error(ErrorCode::kBadInput, path, "holds no vectors that this version knows", "",
              "give .npy, raw float32 as embed writes it, or JSON lines with \"embedding\"");
}

std::vector<float> ReadAllVectors(VectorReader* reader, std::vector<std::string>* ids) {
  constexpr size_t kRowsAtOnce = 4096;
  std::vector<float> all, block;
  std::vector<std::string> names;
  while (reader->Read(kRowsAtOnce, &block, &names) > 0) {
    all.insert(all.end(), block.begin(), block.end());
    if (ids != nullptr) ids->insert(ids->end(), names.begin(), names.end());
  }
  return all;
}

}  // namespace trainwright

#include "lib/formats/id_array.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "lib/formats/bad_input.h"
#include "lib/formats/tokenizer_identity.h"

namespace trainwright {
namespace {

constexpr uint32_t kMaxNpyHeaderBytes = 1 << 16;

// The Python dictionary of a .npy header, which has three keys.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : text_(text) {}
  bool Take(std::string_view expected) {
    Skip();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  std::string String() {
    Skip();
    const size_t end =
        at_ < text_.size() && text_[at_] == '\'' ? text_.find('\'', at_ + 1) : std::string::npos;
    if (end == std::string::npos) return "";
    const std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool Number(uint64_t* value) {
    Skip();
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), *value);
    if (error != std::errc()) return false;
    at_ = static_cast<size_t>(end - text_.data());
    return true;
  }

 private:
  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

/// As MemorySource, of bytes that it keeps.
class OwnedBytesSource final : public ByteSource {
 public:
  OwnedBytesSource(std::vector<uint8_t> bytes, std::string name)
      : bytes_(std::move(bytes)), source_(MemorySource(bytes_, std::move(name))) {}
  size_t Read(uint8_t* out, size_t size) override { return source_->Read(out, size); }
  const std::string& name() const override { return source_->name(); }

 private:
  const std::vector<uint8_t> bytes_;
  const std::unique_ptr<ByteSource> source_;
};

/// \param mask a value for each integer, 0 where it is not kept; empty: all are
template <typename Integer>
void Widen(ByteSpan bytes, size_t count, const std::string& name, uint64_t offset,
           const ArrayMeaning& meaning, std::span<const uint32_t> mask, std::vector<uint32_t>* ids) {
  for (size_t i = 0; i < count; ++i) {
    if (!mask.empty() && mask[i] == 0) continue;
    Integer value;
    std::memcpy(&value, bytes.data() + i * sizeof(Integer), sizeof(Integer));
    const auto wide = static_cast<uint64_t>(value);
    if (meaning.may_be_none && wide == static_cast<uint64_t>(kNoLabel)) {
      ids->push_back(kNoId);
      continue;
    }
    if (value < 0 || wide >= kNoId) {
      throw BadInputAt(offset + i * sizeof(Integer), name,
                       "holds " + std::to_string(value) + ", which is no " + meaning.one);
    }
    ids->push_back(static_cast<uint32_t>(wide));
  }
}

/// Reads `count` elements of `width` bytes each.
std::vector<uint8_t> ReadElements(size_t width, size_t count, BufferedReader* reader) {
  std::vector<uint8_t> bytes;
  if (AppendFrom(reader, count * width, &bytes) < count * width) {
    throw CutShortAt(reader->position(), reader->name(), "array");
  }
  return bytes;
}

/// \param mask as of Widen
void ReadIntegers(IntegerType type, size_t count, BufferedReader* reader, const ArrayMeaning& meaning,
                  std::span<const uint32_t> mask, std::vector<uint32_t>* ids) {
  ids->clear();
  const uint64_t offset = reader->position();
  const std::vector<uint8_t> bytes = ReadElements(static_cast<size_t>(type.bytes), count, reader);
  ids->reserve(count);
  switch (type.bytes) {
    case 1:
      return type.is_signed ? Widen<int8_t>(bytes, count, reader->name(), offset, meaning, mask, ids)
                            : Widen<uint8_t>(bytes, count, reader->name(), offset, meaning, mask, ids);
    case 2:
      return type.is_signed ? Widen<int16_t>(bytes, count, reader->name(), offset, meaning, mask, ids)
                            : Widen<uint16_t>(bytes, count, reader->name(), offset, meaning, mask, ids);
    case 4:
      return type.is_signed ? Widen<int32_t>(bytes, count, reader->name(), offset, meaning, mask, ids)
                            : Widen<uint32_t>(bytes, count, reader->name(), offset, meaning, mask, ids);
    default:
      return type.is_signed ? Widen<int64_t>(bytes, count, reader->name(), offset, meaning, mask, ids)
                            : Widen<uint64_t>(bytes, count, reader->name(), offset, meaning, mask, ids);
  }
}

/// The bits of 1 in an array of little-endian floating-point numbers; 0 of one of another type.
uint64_t FloatOneOf(const std::string& type) {
  if (type == "<f2") return 0x3C00;
  if (type == "<f4") return 0x3F800000;
  return type == "<f8" ? 0x3FF0000000000000 : 0;
}

}  // namespace

NpyHeader ReadNpyHeader(BufferedReader* reader, const ArrayMeaning& meaning) {
  const auto refuse = [&](const std::string& why) {
    return BadInputAt(0, reader->name(), std::string("is no array of ") + meaning.many + ": " + why);
  };
  uint8_t head[8];
  if (reader->Read(head, 8) < 8 || std::memcmp(head, "\x93NUMPY", 6) != 0 || head[6] < 1 || head[6] > 3) {
    throw refuse("it is not in NumPy's .npy format, version 1 to 3");
  }
  uint32_t size = 0;
  const size_t size_bytes = head[6] == 1 ? 2 : 4;
  if (reader->Read(reinterpret_cast<uint8_t*>(&size), size_bytes) < size_bytes || size > kMaxNpyHeaderBytes) {
    throw refuse("its header is cut or too long");
  }
  std::string text(size, '\0');
  if (reader->Read(reinterpret_cast<uint8_t*>(text.data()), size) < size) throw refuse("its header is cut");
  NpyHeader header;
  HeaderText parser(text);
  bool good = parser.Take("{");
  bool has_type = false, has_shape = false, has_order = false;
  while (good && !parser.Take("}")) {
    const std::string key = parser.String();
    good = parser.Take(":");
    if (key == "descr") {
      const std::string type = parser.String();
      header.is_truth = type == "|b1";
      header.float_one = meaning.may_be_floats ? FloatOneOf(type) : 0;
      if (header.is_truth || header.float_one != 0) {
        header.type = {type[2] - '0', false};
        has_type = true;
      } else if (type.size() != 3 || (type[0] != '<' && type[0] != '|') ||
                 (type[1] != 'u' && type[1] != 'i') ||
                 std::string("1248").find(type[2]) == std::string::npos ||
                 (type[0] == '|' && type[2] != '1')) {
        throw refuse("its elements are of type " + (type.empty() ? "unknown" : type) +
                     "; little-endian integers are read");
      } else {
        header.type = {type[2] - '0', type[1] == 'i'};
        has_type = true;
      }
    } else if (key == "fortran_order") {
      header.by_columns = parser.Take("True");
      has_order = header.by_columns || parser.Take("False");
      good = has_order;
    } else if (key == "shape") {
      good = parser.Take("(");
      uint64_t product = 1;
      while (good && !parser.Take(")")) {
        uint64_t value = 0;
        if (parser.Take("-")) throw refuse("its shape has a negative size");
        good = parser.Number(&value);
        if (good && value != 0 && product > uint64_t{INT64_MAX} / 8 / value) throw refuse("it is too large");
        if (value != 0) product *= value;
        header.shape.push_back(value);
        parser.Take(",");
      }
      has_shape = good;
    } else {
      good = false;
    }
    parser.Take(",");
  }
  if (!good || !has_type || !has_shape || !has_order) throw refuse("its header is corrupt");
  return header;
}

std::unique_ptr<BufferedReader> ByRows(const NpyHeader& header, std::unique_ptr<BufferedReader> reader) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  if (!header.by_columns || header.shape.size() != 2) return reader;
  const auto width = static_cast<size_t>(header.type.bytes);
  const size_t rows = header.shape[0], columns = header.shape[1], count = rows * columns;
  if (count > kMaxBytes / width) {
    throw BadInputAt(reader->position(), reader->name(), "lies column by column and is larger than 1 GiB",
                     "numpy.ascontiguousarray makes an array that lies row by row");
  }
  std::vector<uint8_t> by_columns;
  if (AppendFrom(reader.get(), count * width, &by_columns) < count * width) {
    throw CutShortAt(reader->position(), reader->name(), "array");
  }
  if (!reader->Peek(1).empty()) {
    throw BadInputAt(reader->position(), reader->name(), "is corrupt: it goes on after its array");
  }
  std::vector<uint8_t> by_rows(by_columns.size());
  for (size_t row = 0; row < rows && count > 0; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      std::memcpy(by_rows.data() + (row * columns + column) * width,
                  by_columns.data() + (column * rows + row) * width, width);
    }
  }
  return std::make_unique<BufferedReader>(
      std::make_unique<OwnedBytesSource>(std::move(by_rows), reader->name() + ", by rows"));
}

void ReadIds(IntegerType type, size_t count, BufferedReader* reader, std::vector<uint32_t>* ids,
             const ArrayMeaning& meaning) {
  ReadIntegers(type, count, reader, meaning, {}, ids);
}

void ReadMask(MaskType type, size_t count, BufferedReader* reader, std::vector<uint32_t>* mask) {
  if (type.float_one == 0) return ReadIds(type.bits, count, reader, mask, kMaskValues);
  mask->clear();
  const uint64_t offset = reader->position();
  const auto width = static_cast<size_t>(type.bits.bytes);
  const std::vector<uint8_t> bytes = ReadElements(width, count, reader);
  const uint64_t sign = uint64_t{1} << (8 * width - 1);  // 0 may have one
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * width, width);
    if (bits != type.float_one && (bits & ~sign) != 0) {
      throw BadInputAt(offset + i * width, reader->name(),
                       "holds a mask of floating-point numbers, one of which is neither 0 nor 1");
    }
    mask->push_back(bits == type.float_one ? 1 : 0);
  }
}

void ReadKeptIds(IntegerType type, std::span<const uint32_t> mask, BufferedReader* reader,
                 std::vector<uint32_t>* ids) {
  ReadIntegers(type, mask.size(), reader, kTokenIds, mask, ids);
}

void ReadKeptLabels(IntegerType type, std::span<const uint32_t> mask, BufferedReader* reader,
                    std::vector<uint32_t>* labels) {
  ReadIntegers(type, mask.size(), reader, kLabelValues, mask, labels);
}

}  // namespace trainwright

#include "lib/documents/input_slice.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/io/parquet_file.h"

namespace trainwright {
namespace {

constexpr size_t kReadBytes = 1 << 18;

/// Counts what is read from the source under a decompressor, and hashes it where that is asked for.
class CountingSource final : public ByteSource {
 public:
  CountingSource(std::unique_ptr<ByteSource> source, uint64_t* count, Sha256* hash)
      : source_(std::move(source)), count_(count), hash_(hash) {}
  size_t Read(uint8_t* out, size_t size) override {
    const size_t done = source_->Read(out, size);
    *count_ += done;
    if (hash_ != nullptr) hash_->Update({out, done});
    return done;
  }
  const std::string& name() const override { return source_->name(); }

 private:
  std::unique_ptr<ByteSource> source_;
  uint64_t* count_;
  Sha256* hash_;
};

/// Passes on the records that begin in a range.
/// \param source stands BytesBefore of the format before the range, or at 0
class RecordRangeSource final : public ByteSource {
 public:
  RecordRangeSource(std::unique_ptr<ByteSource> source, uint64_t begin, uint64_t end, InputFormat format)
      : source_(std::move(source)),
        begin_(begin),
        position_(begin - std::min(begin, BytesBefore(format))),
        end_(end),
        mark_(format == InputFormat::kNul ? '\0' : '\n'),
        blank_lines_(format == InputFormat::kParagraphs),
        skipping_(begin > 0),
        ended_(begin >= end) {}

  size_t Read(uint8_t* out, size_t size) override {
    while (!ended_) {
      const size_t count = source_->Read(out, size);
      if (count == 0) break;
      const size_t before = begin_ > position_ + 1 ? begin_ - 1 - position_ : 0;
      const size_t first = skipping_ ? BehindMark(out, before, count) : 0;
      if (skipping_ && first == 0) {
        Pass(out, count);
        continue;
      }
      skipping_ = false;
      // The record that begins at end_ or behind it begins behind a mark at end_ - 1 or behind that.
      size_t kept = count;
      if (position_ + first >= end_) {
        kept = first;
        ended_ = true;
      } else if (position_ + count >= end_) {
        const size_t from = std::max<uint64_t>(first, end_ - 1 > position_ ? end_ - 1 - position_ : 0);
        const size_t behind = BehindMark(out, from, count);
        ended_ = behind > 0;
        if (ended_) kept = behind;
      }
      Pass(out, count);
      std::memmove(out, out + first, kept - first);
      if (kept > first) return kept - first;
    }
    return 0;
  }
  const std::string& name() const override { return source_->name(); }

  /// What has to be read before a range, to see the marks that end where it begins.
  static uint64_t BytesBefore(InputFormat format) { return format == InputFormat::kParagraphs ? 3 : 1; }

 private:
  /// The offset behind the first mark at `from` or behind it; 0 when there is none. A blank line is a mark
  /// whether or not it is the first of several: records never begin with one.
  size_t BehindMark(const uint8_t* bytes, size_t from, size_t size) const {
    while (from < size) {
      const void* found = std::memchr(bytes + from, mark_, size - from);
      if (found == nullptr) return 0;
      const auto at = static_cast<size_t>(static_cast<const uint8_t*>(found) - bytes);
      if (!blank_lines_ || IsBlankBefore(bytes, at)) return at + 1;
      from = at + 1;
    }
    return 0;
  }
  bool IsBlankBefore(const uint8_t* bytes, size_t at) const {
    const auto back = [&](size_t count) { return count <= at ? bytes[at - count] : last_[count - at - 1]; };
    return back(1) == '\n' || (back(1) == '\r' && back(2) == '\n');
  }
  void Pass(const uint8_t* bytes, size_t count) {
    position_ += count;
    if (count > 1) last_[1] = bytes[count - 2];
    if (count == 1) last_[1] = last_[0];
    last_[0] = bytes[count - 1];
  }

  std::unique_ptr<ByteSource> source_;
  const uint64_t begin_;
  uint64_t position_;  // of the next byte of source_
  const uint64_t end_;
  const char mark_;
  const bool blank_lines_;
  std::array<uint8_t, 2> last_ = {'\n', 0};  // of what is before, backward; a file begins as a line does
  bool skipping_, ended_;
};

void Discard(uint64_t bytes, ByteSource* source) {
  std::vector<uint8_t> buffer(kReadBytes);
  while (bytes > 0) {
    const size_t count = source->Read(buffer.data(), std::min<uint64_t>(bytes, buffer.size()));
    if (count == 0) return;
    bytes -= count;
  }
}

bool IsCompressedFile(const std::string& path) {
  uint8_t start[kStartBytes];
  BufferedReader reader(OpenSource(path));
  return IsCompressed(ByteSpan(start, reader.Read(start, sizeof(start))));
}

uint64_t DecompressedBytes(const std::string& path) {
  const auto source = DecompressIfNeeded(OpenSource(path));
  std::vector<uint8_t> buffer(kReadBytes);
  uint64_t bytes = 0;
  while (const size_t count = source->Read(buffer.data(), buffer.size())) bytes += count;
  return bytes;
}

/// In what DocumentInput counts: decompressed bytes, or rows.
uint64_t Length(const DocumentInput& input, uint64_t stored_bytes) {
  if (input.format == InputFormat::kParquet) return ParquetFile(input.path, {}).rows();
  return IsCompressedFile(input.path) ? DecompressedBytes(input.path) : stored_bytes;
}

uint64_t StoredBytes(const DocumentInput& input) {
  struct stat info;
  if (input.path == "-") {
    throw Error(ErrorCode::kUsage, "--slice", "cuts files, and standard input is none", "",
                "save it to a file");
  }
  if (stat(input.path.c_str(), &info) != 0) throw SystemError(input.path, "open", errno);
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorCode::kUsage, "--slice", "cuts files, and " + input.path + " is no regular file");
  }
  return static_cast<uint64_t>(info.st_size);
}

/// ceil(part * all / whole) without overflow.
uint64_t ScaledUp(uint64_t part, uint64_t all, uint64_t whole) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(part) * all + whole - 1) / whole);
}

}  // namespace

InputSlice ParseInputSlice(const std::string& text) {
  InputSlice slice;
  const char *begin = text.data(), *end = begin + text.size();
  const auto number = std::from_chars(begin, end, slice.number);
  bool valid = number.ec == std::errc() && number.ptr < end && *number.ptr == '/';
  if (valid) {
    const auto count = std::from_chars(number.ptr + 1, end, slice.count);
    valid = count.ec == std::errc() && count.ptr == end;
  }
  if (!valid || slice.number == 0 || slice.number > slice.count) {
    throw Error(ErrorCode::kUsage, "--slice", "\"" + text + "\" is no part of a whole", "",
                "1/8 is the first of eight parts and 8/8 the last");
  }
  return slice;
}

std::vector<DocumentInput> SliceOf(const std::vector<DocumentInput>& inputs, const InputSlice& slice) {
  std::vector<uint64_t> sizes;
  uint64_t total = 0;
  for (const DocumentInput& input : inputs) total += sizes.emplace_back(StoredBytes(input));
  const auto boundary = [&](uint64_t number) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(total) * number / slice.count);
  };
  const uint64_t begin = boundary(slice.number - 1);
  // What lies at the very end, an empty file, is the last one's.
  const uint64_t end = slice.number == slice.count ? UINT64_MAX : boundary(slice.number);

  std::vector<DocumentInput> parts;
  uint64_t file_begin = 0;
  for (size_t i = 0; i < inputs.size(); file_begin += sizes[i++]) {
    DocumentInput part = inputs[i];
    const uint64_t size = sizes[i], file_end = file_begin + size;
    const bool begins_inside = begin <= file_begin && file_begin < end;
    if (size == 0 || part.format == InputFormat::kFile) {
      if (begins_inside) parts.push_back(std::move(part));
      continue;
    }
    if (file_end <= begin || file_begin >= end) continue;
    if (!begins_inside || end < file_end) {
      const uint64_t length = Length(part, size);
      if (begin > file_begin) part.begin = ScaledUp(begin - file_begin, length, size);
      if (end < file_end) part.end = ScaledUp(end - file_begin, length, size);
    }
    if (part.begin < part.end) parts.push_back(std::move(part));
  }
  return parts;
}

std::unique_ptr<ByteSource> OpenRecordRange(const DocumentInput& input, uint64_t* stored_bytes_read,
                                            Sha256* stored_hash) {
  if (input.begin == 0 && input.end == UINT64_MAX) {
    return DecompressIfNeeded(
        std::make_unique<CountingSource>(OpenSource(input.path), stored_bytes_read, stored_hash));
  }
  const bool compressed = IsCompressedFile(input.path);
  const uint64_t start = input.begin - std::min(input.begin, RecordRangeSource::BytesBefore(input.format));
  auto source = std::make_unique<CountingSource>(
      compressed ? OpenSource(input.path) : OpenSourceAt(input.path, start), stored_bytes_read, stored_hash);
  std::unique_ptr<ByteSource> plain = std::move(source);
  if (compressed) {
    plain = DecompressIfNeeded(std::move(plain));
    Discard(start, plain.get());
  }
  return std::make_unique<RecordRangeSource>(std::move(plain), input.begin, input.end, input.format);
}

}  // namespace trainwright

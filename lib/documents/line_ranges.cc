#include "lib/documents/line_ranges.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/io/byte_source.h"
#include "lib/io/parquet_file.h"

namespace trainwright {
namespace {

constexpr size_t kBufferBytes = 1 << 18;

/// \returns false when it is none
bool ParseRange(std::string_view text, LineRange* range) {
  const char *begin = text.data(), *end = begin + text.size();
  const auto first = std::from_chars(begin, end, range->first);
  if (first.ec != std::errc() || range->first == 0) return false;
  range->last = range->first;
  if (first.ptr == end) return true;
  if (*first.ptr != '-') return false;
  range->last = UINT64_MAX;
  if (first.ptr + 1 == end) return true;
  const auto last = std::from_chars(first.ptr + 1, end, range->last);
  return last.ec == std::errc() && last.ptr == end && range->first <= range->last;
}

Error TooFewLines(const DocumentInput& input, uint64_t lines, const LineRange& range) {
  const bool rows = input.format == InputFormat::kParquet;
  return Error(ErrorCode::kUsage, "--lines",
               "names " + std::string(rows ? "row " : "line ") +
                   std::to_string(range.last == UINT64_MAX ? range.first : range.last) + ", and " +
                   input.path + " has " + FormatNumberOf(lines, rows ? "row" : "line"));
}

/// Walks over the ends of lines, forward only.
class LineScanner {
 public:
  explicit LineScanner(const std::string& path)
      : source_(DecompressIfNeeded(OpenSource(path))), buffer_(kBufferBytes) {}

  /// The offset at which line `number` begins; of the line behind the last, where the file ends.
  /// \returns false when there are fewer lines
  [[nodiscard]] bool Seek(uint64_t number, uint64_t* offset) {
    while (line_ < number) {
      if (at_ == size_) {
        buffer_begin_ += size_;
        at_ = 0;
        size_ = source_->Read(buffer_.data(), buffer_.size());
        if (size_ == 0) return EndAt(number, offset);
      }
      const void* found = std::memchr(buffer_.data() + at_, '\n', size_ - at_);
      line_is_open_ = found == nullptr;
      at_ = line_is_open_ ? size_
                          : static_cast<size_t>(static_cast<const uint8_t*>(found) - buffer_.data()) + 1;
      if (!line_is_open_) ++line_;
    }
    *offset = buffer_begin_ + at_;
    return true;
  }
  /// Once Seek returned false.
  uint64_t lines() const { return line_ - 1 + (line_is_open_ ? 1 : 0); }

 private:
  /// A last line may lack its end.
  bool EndAt(uint64_t number, uint64_t* offset) {
    *offset = buffer_begin_;
    return number == line_ + 1 && line_is_open_;
  }

  std::unique_ptr<ByteSource> source_;
  std::vector<uint8_t> buffer_;
  uint64_t buffer_begin_ = 0;  // in the file
  size_t at_ = 0, size_ = 0;   // of buffer_
  uint64_t line_ = 1;          // which begins at at_, or before it when it is open
  bool line_is_open_ = false;  // there are bytes of it behind the last end of a line
};

std::vector<DocumentInput> RowsOf(const DocumentInput& input, const std::vector<LineRange>& ranges) {
  const uint64_t rows = ParquetFile(input.path, {}).rows();
  std::vector<DocumentInput> parts;
  for (const LineRange& range : ranges) {
    const bool open = range.last == UINT64_MAX;
    if (range.first > rows || (!open && range.last > rows)) throw TooFewLines(input, rows, range);
    DocumentInput& part = parts.emplace_back(input);
    part.begin = range.first - 1;
    part.end = range.last;
  }
  return parts;
}

}  // namespace

std::vector<LineRange> ParseLineRanges(const std::string& text) {
  std::vector<LineRange> ranges;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    LineRange range;
    if (!ParseRange(part, &range)) {
      throw Error(ErrorCode::kUsage, "--lines", "\"" + std::string(part) + "\" is no range of lines", "",
                  "7 is the seventh line, 10-20 a range, 500- the rest, and 7,10-20 both");
    }
    ranges.push_back(range);
    begin = end + 1;
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const LineRange& a, const LineRange& b) { return a.first < b.first; });
  std::vector<LineRange> joined;
  for (const LineRange& range : ranges) {
    if (!joined.empty() && (joined.back().last == UINT64_MAX || range.first <= joined.back().last + 1)) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

std::vector<DocumentInput> LinesOf(const DocumentInput& input, const std::vector<LineRange>& ranges) {
  if (input.path == "-" || !std::filesystem::is_regular_file(input.path)) {
    throw Error(ErrorCode::kUsage, "--lines",
                "finds lines of a file, and " + (input.path == "-" ? "standard input" : input.path) +
                    " is no regular file",
                "", "head and tail cut a pipe");
  }
  if (input.format == InputFormat::kParquet) return RowsOf(input, ranges);
  if (input.format != InputFormat::kLines && input.format != InputFormat::kJsonl) {
    throw Error(ErrorCode::kUsage, "--lines",
                std::string("has no meaning for --format ") + NameOf(input.format) +
                    ", whose documents are no lines");
  }
  LineScanner scanner(input.path);
  std::vector<DocumentInput> parts;
  for (const LineRange& range : ranges) {
    DocumentInput part = input;
    const bool open = range.last == UINT64_MAX;
    uint64_t line_behind = 0;
    // Of an open range its first line has to be there, which is so when the one behind it can be sought.
    if (!scanner.Seek(range.first, &part.begin) ||
        !scanner.Seek(open ? range.first + 1 : range.last + 1, &line_behind)) {
      throw TooFewLines(input, scanner.lines(), range);
    }
    part.end = open ? UINT64_MAX : line_behind;
    part.first_record = range.first;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace trainwright

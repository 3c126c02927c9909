/// Lines of a file by their numbers, in bounded memory: `pretokenize --lines`.
///
/// A file is scanned once for the ends of its lines, as far as the last one that is wanted; only the lines
/// that are wanted are then read and parsed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/documents/document_reader.h"

namespace trainwright {

/// Lines `first` to `last`, counted from 1; 1 <= first <= last.
struct LineRange {
  uint64_t first = 1, last = UINT64_MAX;
  bool operator==(const LineRange&) const = default;
};

/// Of "7", "10-20", "500-" (to the end) or several with commas between: in ascending order, those that touch
/// or overlap joined.
/// \throws Error{kUsage} naming --lines
std::vector<LineRange> ParseLineRanges(const std::string& text);

/// One part of the input for each range, in ascending order. Takes one read of the file up to the last line
/// that is wanted; a compressed file is decompressed for that, and by the reader once more for each range. Of
/// parquet the rows are counted instead of lines, and nothing is scanned. Memory: 256 KiB and the ranges.
/// \param ranges of ParseLineRanges
/// \throws Error{kUsage} for what is no regular file, for formats without lines, and when the file has fewer
///         lines than a range names; Error{kIo}; Error{kBadInput} on corrupt compressed data
std::vector<DocumentInput> LinesOf(const DocumentInput& input, const std::vector<LineRange>& ranges);

}  // namespace trainwright

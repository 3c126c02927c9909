#include "lib/codec/extract.h"

#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

constexpr char kLostKey[] = "trainwright.lost";

/// What a part means in one file.
struct ByteRange {
  size_t entry = 0;
  uint64_t first = 0, size = 0;
  std::vector<int64_t> shape;
};

ByteRange Resolve(const CompressedCheckpoint& checkpoint, const TensorPart& part) {
  ByteRange range;
  range.entry = checkpoint.IndexOf(part.name);
  const SafetensorsEntry& entry = checkpoint.head().source.entries[range.entry];
  range.shape = entry.shape;
  range.size = entry.end - entry.begin;
  if (!part.first && !part.last) return range;
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorCode::kUsage, "--slice", "tensor '" + part.name + "' " + why);
  };
  if (entry.shape.empty()) throw refuse("has no dimensions, so no slices");
  const auto rows = static_cast<uint64_t>(entry.shape[0]);
  const uint64_t first = part.first.value_or(0), last = part.last.value_or(rows);
  if (first > last || last > rows) {
    throw refuse("has rows 0 to " + std::to_string(rows) + ", not " + std::to_string(first) + " to " +
                 std::to_string(last));
  }
  const uint64_t row_bits = rows == 0 ? 0 : 8 * range.size / rows;
  if (first * row_bits % 8 != 0 || last * row_bits % 8 != 0)
    throw refuse("has elements of less than a byte; the slice must begin and end at a whole byte");
  range.first = first * row_bits / 8;
  range.size = last * row_bits / 8 - range.first;
  range.shape[0] = static_cast<int64_t>(last - first);
  return range;
}

void Write(const CompressedCheckpoint& checkpoint, const ByteRange& range, BaseTensors* base,
           ByteSink* sink) {
  checkpoint.OpenWithBase(range.entry, base).Read(range.first, range.size, [&](ByteSpan piece) {
    sink->Write(piece);
  });
}

}  // namespace

TensorPart ParseSlice(const std::string& text) {
  const auto refuse = [&] {
    return Error(ErrorCode::kUsage, "--slice", "'" + text + "' is not of the form NAME[FIRST:END]", "",
                 "rows count from 0, END is the first one that is not taken; either may be left out");
  };
  const size_t open = text.rfind('['), colon = text.rfind(':');
  if (open == std::string::npos || open == 0 || colon == std::string::npos || colon < open ||
      text.back() != ']')
    throw refuse();
  const auto number = [&](size_t begin, size_t end) -> std::optional<uint64_t> {
    if (begin == end) return {};
    uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (error != std::errc() || stop != text.data() + end) throw refuse();
    return value;
  };
  TensorPart part{text.substr(0, open), number(open + 1, colon), number(colon + 1, text.size() - 1)};
  if (!part.first && !part.last) part.first = 0;
  return part;
}

void ExtractRaw(const CompressedCheckpoint& checkpoint, const std::vector<TensorPart>& parts,
                BaseTensors* base, ByteSink* sink) {
  std::vector<ByteRange> ranges;
  for (const TensorPart& part : parts) ranges.push_back(Resolve(checkpoint, part));
  for (const ByteRange& range : ranges) Write(checkpoint, range, base, sink);
}

void ExtractSafetensors(const CompressedCheckpoint& checkpoint, const std::vector<TensorPart>& parts,
                        BaseTensors* base, const std::vector<std::string>& lost, ByteSink* sink) {
  std::vector<ByteRange> ranges;
  std::vector<SafetensorsTensor> tensors;
  std::set<std::string> names;
  for (const TensorPart& part : parts) {
    ranges.push_back(Resolve(checkpoint, part));
    if (!names.insert(part.name).second) {
      throw Error(ErrorCode::kUsage, "tensor '" + part.name + "'", "is asked for twice", "",
                  "a safetensors file holds a name once; --to raw has no names");
    }
    tensors.push_back({.name = part.name,
                       .dtype = checkpoint.head().source.entries[ranges.back().entry].dtype,
                       .shape = ranges.back().shape,
                       .make = [] { return std::vector<uint8_t>(); }});
  }
  std::map<std::string, std::string> metadata = checkpoint.head().source.metadata;
  if (!lost.empty()) metadata[kLostKey] = CanonicalJson(lost);
  sink->Write(EncodeSafetensorsHead(tensors, metadata));
  for (const ByteRange& range : ranges) Write(checkpoint, range, base, sink);
}

}  // namespace trainwright

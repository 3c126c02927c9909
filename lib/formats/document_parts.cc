#include "lib/formats/document_parts.h"

#include <algorithm>

namespace trainwright {
namespace {

/// The share of `total` that falls to positions [begin, end) of `count`; shares of a partition sum to
/// `total`.
uint64_t ShareOf(uint64_t total, uint64_t begin, uint64_t end, uint64_t count) {
  const auto up_to = [&](uint64_t position) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(total) * position / count);
  };
  return up_to(end) - up_to(begin);
}

}  // namespace

uint32_t DocumentPart::next_token(bool masked) const {
  const Segment& last = segments.back();
  if (alone || (last.flags & kSegmentEndsMidDocument) == 0) return kNoId;
  return masked && (last.flags & kSegmentNextNoLoss) != 0 ? kNoId : last.next_token;
}

std::vector<uint8_t> DocumentPart::Predicted() const {
  std::vector<uint8_t> predicted;
  predicted.reserve(tokens.size());
  for (const Segment& segment : segments) {
    predicted.insert(predicted.end(), segment.tokens, (segment.flags & kSegmentNoLoss) == 0 ? 1 : 0);
  }
  return predicted;
}

void KeepLastRun(std::vector<uint8_t>* predicted) {
  const auto last = std::find(predicted->rbegin(), predicted->rend(), uint8_t{1});
  const auto before = std::find(last, predicted->rend(), uint8_t{0});
  std::fill(before, predicted->rend(), uint8_t{0});
}

uint64_t DocumentPart::SourceBytes(uint64_t begin, uint64_t end, bool masked) const {
  uint64_t bytes = 0, segment_begin = 0;
  for (const Segment& segment : segments) {
    const uint64_t segment_end = segment_begin + segment.tokens;
    const uint64_t from = std::max(begin, segment_begin), to = std::min(end, segment_end);
    const bool counts = !masked || (segment.flags & kSegmentNoLoss) == 0;
    if (counts && from < to) {
      bytes += ShareOf(segment.source_bytes, from - segment_begin, to - segment_begin, segment.tokens);
    }
    segment_begin = segment_end;
  }
  return bytes;
}

std::vector<DocumentPart> PartsOf(const Chunk& chunk) {
  std::vector<DocumentPart> parts;
  std::span<const Segment> segments = chunk.segments;
  std::span<const uint32_t> tokens = chunk.tokens;
  while (!segments.empty() && (segments[0].flags & kSegmentPadding) == 0) {
    size_t count = 1, size = segments[0].tokens;
    while (count < segments.size() && (segments[count].flags & kSegmentContinuesPrevious) != 0) {
      size += segments[count++].tokens;
    }
    parts.push_back({.tokens = tokens.first(size), .segments = segments.first(count)});
    segments = segments.subspan(count);
    tokens = tokens.subspan(size);
  }
  return parts;
}

}  // namespace trainwright

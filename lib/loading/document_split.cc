#include "lib/loading/document_split.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/base/signals.h"

namespace trainwright {
namespace {

constexpr char kFlag[] = "--eval-split";

[[noreturn]] void Refuse(const std::string& asked, const std::string& problem) {
  throw Error(ErrorCode::kUsage, kFlag, "'" + asked + "' " + problem, "",
              "give a share of the documents, such as 0.05, or a number of them, such as 200");
}

/// Calls `use` with every part of a set that holds tokens.
void ForEachPart(const ShardSet& set, bool skip_bad, const std::function<void(const DocumentPart&)>& use) {
  for (uint64_t next = 0; next < set.chunks();) {
    ThrowIfStopped();
    const PassFrame frame = ReadPassFrame(set, next, skip_bad);
    for (const Chunk& chunk : frame.chunks) {
      for (const DocumentPart& part : PartsOf(chunk)) {
        if (!part.tokens.empty()) use(part);
      }
    }
    next = frame.next_chunk;
  }
}

/// The bound that holds out the `count` documents of the lowest keys, and those equal to the last of them.
uint64_t BoundOfCount(uint64_t count, const DocumentSplit& split, const ShardSet& set, bool skip_bad) {
  std::vector<uint64_t> keys;
  ForEachPart(set, skip_bad, [&](const DocumentPart& part) { keys.push_back(split.KeyOf(part.tokens)); });
  if (count >= keys.size()) {
    throw Error(ErrorCode::kUsage, kFlag,
                split.asked + " leaves nothing to train on: the data holds " + std::to_string(keys.size()) +
                    " documents",
                "", "hold out fewer");
  }
  const auto last = keys.begin() + static_cast<ptrdiff_t>(count) - 1;
  std::nth_element(keys.begin(), last, keys.end());
  return *last == UINT64_MAX ? UINT64_MAX : *last + 1;
}

}  // namespace

uint64_t DocumentSplit::KeyOf(std::span<const uint32_t> tokens) const {
  static_assert(std::endian::native == std::endian::little);
  return Xxh3({reinterpret_cast<const uint8_t*>(tokens.data()), tokens.size_bytes()},
              Rng(seed, "eval split").key());
}

DocumentSplit ParseDocumentSplit(const std::string& asked, uint64_t seed, const ShardSet* set,
                                 bool skip_bad) {
  DocumentSplit split{.asked = asked, .seed = seed};
  const char *begin = asked.data(), *end = begin + asked.size();
  uint64_t count = 0;
  const auto whole = std::from_chars(begin, end, count);
  if (whole.ec == std::errc() && whole.ptr == end) {
    if (count == 0) Refuse(asked, "holds nothing out");
    if (set == nullptr)
      Refuse(asked, "is a number of documents, and a pipe cannot be read twice to find them");
    split.bound = BoundOfCount(count, split, *set, skip_bad);
    return split;
  }
  double share = 0;
  const auto number = std::from_chars(begin, end, share);
  if (number.ec != std::errc() || number.ptr != end) Refuse(asked, "is no number");
  if (!(share > 0 && share < 1)) Refuse(asked, "is no share: above 0 and below 1");
  split.bound = static_cast<uint64_t>(std::ldexp(share, 64));
  return split;
}

SplitCounts CountSplit(const DocumentSplit& split, const ShardSet& set, bool masked, bool skip_bad) {
  SplitCounts counts;
  ForEachPart(set, skip_bad, [&](const DocumentPart& part) {
    ++counts.documents;
    counts.tokens += part.tokens.size();
    if (!split.HoldsOut(part)) return;
    ++counts.held_out_documents;
    counts.held_out_tokens += part.tokens.size();
    if (!masked) {
      counts.held_out_labels += part.tokens.size() - 1;
      return;
    }
    const std::vector<uint8_t> predicted = part.Predicted();
    counts.held_out_labels +=
        static_cast<uint64_t>(std::count(predicted.begin() + 1, predicted.end(), uint8_t{1}));
  });
  return counts;
}

std::vector<DocumentPart> PartsOf(const Chunk& chunk, const std::optional<DocumentSplit>& split,
                                  bool held_out) {
  std::vector<DocumentPart> parts = PartsOf(chunk);
  if (!split) return parts;
  std::erase_if(parts, [&](const DocumentPart& part) { return split->HoldsOut(part) != held_out; });
  for (DocumentPart& part : parts) part.alone = true;
  return parts;
}

}  // namespace trainwright

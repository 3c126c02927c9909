#include "lib/loading/document_split.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/formats/chunk_range.h"
#include "lib/formats/json_fields.h"

namespace trainwright {
namespace {

constexpr char kFlag[] = "--eval-split";
constexpr char kQuestionKey[] = "question";  // in plans

[[noreturn]] void Refuse(const std::string& asked, const std::string& problem) {
  throw Error(ErrorCode::kUsage, kFlag, "'" + asked + "' " + problem, "",
              "give a share of the documents, such as 0.05, or a number of them, such as 200");
}

/// What a split counts as one document.
struct SplitItem {
  std::span<const uint32_t> keyed;  ///< the tokens that its key is made of
  uint64_t tokens = 0, labels = 0;
};

/// Calls `use` with every document of a chunk that holds tokens.
/// \param masked whether the segments say what is predicted
void ForEachItem(const DocumentSplit& split, const Chunk& chunk, RecordKind records, bool masked,
                 const std::function<void(const SplitItem&)>& use) {
  if (records == RecordKind::kContrastive) {
    for (const ContrastiveRecord& record : ContrastiveRecordsOf(chunk)) {
      SplitItem item = {.keyed = record.query.tokens, .tokens = record.query.tokens.size(), .labels = 1};
      for (const ContrastiveText& text : record.positives) item.tokens += text.tokens.size();
      for (const ContrastiveText& text : record.negatives) item.tokens += text.tokens.size();
      use(item);
    }
    return;
  }
  for (const DocumentPart& part : PartsOf(chunk)) {
    if (part.tokens.empty()) continue;
    SplitItem item = {
        .keyed = split.KeyedOf(part), .tokens = part.tokens.size(), .labels = part.tokens.size() - 1};
    if (masked) {
      const std::vector<uint8_t> predicted = part.Predicted();
      item.labels = static_cast<uint64_t>(std::count(predicted.begin() + 1, predicted.end(), uint8_t{1}));
    }
    use(item);
  }
}

/// Calls `use` with every document of a part of a set that holds tokens.
void ForEachItem(const DocumentSplit& split, const ShardSet& set, const ShardSetPart& part, bool masked,
                 bool skip_bad, const std::function<void(const SplitItem&)>& use) {
  VisitChunks(set, {part.first_chunk, part.chunks}, skip_bad, [&](uint64_t, const Chunk& chunk) {
    ForEachItem(split, chunk, part.records, masked, use);
    return true;
  });
}

/// The bound that holds out the `count` documents of the lowest keys, and those equal to the last of them.
uint64_t BoundOfCount(uint64_t count, const DocumentSplit& split, const ShardSet& set, bool skip_bad) {
  std::vector<uint64_t> keys;
  for (const ShardSetPart& part : set.parts()) {
    ForEachItem(split, set, part, /*masked=*/false, skip_bad,
                [&](const SplitItem& item) { keys.push_back(split.KeyOf(item.keyed)); });
  }
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

std::span<const uint32_t> DocumentSplit::KeyedOf(const DocumentPart& part) const {
  if (key == SplitKey::kAllIds || !part.starts_document()) return part.tokens;
  size_t question = 0;
  for (const Segment& segment : part.segments) {
    if ((segment.flags & kSegmentNoLoss) == 0) break;
    question += segment.tokens;
  }
  return question == 0 ? part.tokens : part.tokens.first(question);
}

nlohmann::ordered_json EncodeSplit(const DocumentSplit& split) {
  nlohmann::ordered_json json = {{"asked", split.asked}, {"seed", split.seed}, {"bound", split.bound}};
  if (split.key == SplitKey::kQuestion) json["key"] = kQuestionKey;
  return json;
}

DocumentSplit DecodeSplit(const nlohmann::json& json) {
  const std::string object = "eval_split";
  DocumentSplit split;
  ReadField(json, "asked", object, &split.asked);
  ReadField(json, "seed", object, &split.seed);
  ReadField(json, "bound", object, &split.bound);
  if (!json.contains("key")) return split;
  std::string key;
  ReadField(json, "key", object, &key);
  if (key != kQuestionKey) {
    throw Error(ErrorCode::kBadInput, object, "has keys of '" + key + "', which this version does not know",
                "", "use the version that wrote it");
  }
  split.key = SplitKey::kQuestion;
  return split;
}

std::string IdentityOf(const DocumentSplit& split) {
  return "held out below " + std::to_string(split.bound) + " seed " + std::to_string(split.seed) +
         (split.key == SplitKey::kQuestion ? " by question\n" : "\n");
}

DocumentSplit ParseDocumentSplit(const std::string& asked, uint64_t seed, const ShardSet* set, bool skip_bad,
                                 SplitKey key) {
  DocumentSplit split{.asked = asked, .seed = seed, .key = key};
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
  for (const ShardSetPart& part : set.parts()) {
    const uint64_t labels_before = counts.held_out_labels;
    ForEachItem(split, set, part, masked, skip_bad, [&](const SplitItem& item) {
      ++counts.documents;
      counts.tokens += item.tokens;
      if (split.KeyOf(item.keyed) >= split.bound) return;
      ++counts.held_out_documents;
      counts.held_out_tokens += item.tokens;
      counts.held_out_labels += item.labels;
    });
    counts.labels_of_parts.push_back(counts.held_out_labels - labels_before);
  }
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

std::vector<ContrastiveRecord> ContrastiveRecordsOf(const Chunk& chunk,
                                                    const std::optional<DocumentSplit>& split,
                                                    bool held_out) {
  std::vector<ContrastiveRecord> records = ContrastiveRecordsOf(chunk);
  if (split) {
    std::erase_if(records,
                  [&](const ContrastiveRecord& record) { return split->HoldsOut(record) != held_out; });
  }
  return records;
}

}  // namespace trainwright

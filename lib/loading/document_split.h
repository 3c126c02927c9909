/// Which documents of a shard set are held out for evaluation: a pure function of a seed and of the
/// document's own tokens, so neither the order of the data, nor how it is packed beside others, nor data that
/// is added moves a document from one side to the other, and equal documents are on one side.
///
/// A document is held out when its key, XXH3-64 of its ids as little-endian 32-bit numbers, seeded by the
/// stream "eval split" of the seed (lib/base/rng.h), is below a bound. Of a share p the bound is p * 2^64. Of
/// a number of documents it is what lets that many of this set pass; it is then part of the run, so that data
/// that is added later is divided by the same bound.
///
/// A contrastive record is one document, and its query is what its key is made of: records that ask the same
/// are on one side, whatever they answer. So it is with conversations: the key is made of the ids before the
/// first one that is predicted, where there are any (of older runs: of all ids).
///
/// What pack cut is divided as it lies there: each part of a document that went into several chunks counts as
/// a document of its own. The label after a part's end is left out on both sides, because that token may be
/// on the other one.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/formats/document_parts.h"
#include "lib/formats/shard_set.h"
#include "lib/loading/contrastive_parts.h"

namespace trainwright {

/// What the keys of documents are made of that are no contrastive records.
enum class SplitKey {
  kAllIds,    ///< as runs had it that began before there was the other one
  kQuestion,  ///< of conversations the ids before their first answer
};

/// Immutable and thread-safe.
struct DocumentSplit {
  std::string asked;  ///< "0.05" or "200": for messages, and to compare runs
  uint64_t seed = 0;
  uint64_t bound = 0;  ///< of the keys that are held out: below it
  SplitKey key = SplitKey::kAllIds;

  uint64_t KeyOf(std::span<const uint32_t> tokens) const;
  /// The tokens that a document's key is made of.
  std::span<const uint32_t> KeyedOf(const DocumentPart& part) const;
  bool HoldsOut(const DocumentPart& part) const { return KeyOf(KeyedOf(part)) < bound; }
  bool HoldsOut(const ContrastiveRecord& record) const { return KeyOf(record.query.tokens) < bound; }
  bool operator==(const DocumentSplit&) const = default;
};

/// As plans store it: asked, seed and bound, and `key`, which is absent where it is made of all ids.
nlohmann::ordered_json EncodeSplit(const DocumentSplit& split);
/// \throws Error{kBadInput} on numbers out of range, or another key; nlohmann::json::exception on a missing
///     field or other type
DocumentSplit DecodeSplit(const nlohmann::json& json);

/// A line for the identity of an order that leaves out what a split holds out.
std::string IdentityOf(const DocumentSplit& split);

/// What the sides of a split hold. Empty documents are on neither.
struct SplitCounts {
  uint64_t documents = 0, tokens = 0;                    ///< of the set
  uint64_t held_out_documents = 0, held_out_tokens = 0;  ///< of these
  /// Of these, tokens to predict; each contrastive record counts as one.
  uint64_t held_out_labels = 0;
  std::vector<uint64_t> labels_of_parts = {};  ///< of these, those of each ShardSet::parts()
};

/// The split that `asked` describes: a share above 0 and below 1, or a whole number of documents.
/// \param set read once where a number is asked for; null: a number is refused
/// \param skip_bad whether chunks that cannot be read count as empty
/// \throws Error{kUsage} naming --eval-split; what reading the shards throws; Error{kInterrupted,
/// kTerminated}
DocumentSplit ParseDocumentSplit(const std::string& asked, uint64_t seed, const ShardSet* set,
                                 bool skip_bad = false, SplitKey key = SplitKey::kQuestion);

/// Reads the whole set once.
/// \param masked whether the segments say what is predicted
/// \param skip_bad as above
/// \throws what reading the shards throws; Error{kInterrupted, kTerminated} after a stop signal
SplitCounts CountSplit(const DocumentSplit& split, const ShardSet& set, bool masked, bool skip_bad = false);

/// The parts of a chunk on one side of a split; all of them without one.
std::vector<DocumentPart> PartsOf(const Chunk& chunk, const std::optional<DocumentSplit>& split,
                                  bool held_out);
/// The same of a chunk of contrastive records.
std::vector<ContrastiveRecord> ContrastiveRecordsOf(const Chunk& chunk,
                                                    const std::optional<DocumentSplit>& split, bool held_out);

}  // namespace trainwright

/// What belongs together among the texts of a step: every query's own passages, and which of the others count
/// as no negatives of it. Torch-free.
///
/// Shape legend of lib/nn/loss/contrastive_*: Q queries and P passages of the step, of all ranks in their
/// order; d elements of a vector; M sizes of vectors.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainwright {

/// Of all ranks. A query's passages lie together, its positives first, in the order of the queries.
struct ContrastiveGroups {
  std::vector<int64_t> first_passage;  ///< [Q+1], from 0 to P
  std::vector<int32_t> positives;      ///< [Q], of each query, at least 1
  /// Of FalseNegatives::kSameText, otherwise empty: hashes of texts, [Q] and [P].
  std::vector<uint64_t> query_text, passage_text;
  /// Likewise, [Q+1] and what it bounds: the hashes of all positives of each query's record, be they in the
  /// step or not.
  std::vector<int64_t> first_known;
  std::vector<uint64_t> known_text;

  int64_t queries() const { return static_cast<int64_t>(positives.size()); }
  int64_t passages() const { return first_passage.empty() ? 0 : first_passage.back(); }
};

/// The queries of one rank and their passages.
struct ContrastiveShare {
  int64_t begin_query = 0, end_query = 0;
  int64_t begin_passage = 0, end_passage = 0;
  /// Equal parts of its queries that a rank of another world may have alone: no GEMM reaches across their
  /// bounds, so that its bits are the same there. Leaf l of L begins at the share's query number
  /// own_queries * l / L.
  int64_t leaves = 1;

  int64_t own_queries() const { return end_query - begin_query; }
  int64_t own_passages() const { return end_passage - begin_passage; }
};

/// Stops with Error{kInternal} where sizes do not fit each other.
/// \param with_texts whether the hashes have to be there
void CheckGroups(const ContrastiveGroups& groups, const ContrastiveShare& share, bool with_texts);

/// A rank's queries with each of their positives, by rising number of the passage.
struct OwnPairs {
  OwnPairs(const ContrastiveGroups& groups, const ContrastiveShare& share);

  int64_t count() const { return static_cast<int64_t>(query.size()); }

  std::vector<int64_t> first;           ///< [own queries + 1]: the pairs of each
  std::vector<int64_t> query, passage;  ///< of each pair, numbers among all
};

/// Own rows that are computed together.
struct TileRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// A rank's own queries, pairs and passages, each cut into tiles that no bound of a leaf crosses. Numbers
/// count from the rank's first.
struct ContrastiveTiles {
  /// \param tile_bytes about, of a tile of fp32 scores: 16 to 1024 rows, a multiple of 16, but for the last
  ///     tile of a leaf
  ContrastiveTiles(const ContrastiveGroups& groups, const ContrastiveShare& share, const OwnPairs& pairs,
                   int64_t tile_bytes);

  std::vector<TileRange> queries, pairs, passages;
};

/// Queries and passages that are no negatives of each other though they are not drawn as a pair: the passage
/// has the text of a positive of the query's record, or of the query itself. Immutable.
class TextMasks {
 public:
  explicit TextMasks(const ContrastiveGroups& groups);
  /// Calls use(passage) for each such passage of a query, own pairs among them, some maybe twice.
  template <typename Use>
  void ForPassagesOf(int64_t query, const Use& use) const {
    const auto i = static_cast<size_t>(query);
    ForEach(passages_, groups_->query_text[i], use);
    for (int64_t known = groups_->first_known[i]; known < groups_->first_known[i + 1]; ++known) {
      ForEach(passages_, groups_->known_text[static_cast<size_t>(known)], use);
    }
  }
  /// Calls use(query) for each such query of a passage, own pairs among them.
  template <typename Use>
  void ForQueriesOf(int64_t passage, const Use& use) const {
    ForEach(queries_, groups_->passage_text[static_cast<size_t>(passage)], use);
  }

 private:
  struct Entry {
    uint64_t text;
    int64_t number;
    auto operator<=>(const Entry&) const = default;
  };

  template <typename Use>
  static void ForEach(const std::vector<Entry>& entries, uint64_t text, const Use& use) {
    auto entry = std::lower_bound(entries.begin(), entries.end(), text,
                                  [](const Entry& one, uint64_t wanted) { return one.text < wanted; });
    for (; entry != entries.end() && entry->text == text; ++entry) use(entry->number);
  }

  const ContrastiveGroups* groups_;  ///< outlives this
  std::vector<Entry> passages_;      ///< by their texts
  std::vector<Entry> queries_;       ///< by their own texts and those that their records know
};

}  // namespace trainwright

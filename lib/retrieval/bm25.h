/// BM25, the bag-of-words ranking that vectors are compared with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/retrieval/scored_row.h"

namespace trainwright {

struct Bm25Options {
  double k1 = 1.5;  ///< how soon repetitions of a word cease to count, above 0
  double b = 0.75;  ///< how much longer documents count less, from 0 to 1
};

/// An index of documents by their SearchWords. Memory: 8 bytes for each distinct word of each document, and
/// the words. Not thread-safe.
///
/// A document of n words that has a query's word f times scores
///   ln(1 + (N - N_w + 1/2) / (N_w + 1/2)) f / (f + k1 (1 - b + b n / mean n))
/// for it, where N_w of N documents have the word; the scores of the query's words, repetitions included, are
/// added in double.
/// \source Kamphuis et al. 2020, "Which BM25 do you mean?", the variant of Lucene (accurate)
class Bm25Index {
 public:
  explicit Bm25Index(Bm25Options options = {});

  /// Documents are numbered from 0 in this order, fewer than 2^32.
  void Add(std::string_view text);
  uint64_t size() const { return words_of_document_.size(); }

  /// The k best of the documents that have a word of the query.
  /// \param ties orders equal scores
  std::vector<ScoredRow> Search(std::string_view query, size_t k, const TieOrder& ties);

 private:
  struct Posting {
    uint32_t document, count;
  };
  void AddScores(const std::vector<Posting>& postings, double times);

  Bm25Options options_;
  std::unordered_map<std::string, std::vector<Posting>> postings_;
  std::vector<uint32_t> words_of_document_;
  uint64_t words_ = 0;            // of all documents
  std::vector<double> scores_;    // of a search; all 0 between searches
  std::vector<uint32_t> scored_;  // documents of a search that have a word of it
};

}  // namespace trainwright

#include "lib/retrieval/bm25.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "lib/base/error.h"
#include "lib/retrieval/word_cutter.h"

namespace trainwright {
namespace {

std::map<std::string, uint32_t> CountWords(std::string_view text, uint64_t* total) {
  std::map<std::string, uint32_t> counts;
  for (std::string& word : SearchWords(text)) {
    ++counts[std::move(word)];
    ++*total;
  }
  return counts;
}

}  // namespace

Bm25Index::Bm25Index(Bm25Options options) : options_(options) {
  TRAINWRIGHT_CHECK(options.k1 > 0 && options.b >= 0 && options.b <= 1);
}

void Bm25Index::Add(std::string_view text) {
  TRAINWRIGHT_CHECK(size() < std::numeric_limits<uint32_t>::max());
  const auto document = static_cast<uint32_t>(size());
  uint64_t words = 0;
  for (const auto& [word, count] : CountWords(text, &words)) postings_[word].push_back({document, count});
  words_of_document_.push_back(static_cast<uint32_t>(words));
  words_ += words;
}

void Bm25Index::AddScores(const std::vector<Posting>& postings, double times) {
  const auto documents = static_cast<double>(size());
  const auto with_word = static_cast<double>(postings.size());
  const double mean_words = static_cast<double>(words_) / documents;
  const double rarity = std::log1p((documents - with_word + 0.5) / (with_word + 0.5));
  for (const Posting& posting : postings) {
    const double length = words_of_document_[posting.document] / mean_words;
    const double count = posting.count;
    double& score = scores_[posting.document];
    if (score == 0) scored_.push_back(posting.document);
    score += times * rarity * count / (count + options_.k1 * (1 - options_.b + options_.b * length));
  }
}

std::vector<ScoredRow> Bm25Index::Search(std::string_view query, size_t k, const TieOrder& ties) {
  scores_.resize(words_of_document_.size(), 0);
  uint64_t words = 0;
  for (const auto& [word, count] : CountWords(query, &words)) {
    if (const auto found = postings_.find(word); found != postings_.end()) AddScores(found->second, count);
  }
  std::vector<ScoredRow> best;
  best.reserve(scored_.size());
  for (const uint32_t document : scored_) {
    best.push_back({document, static_cast<float>(scores_[document])});
    scores_[document] = 0;
  }
  scored_.clear();
  const auto before = [&](const ScoredRow& a, const ScoredRow& b) { return GoesBefore(a, b, ties); };
  const auto end = best.begin() + static_cast<ptrdiff_t>(std::min(k, best.size()));
  std::partial_sort(best.begin(), end, best.end(), before);
  best.erase(end, best.end());
  return best;
}

}  // namespace trainwright

#include "lib/nn/loss/contrastive_groups.h"

#include "lib/base/error.h"

namespace trainwright {
namespace {

int64_t TileRows(int64_t tile_bytes, int64_t columns) {
  constexpr int64_t kLeast = 16, kMost = 1024;
  const int64_t rows = tile_bytes / (static_cast<int64_t>(sizeof(float)) * std::max<int64_t>(1, columns));
  return std::clamp(rows / kLeast * kLeast, kLeast, kMost);
}

/// \param bounds of the leaves, rising
std::vector<TileRange> Cut(const std::vector<int64_t>& bounds, int64_t tile_rows) {
  std::vector<TileRange> tiles;
  for (size_t leaf = 0; leaf + 1 < bounds.size(); ++leaf) {
    for (int64_t begin = bounds[leaf]; begin < bounds[leaf + 1]; begin += tile_rows) {
      tiles.push_back({begin, std::min(begin + tile_rows, bounds[leaf + 1])});
    }
  }
  return tiles;
}

}  // namespace

void CheckGroups(const ContrastiveGroups& groups, const ContrastiveShare& share, bool with_texts) {
  const size_t queries = groups.positives.size();
  TRAINWRIGHT_CHECK(groups.first_passage.size() == queries + 1 && groups.first_passage.front() == 0);
  for (size_t i = 0; i < queries; ++i) {
    TRAINWRIGHT_CHECK(groups.positives[i] >= 1 &&
                      groups.first_passage[i] + groups.positives[i] <= groups.first_passage[i + 1]);
  }
  TRAINWRIGHT_CHECK(0 <= share.begin_query && share.begin_query <= share.end_query &&
                    share.end_query <= groups.queries() && share.leaves >= 1);
  TRAINWRIGHT_CHECK(share.begin_passage == groups.first_passage[static_cast<size_t>(share.begin_query)] &&
                    share.end_passage == groups.first_passage[static_cast<size_t>(share.end_query)]);
  if (!with_texts) return;
  TRAINWRIGHT_CHECK(groups.query_text.size() == queries &&
                    static_cast<int64_t>(groups.passage_text.size()) == groups.passages());
  TRAINWRIGHT_CHECK(groups.first_known.size() == queries + 1 && groups.first_known.front() == 0 &&
                    groups.first_known.back() == static_cast<int64_t>(groups.known_text.size()));
  TRAINWRIGHT_CHECK(std::is_sorted(groups.first_known.begin(), groups.first_known.end()));
}

OwnPairs::OwnPairs(const ContrastiveGroups& groups, const ContrastiveShare& share) {
  first.push_back(0);
  for (int64_t i = share.begin_query; i < share.end_query; ++i) {
    const auto at = static_cast<size_t>(i);
    for (int64_t k = 0; k < groups.positives[at]; ++k) {
      query.push_back(i);
      passage.push_back(groups.first_passage[at] + k);
    }
    first.push_back(count());
  }
}

ContrastiveTiles::ContrastiveTiles(const ContrastiveGroups& groups, const ContrastiveShare& share,
                                   const OwnPairs& own_pairs, int64_t tile_bytes) {
  std::vector<int64_t> query_bounds, pair_bounds, passage_bounds;
  for (int64_t leaf = 0; leaf <= share.leaves; ++leaf) {
    const int64_t bound = share.own_queries() * leaf / share.leaves;
    query_bounds.push_back(bound);
    pair_bounds.push_back(own_pairs.first[static_cast<size_t>(bound)]);
    passage_bounds.push_back(groups.first_passage[static_cast<size_t>(share.begin_query + bound)] -
                             share.begin_passage);
  }
  queries = Cut(query_bounds, TileRows(tile_bytes, groups.passages()));
  pairs = Cut(pair_bounds, TileRows(tile_bytes, groups.queries()));
  passages = Cut(passage_bounds, TileRows(tile_bytes, groups.queries()));
}

TextMasks::TextMasks(const ContrastiveGroups& groups) : groups_(&groups) {
  for (size_t j = 0; j < groups.passage_text.size(); ++j) {
    passages_.push_back({groups.passage_text[j], static_cast<int64_t>(j)});
  }
  std::sort(passages_.begin(), passages_.end());
  for (size_t i = 0; i < groups.query_text.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    queries_.push_back({groups.query_text[i], number});
    for (int64_t known = groups.first_known[i]; known < groups.first_known[i + 1]; ++known) {
      queries_.push_back({groups.known_text[static_cast<size_t>(known)], number});
    }
  }
  std::sort(queries_.begin(), queries_.end());
  queries_.erase(std::unique(queries_.begin(), queries_.end()), queries_.end());
}

}  // namespace trainwright

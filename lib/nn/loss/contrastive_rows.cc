// The rows of ContrastiveLoss: own queries with all passages.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "lib/nn/loss/contrastive_loss.h"

namespace trainwright {

TileRange ContrastiveLoss::PairRange(const TileRange& range) const {
  return {pairs_.first[static_cast<size_t>(range.begin)], pairs_.first[static_cast<size_t>(range.end)]};
}

TilePairs ContrastiveLoss::PairsOfQueries(const TileRange& range) const {
  const TileRange pairs = PairRange(range);
  std::vector<int64_t> places;
  for (int64_t n = pairs.begin; n < pairs.end; ++n) {
    const auto at = static_cast<size_t>(n);
    const int64_t row = pairs_.query[at] - share_.begin_query - range.begin;
    places.push_back(row * passages() + pairs_.passage[at]);
  }
  return {OnDevice(places), pairs_of_query_q_.narrow(0, range.begin, range.size())};
}

void ContrastiveLoss::ExcludeOfQueries(size_t size, const TileRange& range, const TilePairs& pairs,
                                       at::Tensor* tile) const {
  const int64_t first_query = share_.begin_query + range.begin;
  ExcludePlaces(pairs.places_n, tile);
  if (masks_) {
    PlaceExcluder excluder(tile);
    for (int64_t row = 0; row < range.size(); ++row) {
      masks_->ForPassagesOf(first_query + row,
                            [&](int64_t passage) { excluder.Add(row * passages() + passage); });
    }
    excluder.Flush();
  }
  if (!limits_.empty()) {
    ExcludeAbove(limits_[size].narrow(0, first_query, range.size()).unsqueeze(1), tile);
  }
}

void ContrastiveLoss::ScoreQueries(size_t size, const SizedVectors& vectors, ScalarShare* share) {
  const auto largest = std::max_element(options_.sizes.begin(), options_.sizes.end(),
                                        [](const auto& a, const auto& b) { return a.columns < b.columns; });
  const bool tells_top1 = options_.sizes.begin() + static_cast<std::ptrdiff_t>(size) == largest;
  for (const TileRange& range : tiles_.queries) {
    const int64_t rows = range.size();
    const SizedRows own = vectors.queries.Part(share_.begin_query + range.begin, rows);
    at::Tensor tile = TileOf(own.vectors_tm, vectors.passages);
    const TilePairs pairs = PairsOfQueries(range);
    const TileRange pair_range = PairRange(range);
    const at::Tensor products_n = ReadPlaces(tile, pairs.places_n);
    ExcludeOfQueries(size, range, pairs, &tile);
    const RowLosses found = LossesOfRows(factor(), pairs.lengths_t, products_n, &tile);
    losses_.narrow(0, range.begin, rows).add_(found.loss_t, WeightOfLosses(size));
    if (tells_top1) top1_.narrow(0, range.begin, rows).copy_(found.first_t);
    ScalarsOf(share->rows_q2m, size).narrow(0, range.begin, rows).copy_(found.scalars_t2);
    pair_gradients_[size].narrow(0, pair_range.begin, pair_range.size()).copy_(found.gradient_n);
    if (options_.symmetric) continue;  // the numbers of columns are not known yet
    tile.mul_(found.scalars_t2.narrow(1, 1, 1));
    WritePlaces(pairs.places_n, found.gradient_n.neg().to(at::kFloat), &tile);
    AddRows(tile, vectors.passages, own, WeightOfGradients(size), {},
            d_queries_.narrow(0, range.begin, rows));
  }
}

void ContrastiveLoss::AddQueryGradients(size_t size, const SizedVectors& vectors, const ScalarShare& all,
                                        const GradientScale& scale, at::Tensor& d_q) {
  const at::Tensor rows_q2 = ScalarsOf(all.rows_q2m, size), columns_p2 = ScalarsOf(all.columns_p2m, size);
  const at::Tensor device_scale = scale.on_device.defined() ? scale.on_device.to(at::kFloat) : at::Tensor();
  for (const TileRange& range : tiles_.queries) {
    const int64_t begin = share_.begin_query + range.begin, rows = range.size();
    const SizedRows own = vectors.queries.Part(begin, rows);
    at::Tensor tile = TileOf(own.vectors_tm, vectors.passages);
    const TilePairs pairs = PairsOfQueries(range);
    const TileRange pair_range = PairRange(range);
    ExcludeOfQueries(size, range, pairs, &tile);
    WeighTile(factor(), rows_q2.narrow(0, begin, rows), columns_p2, &tile);
    const at::Tensor gradients = pair_gradients_[size].narrow(0, pair_range.begin, pair_range.size());
    WritePlaces(pairs.places_n, gradients.neg().to(at::kFloat), &tile);
    AddRows(tile, vectors.passages, own, scale.factor * WeightOfGradients(size), device_scale,
            d_q.narrow(0, range.begin, rows));
  }
}

}  // namespace trainwright

// The columns of ContrastiveLoss: own passages with all queries.
#include <ATen/ops/segment_reduce.h>
#include <ATen/ops/zeros.h>

#include <cstddef>
#include <numeric>
#include <vector>

#include "lib/nn/loss/contrastive_loss.h"

namespace trainwright {

void ContrastiveLoss::ExcludeOfPassages(size_t size, const std::vector<int64_t>& passages,
                                        const at::Tensor& pair_places, at::Tensor* tile) const {
  ExcludePlaces(pair_places, tile);
  if (masks_) {
    PlaceExcluder excluder(tile);
    for (size_t row = 0; row < passages.size(); ++row) {
      const int64_t first = static_cast<int64_t>(row) * queries();
      masks_->ForQueriesOf(passages[row], [&](int64_t query) { excluder.Add(first + query); });
    }
    excluder.Flush();
  }
  if (!limits_.empty()) ExcludeAbove(limits_[size].unsqueeze(0), tile);
}

void ContrastiveLoss::ScorePositives(size_t size, const SizedVectors& vectors, ScalarShare* share) {
  at::Tensor losses_n = at::zeros({pairs_.count()}, losses_.options());
  at::Tensor columns_p2 = ScalarsOf(share->columns_p2m, size);
  for (const TileRange& range : tiles_.pairs) {
    const auto first = static_cast<std::ptrdiff_t>(range.begin),
               last = static_cast<std::ptrdiff_t>(range.end);
    const std::vector<int64_t> passages(pairs_.passage.begin() + first, pairs_.passage.begin() + last);
    std::vector<int64_t> places, own_numbers;
    for (size_t row = 0; row < passages.size(); ++row) {
      const auto n = static_cast<size_t>(range.begin) + row;
      places.push_back(static_cast<int64_t>(row) * queries() + pairs_.query[n]);
      own_numbers.push_back(passages[row] - share_.begin_passage);
    }
    const at::Tensor own_tm = vectors.passages.vectors_tm.index_select(0, OnDevice(passages));
    at::Tensor tile = TileOf(own_tm, vectors.queries);
    const TilePairs pairs = {OnDevice(places), OnDevice(std::vector<int64_t>(places.size(), 1))};
    const at::Tensor products_n = ReadPlaces(tile, pairs.places_n);
    ExcludeOfPassages(size, passages, pairs.places_n, &tile);
    const RowLosses found = LossesOfRows(factor(), pairs.lengths_t, products_n, &tile);
    losses_n.narrow(0, range.begin, range.size()).copy_(found.loss_t);
    const at::Tensor shares_n = pair_shares_n_.narrow(0, range.begin, range.size());
    pair_gradients_[size].narrow(0, range.begin, range.size()).add_(found.gradient_n.mul(shares_n));
    at::Tensor scalars_n2 = found.scalars_t2;
    scalars_n2.narrow(1, 1, 1).mul_(shares_n.unsqueeze(1));
    columns_p2.index_copy_(0, OnDevice(own_numbers), scalars_n2);
  }
  if (pairs_.count() == 0) return;
  losses_.add_(at::segment_reduce(losses_n, "mean", pairs_of_query_q_, /*indices=*/{}, /*offsets=*/{},
                                  /*axis=*/0, /*unsafe=*/true),
               WeightOfLosses(size));
}

void ContrastiveLoss::AddPassageGradients(size_t size, const SizedVectors& vectors, const ScalarShare& all,
                                          const GradientScale& scale, at::Tensor& d_p) {
  const at::Tensor rows_q2 = ScalarsOf(all.rows_q2m, size);
  const at::Tensor device_scale = scale.on_device.defined() ? scale.on_device.to(at::kFloat) : at::Tensor();
  int64_t pair = 0;  // the first that is not done
  for (const TileRange& range : tiles_.passages) {
    const int64_t begin = share_.begin_passage + range.begin, rows = range.size();
    const SizedRows own = vectors.passages.Part(begin, rows);
    at::Tensor tile = TileOf(own.vectors_tm, vectors.queries);
    std::vector<int64_t> passages(static_cast<size_t>(rows)), places;
    std::iota(passages.begin(), passages.end(), begin);
    const int64_t first_pair = pair;
    for (; pair < pairs_.count(); ++pair) {
      const auto n = static_cast<size_t>(pair);
      if (pairs_.passage[n] >= begin + rows) break;
      places.push_back((pairs_.passage[n] - begin) * queries() + pairs_.query[n]);
    }
    const at::Tensor pair_places = OnDevice(places);
    ExcludeOfPassages(size, passages, pair_places, &tile);
    const at::Tensor own_scalars =
        options_.symmetric ? ScalarsOf(all.columns_p2m, size).narrow(0, begin, rows) : at::Tensor();
    WeighTile(factor(), own_scalars, rows_q2, &tile);
    const at::Tensor gradients = pair_gradients_[size].narrow(0, first_pair, pair - first_pair);
    WritePlaces(pair_places, gradients.neg().to(at::kFloat), &tile);
    AddRows(tile, vectors.queries, own, scale.factor * WeightOfGradients(size), device_scale,
            d_p.narrow(0, range.begin, rows));
  }
}

}  // namespace trainwright

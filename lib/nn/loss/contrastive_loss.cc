#include "lib/nn/loss/contrastive_loss.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/segment_reduce.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/device/upload.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/pooling/span_pooling.h"

namespace trainwright {
namespace {

const ContrastiveShare& Checked(const ContrastiveOptions& options, const ContrastiveGroups& groups,
                                const ContrastiveShare& share) {
  CheckGroups(groups, share, options.false_negatives == FalseNegatives::kSameText);
  TRAINWRIGHT_CHECK(options.temperature > 0);
  return share;
}

}  // namespace

ContrastiveLoss::ContrastiveLoss(ContrastiveOptions options, ContrastiveGroups groups,
                                 const ContrastiveShare& share)
    : options_(std::move(options)),
      groups_(std::move(groups)),
      share_(Checked(options_, groups_, share)),
      pairs_(groups_, share_),
      tiles_(groups_, share_, pairs_, options_.tile_bytes) {
  if (options_.false_negatives == FalseNegatives::kSameText) masks_.emplace(groups_);
}

double ContrastiveLoss::WeightOfLosses(size_t size) const {
  return options_.sizes[size].weight * (options_.symmetric ? 0.5 : 1.0);
}

double ContrastiveLoss::WeightOfGradients(size_t size) const {
  return WeightOfLosses(size) * factor() / static_cast<double>(queries());
}

void ContrastiveLoss::ResolveSizes(int64_t width) {
  if (options_.sizes.empty()) options_.sizes.push_back({.columns = width});
  for (const ContrastiveOptions::Size& size : options_.sizes) {
    TRAINWRIGHT_CHECK(size.columns >= 1 && size.columns <= width);
  }
}

at::Tensor ContrastiveLoss::OnDevice(const std::vector<int64_t>& numbers) const {
  return Upload(at::tensor(numbers, at::TensorOptions().dtype(at::kLong)), device_);
}

ContrastiveLoss::SizedVectors ContrastiveLoss::OfSize(size_t size, const at::Tensor& unit_qd,
                                                      const at::Tensor& unit_pd) const {
  const int64_t columns = options_.sizes[size].columns;
  const auto cut = [&](const at::Tensor& whole_td) {
    SizedRows rows = {.vectors_tm = whole_td, .norms_t = {}};
    if (columns == whole_td.size(1)) return rows;
    rows.vectors_tm = whole_td.narrow(1, 0, columns).clone(at::MemoryFormat::Contiguous);
    if (options_.normalize) {
      rows.norms_t = at::empty({whole_td.size(0)}, whole_td.options());
      NormalizeRows(rows.vectors_tm, rows.norms_t);
    }
    return rows;
  };
  return {.queries = cut(unit_qd), .passages = cut(unit_pd)};
}

at::Tensor ContrastiveLoss::LimitsOf(const SizedVectors& vectors) const {
  const OwnPairs all(groups_, {.end_query = queries(), .end_passage = passages()});
  const at::Tensor query_n = OnDevice(all.query), passage_n = OnDevice(all.passage);
  const at::Tensor &queries_qm = vectors.queries.vectors_tm, &passages_pm = vectors.passages.vectors_tm;
  at::Tensor products_n = at::empty({all.count()}, queries_qm.options());
  // Of one text in two places the products differ by their rounding, which depends on the tile.
  constexpr double kRounding = 1e-5;
  const auto norm_of = [](const at::Tensor& rows) {
    return at::linalg_vector_norm(rows, 2, /*dim=*/at::IntArrayRef{1});
  };
  constexpr int64_t kRows = 1024;
  for (int64_t begin = 0; begin < all.count(); begin += kRows) {
    const int64_t rows = std::min(kRows, all.count() - begin);
    const at::Tensor of_queries = queries_qm.index_select(0, query_n.narrow(0, begin, rows));
    const at::Tensor of_passages = passages_pm.index_select(0, passage_n.narrow(0, begin, rows));
    const at::Tensor rounding = norm_of(of_queries).mul_(norm_of(of_passages)).mul_(kRounding);
    products_n.narrow(0, begin, rows).copy_(of_queries.mul(of_passages).sum(1).add_(rounding));
  }
  const std::vector<int64_t> lengths(groups_.positives.begin(), groups_.positives.end());
  return at::segment_reduce(products_n, "min", OnDevice(lengths), /*indices=*/{}, /*offsets=*/{}, /*axis=*/0,
                            /*unsafe=*/true)
      .sub_(options_.margin);
}

at::Tensor ContrastiveLoss::TileOf(const at::Tensor& own_tm, const SizedRows& others) {
  at::Tensor tile = tile_.Get({own_tm.size(0), others.vectors_tm.size(0)}, at::kFloat, device_);
  Matmul(own_tm, others.vectors_tm.t(), tile);
  return tile;
}

void ContrastiveLoss::AddRows(const at::Tensor& tile_tc, const SizedRows& others, const SizedRows& own,
                              double weight, const at::Tensor& device_scale, at::Tensor target_td) {
  at::Tensor d_tile = d_tile_.Get(own.vectors_tm.sizes().vec(), at::kFloat, device_);
  Matmul(tile_tc, others.vectors_tm, d_tile);
  if (own.norms_t.defined()) NormalizeRowsBackward(own.vectors_tm, own.norms_t, d_tile);
  if (device_scale.defined()) d_tile.mul_(device_scale);
  // Apart, so that no element is rounded otherwise than its neighbours: a sum of products may be fused.
  target_td.narrow(1, 0, d_tile.size(1)).add_(d_tile.mul_(weight));
}

void ContrastiveLoss::SetPairCounts() {
  std::vector<int64_t> counts;
  std::vector<double> shares;
  for (size_t i = 0; i + 1 < pairs_.first.size(); ++i) {
    counts.push_back(pairs_.first[i + 1] - pairs_.first[i]);
    shares.insert(shares.end(), static_cast<size_t>(counts.back()), 1.0 / static_cast<double>(counts.back()));
  }
  pairs_of_query_q_ = OnDevice(counts);
  pair_shares_n_ = Upload(at::tensor(shares, at::TensorOptions().dtype(at::kDouble)), device_);
}

ScalarShare ContrastiveLoss::RowsAndScalars(const at::Tensor& unit_qd, const at::Tensor& unit_pd) {
  const ProfileScope scope("contrastive_loss", ProfilePart::kHead);
  TRAINWRIGHT_CHECK(unit_qd.scalar_type() == at::kFloat && unit_pd.scalar_type() == at::kFloat);
  TRAINWRIGHT_CHECK(unit_qd.is_contiguous() && unit_pd.is_contiguous() && !unit_qd.is_meta());
  TRAINWRIGHT_CHECK(unit_qd.size(0) == queries() && unit_pd.size(0) == passages() &&
                    unit_qd.size(1) == unit_pd.size(1));
  TRAINWRIGHT_CHECK(!losses_.defined());
  ResolveSizes(unit_qd.size(1));
  device_ = unit_qd.device();
  SetPairCounts();
  const at::TensorOptions floats = unit_qd.options(), doubles = floats.dtype(at::kDouble);
  losses_ = at::zeros({share_.own_queries()}, doubles);
  top1_ = at::zeros({share_.own_queries()}, doubles);
  if (!options_.symmetric) d_queries_ = at::zeros({share_.own_queries(), unit_qd.size(1)}, floats);
  const auto numbers = 2 * static_cast<int64_t>(options_.sizes.size());
  ScalarShare share;
  share.rows_q2m = at::zeros({share_.own_queries(), numbers}, floats);
  if (options_.symmetric) share.columns_p2m = at::zeros({share_.own_passages(), numbers}, floats);
  for (size_t size = 0; size < options_.sizes.size(); ++size) {
    const SizedVectors vectors = OfSize(size, unit_qd, unit_pd);
    pair_gradients_.push_back(at::zeros({pairs_.count()}, doubles));
    if (options_.false_negatives == FalseNegatives::kMargin) limits_.push_back(LimitsOf(vectors));
    ScoreQueries(size, vectors, &share);
    if (options_.symmetric) ScorePositives(size, vectors, &share);
  }
  return share;
}

void ContrastiveLoss::Gradients(const ScalarShare& all, const at::Tensor& unit_qd, const at::Tensor& unit_pd,
                                const GradientScale& scale, at::Tensor& d_q, at::Tensor& d_p) {
  const ProfileScope scope("contrastive_loss_backward", ProfilePart::kHead);
  TRAINWRIGHT_CHECK(losses_.defined() && all.rows_q2m.size(0) == queries());
  TRAINWRIGHT_CHECK(!options_.symmetric || all.columns_p2m.size(0) == passages());
  TRAINWRIGHT_CHECK(d_q.size(0) == share_.own_queries() && d_p.size(0) == share_.own_passages());
  for (size_t size = 0; size < options_.sizes.size(); ++size) {
    const SizedVectors vectors = OfSize(size, unit_qd, unit_pd);
    if (options_.symmetric) AddQueryGradients(size, vectors, all, scale, d_q);
    AddPassageGradients(size, vectors, all, scale, d_p);
  }
  if (options_.symmetric) return;
  if (scale.on_device.defined()) d_queries_.mul_(scale.on_device.to(at::kFloat));
  d_q.add_(d_queries_.mul_(scale.factor));
  d_queries_ = at::Tensor();
}

}  // namespace trainwright

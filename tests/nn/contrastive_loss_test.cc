#include "lib/nn/loss/contrastive_loss.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/nn/contrastive_reference.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

/// Unit vectors, near each other as those of a model that begins to learn.
at::Tensor RandomUnits(int64_t rows, int64_t width, uint64_t stream) {
  const at::Tensor x = RandomTensor({rows, width}, stream).add(0.5);
  return x.div(x.norm(2, {1}, /*keepdim=*/true)).contiguous();
}

/// Query i has 1 + i mod `most_positives` positives and i mod 3 negatives, or one of both.
ContrastiveGroups SomeGroups(int64_t queries, int32_t most_positives, bool one_negative = false) {
  ContrastiveGroups groups;
  groups.first_passage = {0};
  for (int64_t i = 0; i < queries; ++i) {
    groups.positives.push_back(1 + static_cast<int32_t>(i % most_positives));
    const int64_t negatives = one_negative ? 1 : i % 3;
    groups.first_passage.push_back(groups.first_passage.back() + groups.positives.back() + negatives);
  }
  return groups;
}

/// Every fifth passage has the text of another query's positive, every seventh query that of a passage, and
/// every record knows a positive that is not drawn, which some other passages are.
void AddTexts(ContrastiveGroups* groups) {
  const auto passages = static_cast<uint64_t>(groups->passages());
  for (uint64_t j = 0; j < passages; ++j) groups->passage_text.push_back(j % 5 == 4 ? (j * 3) % passages : j);
  groups->first_known = {0};
  for (size_t i = 0; i < groups->positives.size(); ++i) {
    groups->query_text.push_back(i % 7 == 0 ? (i * 5) % passages : 1000 + i);
    const auto first = static_cast<size_t>(groups->first_passage[i]);
    for (size_t k = 0; k < static_cast<size_t>(groups->positives[i]); ++k) {
      groups->known_text.push_back(groups->passage_text[first + k]);
    }
    groups->known_text.push_back((i * 11) % passages);
    groups->first_known.push_back(static_cast<int64_t>(groups->known_text.size()));
  }
}

struct Result {
  at::Tensor losses, top1, d_q, d_p;
};

/// What ranks compute together, with what they gather put together here.
/// \param leaves of all ranks together
Result Compute(const ContrastiveOptions& options, const ContrastiveGroups& groups, const at::Tensor& q,
               const at::Tensor& p, int64_t ranks = 1, int64_t leaves = 1, const GradientScale& scale = 1.0) {
  std::vector<std::unique_ptr<ContrastiveLoss>> losses;
  std::vector<ContrastiveShare> shares;
  std::vector<at::Tensor> rows, columns;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ContrastiveShare share;
    share.begin_query = groups.queries() * rank / ranks;
    share.end_query = groups.queries() * (rank + 1) / ranks;
    share.begin_passage = groups.first_passage[static_cast<size_t>(share.begin_query)];
    share.end_passage = groups.first_passage[static_cast<size_t>(share.end_query)];
    share.leaves = leaves / ranks;
    shares.push_back(share);
    losses.push_back(std::make_unique<ContrastiveLoss>(options, groups, share));
    const ScalarShare own = losses.back()->RowsAndScalars(q, p);
    rows.push_back(own.rows_q2m);
    if (own.columns_p2m.defined()) columns.push_back(own.columns_p2m);
  }
  ScalarShare all = {at::cat(rows), columns.empty() ? at::Tensor() : at::cat(columns)};
  std::vector<at::Tensor> of_losses, of_top1, of_q, of_p;
  for (size_t rank = 0; rank < losses.size(); ++rank) {
    of_q.push_back(at::zeros({shares[rank].own_queries(), q.size(1)}));
    of_p.push_back(at::zeros({shares[rank].own_passages(), p.size(1)}));
    losses[rank]->Gradients(all, q, p, scale, of_q.back(), of_p.back());
    of_losses.push_back(losses[rank]->losses());
    of_top1.push_back(losses[rank]->top1());
  }
  return {at::cat(of_losses), at::cat(of_top1), at::cat(of_q), at::cat(of_p)};
}

struct LossCase {
  std::string name;
  ContrastiveOptions options;
  int32_t most_positives = 1;
};

void PrintTo(const LossCase& loss_case, std::ostream* out) {
  *out << loss_case.name;
}

std::vector<LossCase> LossCases() {
  constexpr auto kText = FalseNegatives::kSameText, kMargin = FalseNegatives::kMargin;
  const std::vector<ContrastiveOptions::Size> sizes = {{8, 1.0}, {3, 0.5}, {5, 2.0}};
  return {
      {"one_positive", {.temperature = 0.1}},
      {"several_positives", {.temperature = 0.1}, 3},
      {"symmetric", {.temperature = 0.1, .symmetric = true}},
      {"symmetric_several", {.temperature = 0.1, .symmetric = true}, 3},
      {"text", {.temperature = 0.1, .false_negatives = kText}},
      {"text_symmetric_several", {.temperature = 0.1, .symmetric = true, .false_negatives = kText}, 3},
      {"margin", {.temperature = 0.1, .false_negatives = kMargin, .margin = 0.05}},
      {"margin_below", {.temperature = 0.1, .false_negatives = kMargin, .margin = -0.1}, 2},
      {"margin_symmetric",
       {.temperature = 0.1, .symmetric = true, .false_negatives = kMargin, .margin = 0.02},
       3},
      {"sizes", {.temperature = 0.1, .sizes = sizes}, 2},
      {"sizes_not_normalized", {.temperature = 0.1, .normalize = false, .sizes = sizes}},
      {"sizes_symmetric_margin",
       {.temperature = 0.1, .symmetric = true, .false_negatives = kMargin, .margin = 0.02, .sizes = sizes},
       3},
  };
}

class ContrastiveLossTest : public testing::TestWithParam<LossCase> {
 protected:
  static constexpr int64_t kQueries = 21, kWidth = 8;

  ContrastiveLossTest() : groups_(SomeGroups(kQueries, GetParam().most_positives)) {
    if (GetParam().options.false_negatives == FalseNegatives::kSameText) AddTexts(&groups_);
    q_ = RandomUnits(kQueries, kWidth, 1);
    p_ = RandomUnits(groups_.passages(), kWidth, 2);
  }

  /// Options with tiles of so many rows.
  ContrastiveOptions TilesOf(int64_t rows) const {
    ContrastiveOptions options = GetParam().options;
    options.tile_bytes = 4 * rows * groups_.passages();
    return options;
  }

  ContrastiveGroups groups_;
  at::Tensor q_, p_;
};

INSTANTIATE_TEST_SUITE_P(Cases, ContrastiveLossTest, testing::ValuesIn(LossCases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ContrastiveLossTest, LossesEqualTheSoftmaxWrittenOut) {
  const ContrastiveOptions& options = GetParam().options;
  const at::Tensor losses = Compute(options, groups_, q_, p_).losses;
  const std::vector<double> expected = test::DenseLosses(options, groups_, q_, p_);
  for (int64_t i = 0; i < kQueries; ++i) {
    EXPECT_NEAR(losses[i].item<double>(), expected[static_cast<size_t>(i)], 2e-5) << "query " << i;
  }
}

TEST_P(ContrastiveLossTest, GradientsEqualFiniteDifferences) {
  const ContrastiveOptions& options = GetParam().options;
  const Result result = Compute(options, groups_, q_, p_);
  const at::Tensor expected_q = test::NumericalGradient(
      [&](const at::Tensor& x) { return test::DenseMean(options, groups_, x, p_); }, q_);
  const at::Tensor expected_p = test::NumericalGradient(
      [&](const at::Tensor& x) { return test::DenseMean(options, groups_, q_, x); }, p_);
  EXPECT_LT(test::RelativeDifference(result.d_q, expected_q), 1e-5);
  EXPECT_LT(test::RelativeDifference(result.d_p, expected_p), 1e-5);
}

TEST_P(ContrastiveLossTest, TilesOfAnySizeGiveTheSame) {
  const Result whole = Compute(GetParam().options, groups_, q_, p_);
  for (const int64_t rows : {16, 32}) {
    const Result tiled = Compute(TilesOf(rows), groups_, q_, p_);
    SCOPED_TRACE(rows);
    EXPECT_LT(test::RelativeDifference(tiled.losses, whole.losses), 1e-6);
    EXPECT_LT(test::RelativeDifference(tiled.d_q, whole.d_q), 1e-6);
    EXPECT_LT(test::RelativeDifference(tiled.d_p, whole.d_p), 1e-6);
  }
}

TEST_P(ContrastiveLossTest, RanksComputeTogetherWhatOneDoes) {
  const Result one = Compute(GetParam().options, groups_, q_, p_);
  for (const int64_t ranks : {2, 3}) {
    const Result together = Compute(GetParam().options, groups_, q_, p_, ranks, ranks);
    SCOPED_TRACE(ranks);
    EXPECT_LT(test::RelativeDifference(together.losses, one.losses), 1e-6);
    EXPECT_LT(test::RelativeDifference(together.d_q, one.d_q), 1e-6);
    EXPECT_LT(test::RelativeDifference(together.d_p, one.d_p), 1e-6);
  }
}

TEST_P(ContrastiveLossTest, Top1TellsWhichQueriesFindAPositive) {
  const at::Tensor top1 = Compute(GetParam().options, groups_, q_, p_).top1;
  const test::DenseContrastive dense(GetParam().options, groups_, test::RowsOf(q_), test::RowsOf(p_));
  for (int64_t i = 0; i < kQueries; ++i) {
    EXPECT_EQ(top1[i].item<double>(), dense.FindsPositive(static_cast<size_t>(i)) ? 1.0 : 0.0) << i;
  }
}

/// Bits: leaves of 18 queries, which no tile of 16 or 48 rows divides; products that are small, thin and in
/// blocks.
class ContrastiveLeavesTest : public testing::TestWithParam<std::tuple<LossCase, int64_t, int64_t>> {};

INSTANTIATE_TEST_SUITE_P(Cases, ContrastiveLeavesTest,
                         testing::Combine(testing::ValuesIn(LossCases()), testing::Values(16, 48),
                                          testing::Values(8, 160)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" +
                                  std::to_string(std::get<1>(info.param)) + "_" +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST_P(ContrastiveLeavesTest, LeavesHaveTheSameBitsInEveryWorld) {
  const auto& [loss_case, rows, width] = GetParam();
  ContrastiveGroups groups = SomeGroups(72, loss_case.most_positives);
  if (loss_case.options.false_negatives == FalseNegatives::kSameText) AddTexts(&groups);
  ContrastiveOptions options = loss_case.options;
  options.tile_bytes = 4 * rows * groups.passages();
  const at::Tensor q = RandomUnits(72, width, 1), p = RandomUnits(groups.passages(), width, 2);
  const Result one = Compute(options, groups, q, p, 1, 4);
  for (const int64_t ranks : {2, 4}) {
    const Result together = Compute(options, groups, q, p, ranks, 4);
    SCOPED_TRACE(ranks);
    EXPECT_TRUE(at::equal(together.losses, one.losses));
    EXPECT_TRUE(at::equal(together.d_q, one.d_q));
    EXPECT_TRUE(at::equal(together.d_p, one.d_p));
  }
}

TEST(ContrastiveLossTest, OfPairsWithOneNegativeItIsTorchsCrossEntropy) {
  const ContrastiveGroups groups = SomeGroups(21, 1, /*one_negative=*/true);
  const at::Tensor q = RandomUnits(21, 16, 1), p = RandomUnits(42, 16, 2);
  const at::Tensor scores = q.to(at::kDouble).matmul(p.to(at::kDouble).t()).div(0.02);
  const at::Tensor labels = at::arange(0, 42, 2, at::kLong);
  const double expected = at::cross_entropy_loss(scores, labels).item<double>();
  const Result result = Compute({}, groups, q, p);
  EXPECT_NEAR(result.losses.mean().item<double>(), expected, 1e-5 * expected);
}

TEST(ContrastiveLossTest, WithoutOtherPassagesThereIsNoLossAndNoGradient) {
  ContrastiveGroups groups;
  groups.first_passage = {0, 2};
  groups.positives = {2};
  for (const bool symmetric : {false, true}) {
    const Result result =
        Compute({.symmetric = symmetric}, groups, RandomUnits(1, 8, 1), RandomUnits(2, 8, 2));
    EXPECT_EQ(result.losses[0].item<double>(), 0.0);
    EXPECT_EQ(result.top1[0].item<double>(), 0.0) << "it found nothing";
    EXPECT_EQ(result.d_q.abs().max().item<double>(), 0.0);
    EXPECT_EQ(result.d_p.abs().max().item<double>(), 0.0);
  }
}

TEST(ContrastiveLossTest, WhereTheMasksLeaveNothingThereIsNoLossOfThatQuery) {
  ContrastiveGroups groups = SomeGroups(3, 1, /*one_negative=*/true);
  groups.query_text = {100, 101, 102};
  groups.passage_text = {0, 1, 2, 3, 4, 5};
  groups.known_text = {0, 1, 2, 3, 4, 5, 2, 4};
  groups.first_known = {0, 6, 7, 8};
  const ContrastiveOptions options = {.false_negatives = FalseNegatives::kSameText};
  const at::Tensor q = RandomUnits(3, 8, 1), p = RandomUnits(6, 8, 2);
  const Result result = Compute(options, groups, q, p);
  EXPECT_EQ(result.losses[0].item<double>(), 0.0);
  EXPECT_EQ(result.d_q[0].abs().max().item<double>(), 0.0);
  EXPECT_GT(result.d_q[1].abs().max().item<double>(), 0.0);
}

TEST(ContrastiveLossTest, SmallTemperaturesNeitherOverflowNorVanish) {
  const ContrastiveGroups groups = SomeGroups(9, 2);
  const at::Tensor q = RandomUnits(9, 8, 1), p = RandomUnits(groups.passages(), 8, 2);
  const ContrastiveOptions options = {.temperature = 1e-4, .symmetric = true};
  const Result result = Compute(options, groups, q, p);
  const double expected = test::DenseMean(options, groups, q, p);
  EXPECT_NEAR(result.losses.mean().item<double>(), expected, 1e-5 * expected);
  EXPECT_TRUE(result.d_q.isfinite().all().item<bool>());
  EXPECT_TRUE(result.d_p.isfinite().all().item<bool>());
}

TEST(ContrastiveLossTest, VectorsOfZerosAreLikeAnyOther) {
  const ContrastiveGroups groups = SomeGroups(9, 2);
  at::Tensor q = RandomUnits(9, 8, 1), p = RandomUnits(groups.passages(), 8, 2);
  q[0].zero_();
  p[1].zero_();
  const ContrastiveOptions options = {.sizes = {{8, 1.0}, {4, 1.0}}};
  const Result result = Compute(options, groups, q, p);
  EXPECT_TRUE(result.losses.isfinite().all().item<bool>());
  EXPECT_TRUE(result.d_q.isfinite().all().item<bool>());
  EXPECT_TRUE(result.d_p.isfinite().all().item<bool>());
  EXPECT_GT(result.d_q[0].abs().max().item<double>(), 0.0);
}

TEST(ContrastiveLossTest, ALossThatIsNotFiniteShows) {
  const ContrastiveGroups groups = SomeGroups(3, 1);
  at::Tensor q = RandomUnits(3, 8, 1);
  q[1][2].fill_(NAN);
  const Result result = Compute({}, groups, q, RandomUnits(groups.passages(), 8, 2));
  EXPECT_TRUE(result.losses[1].isnan().item<bool>());
  EXPECT_TRUE(result.losses[0].isfinite().item<bool>());
}

TEST(ContrastiveLossTest, GradientsAreMultipliedByBothScales) {
  const ContrastiveGroups groups = SomeGroups(9, 2);
  const at::Tensor q = RandomUnits(9, 8, 1), p = RandomUnits(groups.passages(), 8, 2);
  for (const bool symmetric : {false, true}) {
    const ContrastiveOptions options = {.symmetric = symmetric};
    const Result plain = Compute(options, groups, q, p);
    const GradientScale scale(0.5, at::full({1}, 1024.0, at::kDouble));
    const Result scaled = Compute(options, groups, q, p, 1, 1, scale);
    EXPECT_TRUE(at::equal(scaled.d_q, plain.d_q.mul(512)));
    EXPECT_TRUE(at::equal(scaled.d_p, plain.d_p.mul(512)));
  }
}

TEST(ContrastiveLossTest, GradientsAreAddedToWhatIsThere) {
  const ContrastiveGroups groups = SomeGroups(9, 2);
  const at::Tensor q = RandomUnits(9, 8, 1), p = RandomUnits(groups.passages(), 8, 2);
  const Result plain = Compute({}, groups, q, p);
  const ContrastiveShare all = {.end_query = 9, .end_passage = groups.passages()};
  ContrastiveLoss loss({}, groups, all);
  const ScalarShare scalars = loss.RowsAndScalars(q, p);
  at::Tensor d_q = at::full({9, 8}, 1.0f), d_p = at::full({groups.passages(), 8}, 2.0f);
  loss.Gradients(scalars, q, p, 1.0, d_q, d_p);
  EXPECT_LT(test::RelativeDifference(d_q, plain.d_q.add(1)), 1e-6);
  EXPECT_LT(test::RelativeDifference(d_p, plain.d_p.add(2)), 1e-6);
}

TEST(ContrastiveLossTest, ARankMayHaveNoQueries) {
  const ContrastiveGroups groups = SomeGroups(2, 1, /*one_negative=*/true);
  const at::Tensor q = RandomUnits(2, 8, 1), p = RandomUnits(4, 8, 2);
  for (const bool symmetric : {false, true}) {
    const ContrastiveOptions options = {
        .symmetric = symmetric, .false_negatives = FalseNegatives::kMargin, .margin = -2};
    const Result one = Compute(options, groups, q, p), of_three = Compute(options, groups, q, p, 3, 3);
    EXPECT_LT(test::RelativeDifference(of_three.d_q, one.d_q), 1e-6);
    EXPECT_LT(test::RelativeDifference(of_three.d_p, one.d_p), 1e-6);
  }
}

TEST(ContrastiveLossTest, APassageThatEqualsThePositiveIsNotAboveIt) {
  // Two queries each have the same positive, and no passage is as close to them.
  constexpr int64_t kQueries = 34, kWidth = 203;
  ContrastiveGroups groups;
  for (int64_t i = 0; i <= kQueries; ++i) groups.first_passage.push_back(i);
  groups.positives.assign(kQueries, 1);
  const at::Tensor p = RandomUnits(kQueries / 2, kWidth, 1).repeat_interleave(2, 0).contiguous();
  const at::Tensor q = p.clone();
  for (const bool symmetric : {false, true}) {
    const auto made_with = [&](FalseNegatives false_negatives) {
      const ContrastiveOptions options = {
          .temperature = 0.1, .symmetric = symmetric, .false_negatives = false_negatives};
      return Compute(options, groups, q, p);
    };
    const Result kept = made_with(FalseNegatives::kKeep), by_margin = made_with(FalseNegatives::kMargin);
    EXPECT_TRUE(at::equal(by_margin.losses, kept.losses));
    EXPECT_TRUE(at::equal(by_margin.d_q, kept.d_q));
    EXPECT_TRUE(at::equal(by_margin.d_p, kept.d_p));
  }
}

TEST(ContrastiveLossTest, BitsDoNotDependOnThreads) {
  const ContrastiveGroups groups = SomeGroups(72, 3);
  const at::Tensor q = RandomUnits(72, 160, 1), p = RandomUnits(groups.passages(), 160, 2);
  const ContrastiveOptions options = {
      .symmetric = true, .false_negatives = FalseNegatives::kMargin, .sizes = {{160, 1.0}, {48, 1.0}}};
  const int before = at::get_num_threads();
  std::vector<Result> results;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    results.push_back(Compute(options, groups, q, p));
  }
  at::set_num_threads(before);
  for (const Result& result : results) {
    EXPECT_TRUE(at::equal(result.losses, results[0].losses));
    EXPECT_TRUE(at::equal(result.d_q, results[0].d_q));
    EXPECT_TRUE(at::equal(result.d_p, results[0].d_p));
  }
}

/// The largest tensor that this thread makes while it watches.
class LargestAllocation final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t alloc_size, size_t, size_t, c10::Device) override {
    bytes_ = std::max(bytes_, alloc_size);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

TEST(ContrastiveMemoryTest, TheScoresAreNeverThereAsAWhole) {
  constexpr int64_t kQueries = 1024, kWidth = 16, kTileBytes = 1 << 18;
  const ContrastiveGroups groups = SomeGroups(kQueries, 1, /*one_negative=*/true);
  const at::Tensor q = RandomUnits(kQueries, kWidth, 1), p = RandomUnits(2 * kQueries, kWidth, 2);
  for (const bool symmetric : {false, true}) {
    auto watch = std::make_shared<LargestAllocation>();
    {
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, watch);
      Compute({.symmetric = symmetric, .tile_bytes = kTileBytes}, groups, q, p);
    }
    // The whole would be 32 tiles. Products copy panels of their operands.
    EXPECT_GE(watch->bytes(), kTileBytes);
    EXPECT_LE(watch->bytes(), 6 * kTileBytes);
  }
}

TEST(TextMasksTest, AreThoseOfEveryPairComparedByText) {
  ContrastiveGroups groups = SomeGroups(23, 3);
  AddTexts(&groups);
  const TextMasks masks(groups);
  const ContrastiveOptions options = {.false_negatives = FalseNegatives::kSameText};
  const auto passages = static_cast<size_t>(groups.passages());
  const test::DenseContrastive dense(options, groups, test::Rows(23, {0.0}), test::Rows(passages, {0.0}));
  std::vector<std::vector<bool>> by_query(23, std::vector<bool>(passages)), by_passage = by_query;
  for (int64_t i = 0; i < 23; ++i) {
    masks.ForPassagesOf(i,
                        [&](int64_t j) { by_query[static_cast<size_t>(i)][static_cast<size_t>(j)] = true; });
  }
  for (int64_t j = 0; j < groups.passages(); ++j) {
    masks.ForQueriesOf(j,
                       [&](int64_t i) { by_passage[static_cast<size_t>(i)][static_cast<size_t>(j)] = true; });
  }
  size_t masked = 0;
  for (size_t i = 0; i < 23; ++i) {
    for (size_t j = 0; j < passages; ++j) {
      EXPECT_EQ(by_query[i][j], dense.IsLeftOut(i, j)) << i << " " << j;
      EXPECT_EQ(by_passage[i][j], dense.IsLeftOut(i, j)) << i << " " << j;
      masked += dense.IsLeftOut(i, j) && !dense.IsPositive(i, j) ? 1 : 0;
    }
  }
  EXPECT_GT(masked, 23u);
}

TEST(ContrastiveTilesTest, AreMultiplesOf16RowsAndEndWhereALeafEnds) {
  const ContrastiveGroups groups = SomeGroups(100, 2);
  const ContrastiveShare share = {.end_query = 100, .end_passage = groups.passages(), .leaves = 4};
  const OwnPairs pairs(groups, share);
  const ContrastiveTiles tiles(groups, share, pairs, 4 * 17 * groups.passages());
  ASSERT_EQ(tiles.queries.size(), 8u);
  for (size_t i = 0; i < tiles.queries.size(); ++i) {
    const int64_t leaf = 25 * static_cast<int64_t>(i / 2);
    EXPECT_EQ(tiles.queries[i].begin, i % 2 == 0 ? leaf : leaf + 16);
    EXPECT_EQ(tiles.queries[i].end, i % 2 == 0 ? leaf + 16 : leaf + 25);
  }
  EXPECT_EQ(tiles.pairs.back().end, pairs.count());
  EXPECT_EQ(tiles.passages.back().end, groups.passages());
}

}  // namespace
}  // namespace trainwright

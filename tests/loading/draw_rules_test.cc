// Caps and samples that are drawn again, against full lists of all samples.
#include "lib/loading/draw_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/loading/lm_cutter.h"
#include "lib/loading/sample_loader.h"
#include "tests/loading/order_page.h"
#include "tests/loading/text_chunks.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::MemoryShardSet;

std::unique_ptr<const SampleCutter> TwoTokens() {
  return std::make_unique<LmCutter>(RecordKind::kLm, LmCutterOptions{.sequence_tokens = 2});
}

/// A set of documents of two tokens, each of which is a sample that is known by its tokens.
class Documents {
 public:
  explicit Documents(uint32_t count, std::vector<OrderedSet> sets = {})
      : set_(test::NumberedDocuments(count), 3, 1u << 16), sets_(std::move(sets)) {
    if (sets_.empty()) sets_ = {{.chunks = set_.chunks(), .weight = set_.chunks()}};
  }
  const ShardSet& set() const { return set_; }
  SampleOrderOptions Order(DrawRules rules) const {
    rules.index = SampleIndex::Count(set_, *TwoTokens(), sets_);
    return {.seed = 5, .window_chunks = 4, .sets = sets_, .numbered = true, .rules = std::move(rules)};
  }
  SampleLoader Open(const DrawRules& rules, const LoaderOptions& loader = {}) const {
    return {&set_, TwoTokens(), Order(rules), loader};
  }

 private:
  MemoryShardSet set_;
  std::vector<OrderedSet> sets_;
};

uint32_t DocumentOf(const Sample& sample) {
  return sample.TokensOf(sample.spans().front()).front();
}

/// The documents of the epoch that a loader is in.
std::vector<uint32_t> EpochOf(SampleLoader* loader) {
  std::vector<uint32_t> documents;
  const uint64_t epoch = loader->cursor().epoch;
  while (loader->cursor().epoch == epoch) documents.push_back(DocumentOf(loader->Next()));
  return documents;
}

TEST(DrawRules, KeepTheSamplesThatThePageSays) {
  for (const auto& [arguments, value] : test::VectorsOf("caps")) {
    const auto samples = static_cast<uint32_t>(test::NumberOf(arguments[0]));
    const MemoryShardSet set(test::NumberedDocuments(samples), 3, 1u << 16);
    const std::vector<OrderedSet> sets = {
        {.chunks = set.chunks(), .number = static_cast<uint32_t>(test::NumberOf(arguments[2]))}};
    const auto index = SampleIndex::Count(set, *TwoTokens(), sets);
    const SampleDraws draws({.index = index, .most_samples = {test::NumberOf(arguments[1])}},
                            test::NumberOf(arguments[3]));
    std::set<uint64_t> found, expected;
    for (uint64_t sample = 0; sample < samples; ++sample) {
      const SampleIndex::Place place = index->At(0, sample);
      if (draws.Keeps(place.chunk, place.number)) found.insert(sample);
    }
    std::istringstream numbers(value);
    for (uint64_t number = 0; numbers >> number;) expected.insert(number);
    EXPECT_EQ(found, expected);
  }
}

TEST(DrawRules, DrawAgainWhatThePageSays) {
  for (const auto& [arguments, value] : test::VectorsOf("extras")) {
    const uint64_t samples = test::NumberOf(arguments[0]), extra = test::NumberOf(arguments[1]);
    const MemoryShardSet set(test::NumberedDocuments(static_cast<uint32_t>(samples)), 3, 1u << 16);
    const std::vector<OrderedSet> sets = {{.chunks = set.chunks()}};
    const auto index = SampleIndex::Count(set, *TwoTokens(), sets);
    const SampleDraws draws(
        {.index = index,
         .epoch_samples = samples + extra,
         .extra = arguments[4] == "unique" ? DrawRules::Extra::kUnique : DrawRules::Extra::kUniform},
        test::NumberOf(arguments[2]));
    std::vector<uint64_t> found;
    for (uint64_t i = 0; i < extra; ++i) {
      const SampleDraws::Draw draw = draws.ExtraAt(test::NumberOf(arguments[3]), i);
      found.push_back(index->FirstOf(draw.place.chunk) + draw.place.number);
    }
    EXPECT_EQ(test::Joined(found), value);
  }
}

TEST(DrawRules, ACapKeepsTheSameSamplesInEveryEpoch) {
  const Documents documents(50);
  SampleLoader loader = documents.Open({.most_samples = {17}});
  const std::vector<uint32_t> first = EpochOf(&loader), second = EpochOf(&loader);
  const std::set<uint32_t> kept(first.begin(), first.end());
  EXPECT_EQ(first.size(), 17u);
  EXPECT_EQ(kept.size(), 17u);
  EXPECT_EQ(std::set(second.begin(), second.end()), kept);
  EXPECT_NE(first, second);
  EXPECT_EQ(loader.CountEpoch().samples, 17u);
}

TEST(DrawRules, EachSetHasItsOwnCap) {
  const uint64_t chunks = test::NumberedDocuments(60).size(), half = chunks / 2;
  const std::vector<OrderedSet> sets = {
      {.chunks = half, .weight = half},
      {.first_chunk = half, .chunks = chunks - half, .weight = chunks - half, .number = 1}};
  const Documents documents(60, sets);
  SampleLoader loader = documents.Open({.most_samples = {0, 5}});
  std::map<uint32_t, int> taken;
  while (loader.cursor().epoch == 0) ++taken[loader.Next().set()];
  EXPECT_EQ(taken[0], static_cast<int>(documents.Order({}).rules.index->samples_of(0)));
  EXPECT_EQ(taken[1], 5);
}

TEST(DrawRules, AnEpochGivesItsOwnSamplesAndThenThoseThatAreDrawnAgain) {
  const Documents documents(20);
  const DrawRules rules = {.epoch_samples = 55, .window_draws = 8};
  const SampleOrderOptions options = documents.Order(rules);
  const SampleDraws draws(options.rules, options.seed);
  for (const LoaderOptions& loader_options :
       {LoaderOptions{.workers = 0}, LoaderOptions{.workers = 2, .prefetch = 2, .cache_bytes = 300}}) {
    SampleLoader loader = documents.Open(rules, loader_options);
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      const std::vector<uint32_t> found = EpochOf(&loader);
      ASSERT_EQ(found.size(), 55u);
      EXPECT_EQ(std::set(found.begin(), found.begin() + 20).size(), 20u);
      for (uint64_t i = 0; i < 35; ++i) {
        const SampleIndex::Place place = draws.ExtraAt(epoch, i).place;
        ASSERT_EQ(found[20 + i], options.rules.index->FirstOf(place.chunk) + place.number);
      }
    }
    EXPECT_EQ(loader.CountEpoch().samples, 55u);
  }
}

TEST(DrawRules, GoOnAtAnyPlaceWhereALoaderStood) {
  const Documents documents(20);
  const DrawRules rules = {.most_samples = {13}, .epoch_samples = 30, .window_draws = 4};
  SampleLoader whole = documents.Open(rules);
  for (int i = 0; i < 70; ++i) {
    SampleLoader resumed = documents.Open(rules);
    resumed.Restore(whole.state());
    const Sample expected = whole.Next(), found = resumed.Next();
    ASSERT_EQ(DocumentOf(found), DocumentOf(expected)) << i;
    ASSERT_EQ(found.ordinal(), static_cast<uint64_t>(i));
    ASSERT_EQ(resumed.cursor(), whole.cursor());
  }
}

TEST(DrawRules, UniqueDrawsTakeEverySampleBeforeOneComesAgain) {
  const Documents documents(11);
  SampleLoader loader = documents.Open({.epoch_samples = 15, .extra = DrawRules::Extra::kUnique});
  std::vector<uint32_t> drawn;
  for (int epoch = 0; epoch < 11; ++epoch) {
    const std::vector<uint32_t> found = EpochOf(&loader);
    drawn.insert(drawn.end(), found.begin() + 11, found.end());
  }
  ASSERT_EQ(drawn.size(), 44u);
  for (size_t begin = 0; begin < drawn.size(); begin += 11) {
    const auto first = drawn.begin() + static_cast<ptrdiff_t>(begin);
    EXPECT_EQ(std::set(first, first + 11).size(), 11u);
  }
}

TEST(DrawRules, UniformDrawsTakeEverySampleAsOften) {
  constexpr uint64_t kSamples = 10, kDraws = 20000;
  const MemoryShardSet set(test::NumberedDocuments(kSamples), 3, 1u << 16);
  const std::vector<OrderedSet> sets = {{.chunks = set.chunks()}};
  const auto index = SampleIndex::Count(set, *TwoTokens(), sets);
  const SampleDraws draws({.index = index, .epoch_samples = kSamples + kDraws}, test::TestSeed());
  std::vector<double> counts(kSamples);
  for (uint64_t i = 0; i < kDraws; ++i) {
    const SampleIndex::Place place = draws.ExtraAt(0, i).place;
    ++counts[index->FirstOf(place.chunk) + place.number];
  }
  double chi_square = 0;
  constexpr double kExpected = static_cast<double>(kDraws) / kSamples;
  for (const double count : counts) chi_square += (count - kExpected) * (count - kExpected) / kExpected;
  EXPECT_LT(chi_square, 33.7);  // of 9 degrees of freedom: one time in 10,000
}

TEST(DrawRules, AreNoMatterOfThreadsAndFrames) {
  const std::vector<Chunk> chunks = test::NumberedDocuments(40);
  std::vector<uint32_t> expected;
  for (const uint32_t chunks_per_frame : {1u, 3u, 64u}) {
    const MemoryShardSet set(chunks, chunks_per_frame, 1u << 16);
    const std::vector<OrderedSet> sets = {{.chunks = set.chunks()}};
    const DrawRules rules = {.index = SampleIndex::Count(set, *TwoTokens(), sets),
                             .most_samples = {21},
                             .epoch_samples = 60,
                             .window_draws = 16};
    for (const LoaderOptions& options : {LoaderOptions{.workers = 0}, LoaderOptions{.workers = 3}}) {
      SampleLoader loader(&set, TwoTokens(), {.window_chunks = 5, .sets = sets, .rules = rules}, options);
      std::vector<uint32_t> found = EpochOf(&loader);
      if (expected.empty()) expected = found;
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(DrawRules, TakeAnotherSampleForOneThatCannotBeRead) {
  test::FaultyShardSet set(test::NumberedDocuments(30), 1);
  const std::vector<OrderedSet> sets = {{.chunks = set.chunks()}};
  const DrawRules rules = {.index = SampleIndex::Count(set, *TwoTokens(), sets), .epoch_samples = 90};
  const SampleOrderOptions options = {.seed = 2, .sets = sets, .rules = rules};
  set.corrupt = {3};
  const ChunkOrder order(sets, {.seed = 2});
  uint64_t slot = 0, attempt = 0;
  while (order.At(0, slot).chunk != 3) ++slot;
  while (order.Substitute(order.At(0, slot), attempt) == 3) ++attempt;
  const std::vector<Chunk> chunks = test::NumberedDocuments(30);
  const Chunk &lost = chunks[3], &taken = chunks[order.Substitute(order.At(0, slot), attempt)];
  testing::internal::CaptureStderr();
  SampleLoader loader(&set, TwoTokens(), options, {.skip_bad_chunks = 1});
  const std::vector<uint32_t> found = EpochOf(&loader);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(found.size(), 90 - lost.segments.size() + taken.segments.size());
  for (const uint32_t document : lost.tokens) EXPECT_THAT(found, testing::Not(testing::Contains(document)));
  EXPECT_EQ(loader.bad_chunks(), std::vector<uint64_t>{3});
}

TEST(DrawRules, AnEpochIsCountedWithWhatTakesThePlacesOfBadChunks) {
  for (uint64_t bad = 0; bad < 4; ++bad) {
    SCOPED_TRACE("chunk " + std::to_string(bad));
    test::FaultyShardSet set(test::NumberedDocuments(60), 1);
    set.corrupt = {bad, set.chunks() - 1};
    const uint64_t half = set.chunks() / 2, rest = set.chunks() - half;
    const std::vector<OrderedSet> sets = {{.chunks = half, .weight = half},
                                          {.first_chunk = half, .chunks = rest, .weight = rest, .number = 1}};
    const DrawRules rules = {.index = SampleIndex::Count(set, *TwoTokens(), sets, /*skip_bad=*/true),
                             .most_samples = {0, 9}};
    testing::internal::CaptureStderr();
    SampleLoader loader(&set, TwoTokens(), {.seed = 5, .sets = sets, .rules = rules}, {.skip_bad_chunks = 2});
    EXPECT_EQ(loader.CountEpoch().samples, EpochOf(&loader).size());
    testing::internal::GetCapturedStderr();
  }
}

TEST(DrawRules, MakeAnotherIdentity) {
  const Documents documents(20);
  const std::set<std::string> all = {
      documents.Open({}).fingerprint(),
      documents.Open({.most_samples = {5}}).fingerprint(),
      documents.Open({.most_samples = {6}}).fingerprint(),
      documents.Open({.epoch_samples = 30}).fingerprint(),
      documents.Open({.epoch_samples = 31}).fingerprint(),
      documents.Open({.epoch_samples = 31, .extra = DrawRules::Extra::kUnique}).fingerprint(),
      documents.Open({.step_samples = 4}).fingerprint()};
  EXPECT_EQ(all.size(), 7u);
}

TEST(DrawRules, OtherNumbersOfSamplesAreAnotherIdentityWhereTheOrderDependsOnThem) {
  const auto fingerprint = [](const std::set<uint64_t>& unreadable, const DrawRules& asked) {
    test::FaultyShardSet set(test::NumberedDocuments(30), 1);
    set.corrupt = unreadable;
    const std::vector<OrderedSet> sets = {{.chunks = set.chunks(), .weight = set.chunks()}};
    DrawRules rules = asked;
    rules.index = SampleIndex::Count(set, *TwoTokens(), sets, /*skip_bad=*/true);
    return SampleLoader(&set, TwoTokens(), {.sets = sets, .rules = rules}, {.skip_bad_chunks = 1})
        .fingerprint();
  };
  testing::internal::CaptureStderr();
  EXPECT_NE(fingerprint({3}, {.step_samples = 4}), fingerprint({}, {.step_samples = 4}));
  EXPECT_NE(fingerprint({3}, {.epoch_samples = 90}), fingerprint({}, {.epoch_samples = 90}));
  EXPECT_NE(fingerprint({3}, {.most_samples = {5}}), fingerprint({}, {.most_samples = {5}}));
  EXPECT_EQ(fingerprint({3}, {}), fingerprint({}, {}));
  testing::internal::GetCapturedStderr();
}

TEST(DrawRules, ThatChangeNothingLeaveTheIdentity) {
  const Documents documents(20);
  SampleOrderOptions plain = documents.Order({});
  plain.rules = {};
  plain.numbered = false;
  const std::string fingerprint = SampleLoader(&documents.set(), TwoTokens(), plain).fingerprint();
  EXPECT_EQ(documents.Open({}).fingerprint(), fingerprint);
  EXPECT_EQ(documents.Open({.most_samples = {20}, .epoch_samples = 20}).fingerprint(), fingerprint);
}

}  // namespace
}  // namespace trainwright

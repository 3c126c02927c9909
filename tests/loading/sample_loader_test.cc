/// The loader with cutters of its own: what it does for text it does for any records.
#include "lib/loading/sample_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/loading/contrastive_parts.h"
#include "lib/loading/joined_shard_set.h"
#include "lib/loading/sample_stream.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::FaultyShardSet;
using test::MemoryShardSet;

/// Records of a kind that only PairCutter knows: each is two documents, one after the other in a chunk.
constexpr auto kPairs = static_cast<RecordKind>(17);
enum PairTag : uint32_t { kFirst = 1, kSecond = 2 };

/// A sample is a pair: two spans that are told apart by their tags. It counts by the tokens of the second
/// one. Those with `leave_out` in front are not taken.
class PairCutter final : public SampleCutter {
 public:
  PairCutter(RecordKind records, int64_t sequence_tokens, uint32_t leave_out = kNoId)
      : sequence_tokens_(sequence_tokens), leave_out_(leave_out) {
    if (records != kPairs) throw Error(ErrorCode::kBadInput, "shards", "hold no pairs");
  }
  void Cut(const Chunk& chunk, SampleWindow* window) const override {
    size_t token = 0;
    for (size_t i = 0; i + 1 < chunk.segments.size(); i += 2) {
      const uint32_t first = chunk.segments[i].tokens, second = chunk.segments[i + 1].tokens;
      const auto tokens = std::span(chunk.tokens).subspan(token, first + second);
      token += tokens.size();
      if (tokens[0] == leave_out_) continue;
      const uint64_t begin = window->tokens.size();
      const auto span_begin = static_cast<uint32_t>(window->spans.size());
      window->tokens.Append(tokens);
      window->spans.push_back({.begin = begin, .tokens = first, .next_token = kNoId, .tag = kFirst});
      window->spans.push_back(
          {.begin = begin + first, .tokens = second, .next_token = kNoId, .tag = kSecond});
      window->samples.push_back(
          {.span_begin = span_begin, .span_end = span_begin + 2, .tokens = first + second, .labels = second});
    }
  }
  int64_t sequence_tokens() const override { return sequence_tokens_; }
  std::string Identity() const override { return "pairs but " + std::to_string(leave_out_) + "\n"; }
  bool HasLabel(const ShardTotals& totals) const override { return leave_out_ == kNoId && totals.tokens > 0; }
  std::string NothingToLearn() const override { return "hold no pair, so there is nothing to learn"; }

 private:
  int64_t sequence_tokens_;
  uint32_t leave_out_;
};

/// Chunks of two pairs: pair p is the document p, p and the document 1000 + p.
std::vector<Chunk> PairChunks(uint32_t count, uint32_t first_pair = 0) {
  std::vector<Chunk> chunks;
  for (uint32_t chunk = 0; chunk < count; ++chunk) {
    const uint32_t p = first_pair + 2 * chunk;
    chunks.push_back({.segments = {{.tokens = 2}, {.tokens = 1}, {.tokens = 2}, {.tokens = 1}},
                      .tokens = {p, p, 1000 + p, p + 1, p + 1, 1001 + p}});
  }
  return chunks;
}

class FaultyPairs : public FaultyShardSet {
 public:
  FaultyPairs(uint32_t chunks, uint32_t chunks_per_frame)
      : FaultyShardSet(PairChunks(chunks), chunks_per_frame) {}
};

std::unique_ptr<const SampleCutter> Pairs() {
  return std::make_unique<PairCutter>(kPairs, 3);
}

/// Which pair a sample is, by its tokens.
uint64_t PairOf(const Sample& sample) {
  PackedBatch batch;
  sample.AppendTo(&batch);
  return static_cast<uint64_t>(batch.tokens.at(0));
}

std::vector<uint64_t> PairsOf(const std::vector<Sample>& samples) {
  std::vector<uint64_t> pairs;
  for (const Sample& sample : samples) pairs.push_back(PairOf(sample));
  return pairs;
}

/// The pairs of the stream's first epochs by the definition of the order: two samples a chunk.
/// \param readable of a chunk
template <typename Readable>
std::vector<uint64_t> ExpectedPairs(uint64_t chunks, const SampleOrderOptions& options, uint64_t epochs,
                                    const Readable& readable) {
  const ChunkOrder order({{.chunks = chunks}}, {.seed = options.seed});
  std::vector<uint64_t> expected;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    for (uint64_t begin = 0; begin < chunks; begin += options.window_chunks) {
      std::vector<uint64_t> window;
      for (uint64_t slot = begin; slot < std::min(begin + options.window_chunks, chunks); ++slot) {
        const ChunkDraw draw = order.At(epoch, slot);
        uint64_t chunk = draw.chunk;
        for (uint64_t attempt = 0; !readable(chunk); ++attempt) chunk = order.Substitute(draw, attempt);
        window.insert(window.end(), {2 * chunk, 2 * chunk + 1});
      }
      const KeyedPermutation samples(
          window.size(), Rng(options.seed, "sample order", epoch).Bits(begin / options.window_chunks));
      for (uint64_t i = 0; i < window.size(); ++i) expected.push_back(window[samples(i)]);
    }
  }
  return expected;
}

/// Without workers, with one, and with windows ahead of several.
const std::vector<LoaderOptions> kLoaders = {
    {.workers = 0}, {.workers = 1, .prefetch = 2}, {.workers = 3, .prefetch = 2, .cache_bytes = 400}};

TEST(SampleLoader, GivesTheSamplesOfAnyCutterInTheDefinedOrder) {
  const MemoryShardSet set(PairChunks(23), 3, 1u << 16, kPairs);
  const SampleOrderOptions order{.seed = 11, .window_chunks = 4};
  const std::vector<uint64_t> expected = ExpectedPairs(23, order, 3, [](uint64_t) { return true; });
  for (const LoaderOptions& options : kLoaders) {
    SampleLoader loader(&set, Pairs(), order, options);
    for (size_t i = 0; i < expected.size(); ++i) {
      const Sample sample = loader.Next();
      ASSERT_EQ(PairOf(sample), expected[i]) << "sample " << i << ", workers " << options.workers;
    }
    EXPECT_EQ(loader.cursor(), (SampleCursor{.epoch = 3}));
  }
}

TEST(SampleLoader, ReadsOnceWhatItLooksAtBeforeItsTurn) {
  FaultyPairs set(6, 1);
  SampleLoader loader(&set, Pairs(), {.window_chunks = 2, .shuffle = false}, {.workers = 0});
  loader.NextStep(3, /*drop_last=*/false);
  EXPECT_TRUE(loader.HoldsInEpoch(5));
  EXPECT_FALSE(loader.HoldsInEpoch(10));
  EXPECT_EQ(PairsOf(loader.NextStep(9, /*drop_last=*/false)),
            (std::vector<uint64_t>{3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(set.reads.load(), 6) << "each of the six chunks";
}

TEST(SampleLoader, LookingForTheEndOfAnEpochChangesNoSample) {
  const MemoryShardSet set(PairChunks(23), 3, 1u << 16, kPairs);
  const SampleOrderOptions order{.seed = 11, .window_chunks = 4};
  const std::vector<uint64_t> expected = ExpectedPairs(23, order, 3, [](uint64_t) { return true; });
  for (const LoaderOptions& options : kLoaders) {
    SampleLoader loader(&set, Pairs(), order, options);
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto left = static_cast<int64_t>(46 - i % 46);
      if (i % 5 == 0) {
        ASSERT_EQ(loader.HoldsInEpoch(20), left >= 20) << "sample " << i << ", workers " << options.workers;
      }
      ASSERT_EQ(PairOf(loader.Next()), expected[i]) << "sample " << i << ", workers " << options.workers;
    }
  }
}

TEST(SampleLoader, HandsOutSpansTagsAndLabelsAsTheCutterMadeThem) {
  const MemoryShardSet set(PairChunks(5), 2, 1u << 16, kPairs);
  SampleLoader loader(&set, Pairs(), {.shuffle = false});
  for (uint32_t pair = 0; pair < 10; ++pair) {
    const Sample sample = loader.Next();
    EXPECT_EQ(sample.tokens(), 3);
    EXPECT_EQ(sample.num_labels(), 1);
    ASSERT_EQ(sample.spans().size(), 2u);
    EXPECT_EQ(sample.spans()[0].tag, kFirst);
    EXPECT_EQ(sample.spans()[1].tag, kSecond);
    PackedBatch batch;
    sample.AppendTo(&batch);
    EXPECT_THAT(batch.tokens, testing::ElementsAre(pair, pair, 1000 + pair));
    EXPECT_THAT(batch.span_starts, testing::ElementsAre(0, 2, 3));
  }
}

TEST(SampleLoader, PutsOtherRecordsInThePlacesOfChunksThatCannotBeRead) {
  FaultyPairs set(30, 1);
  set.corrupt = {4, 19};
  const SampleOrderOptions order{.seed = 3, .window_chunks = 7};
  const std::vector<uint64_t> expected =
      ExpectedPairs(30, order, 2, [&](uint64_t chunk) { return !set.corrupt.contains(chunk); });
  for (LoaderOptions options : kLoaders) {
    options.skip_bad_chunks = 2;
    testing::internal::CaptureStderr();
    SampleLoader loader(&set, Pairs(), order, options);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(PairOf(loader.Next()), expected[i]) << "sample " << i << ", workers " << options.workers;
    }
    testing::internal::GetCapturedStderr();
    EXPECT_THAT(loader.bad_chunks(), testing::ElementsAre(4, 19));
  }
}

TEST(SampleLoader, MixesSetsByTheirWeightsForAnyCutter) {
  std::vector<NamedShardSet> sets;
  sets.push_back({"a", std::make_unique<MemoryShardSet>(PairChunks(6), 2, 1u << 16, kPairs)});
  sets.push_back({"b", std::make_unique<MemoryShardSet>(PairChunks(9, 500), 2, 1u << 16, kPairs)});
  const auto joined = JoinShardSets(std::move(sets));
  const SampleOrderOptions options{
      .seed = 5,
      .window_chunks = 4,
      .sets = {{.chunks = 6, .weight = 3}, {.first_chunk = 6, .chunks = 9, .number = 1}}};
  const ChunkOrder order(options.sets, {.seed = 5});
  for (const LoaderOptions& loader_options : kLoaders) {
    SampleLoader loader(joined.get(), Pairs(), options, loader_options);
    std::map<uint64_t, uint64_t> expected, found;  // times a pair came in three epochs
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      for (uint64_t slot = 0; slot < order.slots(); ++slot) {
        const ChunkDraw draw = order.At(epoch, slot);
        const uint64_t pair = draw.set == 0 ? 2 * draw.chunk : 500 + 2 * (draw.chunk - 6);
        ++expected[pair];
        ++expected[pair + 1];
      }
    }
    while (loader.cursor().epoch < 3) {
      const Sample sample = loader.Next();
      ++found[PairOf(sample)];
      ASSERT_EQ(sample.set(), PairOf(sample) < 500 ? 0u : 1u);
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(SampleLoader, CountsAnEpochByWhatTheCutterSays) {
  const MemoryShardSet set(PairChunks(7), 2, 1u << 16, kPairs);
  const SampleLoader loader(&set, std::make_unique<PairCutter>(kPairs, 3, /*leave_out=*/4), {});
  const EpochCounts counts = loader.CountEpoch();
  EXPECT_EQ(counts.samples, 13u);
  EXPECT_EQ(counts.tokens, 39u);
  EXPECT_EQ(counts.labels, 13u);
}

TEST(SampleLoader, FingerprintTellsCuttersApart) {
  const MemoryShardSet set(PairChunks(7), 2, 1u << 16, kPairs);
  const auto fingerprint = [&](int64_t sequence_tokens, uint32_t leave_out) {
    return SampleLoader(&set, std::make_unique<PairCutter>(kPairs, sequence_tokens, leave_out), {})
        .fingerprint();
  };
  const std::set<std::string> all = {fingerprint(3, kNoId), fingerprint(4, kNoId), fingerprint(3, 4)};
  EXPECT_EQ(all.size(), 3u);
}

TEST(SampleLoader, ReadsSomeOfTheSetsAlone) {
  const MemoryShardSet set(PairChunks(9), 3, 1u << 16, kPairs);
  const SampleOrderOptions options{.sets = {{.first_chunk = 6, .chunks = 3, .number = 4}}};
  SampleLoader loader(&set, Pairs(), options);
  std::set<uint64_t> pairs;
  while (loader.cursor().epoch == 0) {
    const Sample sample = loader.Next();
    pairs.insert(PairOf(sample));
    ASSERT_EQ(sample.set(), 4u);
  }
  EXPECT_THAT(pairs, testing::ElementsAre(12, 13, 14, 15, 16, 17));
  EXPECT_EQ(loader.CountEpoch().samples, 6u);
}

TEST(SampleLoader, RefusesASetOfNothingToLearnBesideOthers) {
  const Chunk one_pair{.segments = {{.tokens = 1}, {.tokens = 1}}, .tokens = {7, 8}},
      other_pair{.segments = {{.tokens = 1}, {.tokens = 1}}, .tokens = {9, 8}};
  const MemoryShardSet set({one_pair, other_pair}, 1, 1u << 16, kPairs);
  const auto code = [&](uint64_t first_chunk) {
    return CodeOf([&] {
      SampleLoader(&set, std::make_unique<PairCutter>(kPairs, 3, /*leave_out=*/7),
                   {.sets = {{.first_chunk = first_chunk, .chunks = 1}}});
    });
  };
  EXPECT_EQ(code(0), ErrorCode::kBadInput);
  EXPECT_EQ(code(1), std::nullopt);
}

TEST(SampleLoader, FingerprintTellsSetsOfOneSizeApart) {
  const MemoryShardSet set(PairChunks(6), 3, 1u << 16, kPairs);
  const auto fingerprint = [&](uint64_t first_chunk) {
    return SampleLoader(&set, Pairs(), {.sets = {{.first_chunk = first_chunk, .chunks = 3}}}).fingerprint();
  };
  EXPECT_NE(fingerprint(0), fingerprint(3));
}

TEST(SampleLoader, RefusesRecordsThatItsCutterDoesNotKnow) {
  const MemoryShardSet text(PairChunks(2), 1), pairs(PairChunks(2), 1, 1u << 16, kPairs),
      contrastive(PairChunks(2), 1, 1u << 16, RecordKind::kContrastive);
  const auto cut_pairs = [](const ShardSet& set) {
    const RecordKind kind = set.header().record_kind;
    return CodeOf([&] { SampleLoader(&set, std::make_unique<PairCutter>(kind, 3), {}); });
  };
  EXPECT_EQ(cut_pairs(pairs), std::nullopt);
  EXPECT_EQ(cut_pairs(text), ErrorCode::kBadInput);
  EXPECT_EQ(CodeOf([&] { SampleStream(&text, {}); }), std::nullopt);
  EXPECT_EQ(CodeOf([&] { SampleStream(&pairs, {}); }), ErrorCode::kBadInput);
  EXPECT_EQ(CodeOf([&] { SampleStream(&contrastive, {}); }), ErrorCode::kBadInput);
}

TEST(SampleLoader, RefusesSetsOfWhichTheCutterTakesNothing) {
  const Chunk one_pair{.segments = {{.tokens = 1}, {.tokens = 1}}, .tokens = {7, 8}};
  const MemoryShardSet set({one_pair, one_pair}, 1, 1u << 16, kPairs), none({}, 1, 1u << 16, kPairs);
  const auto message = [](const ShardSet& of, uint32_t leave_out) {
    return test::MessageOf(
        [&] { SampleLoader(&of, std::make_unique<PairCutter>(kPairs, 3, leave_out), {}); });
  };
  EXPECT_EQ(message(set, 8), "");
  EXPECT_THAT(message(set, 7), testing::HasSubstr("hold no pair, so there is nothing to learn"));
  EXPECT_THAT(message(none, 8), testing::HasSubstr("hold no pair, so there is nothing to learn"));
}

/// A contrastive record is a sample: a span for each of its texts, tagged with its role.
class ContrastiveCutter final : public SampleCutter {
 public:
  void Cut(const Chunk& chunk, SampleWindow* window) const override {
    for (const ContrastiveRecord& record : ContrastiveRecordsOf(chunk)) {
      SampleWindow::Entry sample{.span_begin = static_cast<uint32_t>(window->spans.size()), .labels = 1};
      const auto add = [&](TextRole role, const ContrastiveText& text) {
        const auto tokens = static_cast<uint32_t>(text.tokens.size());
        window->spans.push_back({.begin = window->tokens.size(),
                                 .tokens = tokens,
                                 .next_token = kNoId,
                                 .tag = static_cast<uint32_t>(role)});
        window->tokens.Append(text.tokens);
        sample.tokens += tokens;
      };
      add(TextRole::kQuery, record.query);
      for (const ContrastiveText& text : record.positives) add(TextRole::kPositive, text);
      for (const ContrastiveText& text : record.negatives) add(TextRole::kNegative, text);
      sample.span_end = static_cast<uint32_t>(window->spans.size());
      window->samples.push_back(sample);
    }
  }
  int64_t sequence_tokens() const override { return 100; }
  std::string Identity() const override { return "contrastive\n"; }
  bool HasLabel(const ShardTotals& totals) const override { return totals.documents > 0; }
  std::string NothingToLearn() const override { return "hold no record"; }
};

TEST(SampleLoader, ReadsContrastiveRecordsWhole) {
  // Record r: the query r, the positives 100 + r and 200 + r, and of odd records the negative 300 + r.
  std::vector<Chunk> chunks;
  for (uint32_t r = 0; r < 12; ++r) {
    Chunk& chunk = chunks.emplace_back();
    chunk.segments = {
        {.tokens = 1}, {.tokens = 1, .flags = kSegmentPositive}, {.tokens = 1, .flags = kSegmentPositive}};
    chunk.tokens = {r, 100 + r, 200 + r};
    if (r % 2 == 0) continue;
    chunk.segments.push_back({.tokens = 1, .flags = kSegmentNegative});
    chunk.tokens.push_back(300 + r);
  }
  const MemoryShardSet set(chunks, 5, 1u << 16, RecordKind::kContrastive);
  SampleLoader loader(&set, std::make_unique<ContrastiveCutter>(), {.seed = 2, .window_chunks = 5},
                      {.workers = 1, .prefetch = 2});
  std::set<int64_t> seen;
  while (loader.cursor().epoch == 0) {
    const Sample sample = loader.Next();
    PackedBatch batch;
    sample.AppendTo(&batch);
    const int64_t r = batch.tokens.at(0);
    seen.insert(r);
    std::vector<int64_t> expected = {r, 100 + r, 200 + r};
    if (r % 2 == 1) expected.push_back(300 + r);
    EXPECT_EQ(batch.tokens, expected);
    ASSERT_EQ(sample.spans().size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const TextRole role = i == 0 ? TextRole::kQuery : i < 3 ? TextRole::kPositive : TextRole::kNegative;
      EXPECT_EQ(sample.spans()[i].tag, static_cast<uint32_t>(role));
    }
  }
  EXPECT_EQ(seen.size(), 12u);
}

/// Two loaders of a run, over other sets with other seeds and cutters.
struct TwoLoaders {
  TwoLoaders(const ShardSet* text, const ShardSet* pairs)
      : main(text, {.sequence_tokens = 2, .seed = 1, .window_chunks = 5}, {.skip_bad_chunks = 1}),
        others(pairs, Pairs(), {.seed = 2, .window_chunks = 3}, {.prefetch = 2, .skip_bad_chunks = 1}) {}
  LoaderStates states() const { return {{kMainLoader, main.state()}, {"pairs", others.state()}}; }
  void Restore(const LoaderStates& states) {
    main.Restore(states.at(kMainLoader));
    others.Restore(states.at("pairs"));
  }
  /// Each at its own pace.
  std::vector<uint64_t> Step() {
    std::vector<uint64_t> step = PairsOf(main.NextStep(3, false));
    for (const uint64_t pair : PairsOf(others.NextStep(5, false))) step.push_back(pair);
    return step;
  }

  SampleStream main;
  SampleLoader others;
};

TEST(LoaderStates, TwoLoadersOfARunGoOnFromTheirOwnPlaces) {
  std::vector<Chunk> documents;
  for (uint32_t i = 0; i < 20; ++i) documents.push_back({.segments = {{.tokens = 2}}, .tokens = {i, i}});
  FaultyShardSet text(documents, 1);
  FaultyPairs pairs(13, 1);
  text.corrupt = {6};
  pairs.corrupt = {2};
  testing::internal::CaptureStderr();
  TwoLoaders whole(&text, &pairs);
  std::vector<std::vector<uint64_t>> expected;
  for (int step = 0; step < 30; ++step) expected.push_back(whole.Step());
  auto resumed = std::make_unique<TwoLoaders>(&text, &pairs);
  for (size_t step = 0; step < expected.size(); ++step) {
    if (step % 4 == 3) {  // killed, and resumed from what a checkpoint holds
      nlohmann::ordered_json json;
      EncodeLoaderStates(resumed->states(), &json);
      const LoaderStates read = DecodeLoaderStates(nlohmann::json::parse(json.dump()), "state");
      EXPECT_EQ(read, resumed->states());
      resumed = std::make_unique<TwoLoaders>(&text, &pairs);
      resumed->Restore(read);
    }
    ASSERT_EQ(resumed->Step(), expected[step]) << "step " << step;
  }
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(resumed->main.bad_chunks(), testing::ElementsAre(6));
  EXPECT_THAT(resumed->others.bad_chunks(), testing::ElementsAre(2));
}

TEST(LoaderStates, OneLoaderIsWrittenAsBeforeThereWereSeveral) {
  nlohmann::ordered_json json = {
      {"step", 7}, {"cursor", nullptr}, {"order_fingerprint", nullptr}, {"threads", 2}};
  LoaderStates states = {
      {kMainLoader, {.cursor = {.epoch = 1, .window = 2, .sample = 3}, .order_fingerprint = "ab"}}};
  EncodeLoaderStates(states, &json);
  EXPECT_EQ(json.dump(),
            R"({"step":7,"cursor":{"epoch":1,"window":2,"sample":3},"order_fingerprint":"ab","threads":2})");
  states.at(kMainLoader).bad_chunks = {4, 9};
  EncodeLoaderStates(states, &json);
  EXPECT_EQ(json.dump(),
            R"({"step":7,"cursor":{"epoch":1,"window":2,"sample":3},"order_fingerprint":"ab","threads":2,)"
            R"("bad_chunks":[4,9]})");
}

TEST(LoaderStates, TellHowManyNumberedSamplesWereTaken) {
  const MemoryShardSet set(PairChunks(5), 2, 1u << 16, kPairs);
  for (const bool numbered : {false, true}) {
    SampleLoader loader(&set, Pairs(), {.numbered = numbered});
    for (uint64_t i = 0; i < 13; ++i) EXPECT_EQ(loader.Next().ordinal(), numbered ? i : 0);
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    EncodeLoaderStates({{kMainLoader, loader.state()}}, &json);
    EXPECT_EQ(json.at("cursor").contains("taken"), numbered);
    const LoaderStates read = DecodeLoaderStates(nlohmann::json::parse(json.dump()), "state");
    EXPECT_EQ(read.at(kMainLoader).cursor.taken, numbered ? 13u : 0u);
    EXPECT_EQ(read.at(kMainLoader), loader.state());
  }
}

TEST(LoaderStates, RefusesStatesThatNoLoaderWrites) {
  const std::string fields = R"("cursor":{"epoch":1,"window":2,"sample":3},"order_fingerprint":"ab")";
  const auto code = [](const std::string& text) {
    return CodeOf([&] { DecodeLoaderStates(nlohmann::json::parse(text), "state"); });
  };
  EXPECT_EQ(code("{" + fields + "}"), std::nullopt);
  EXPECT_EQ(code("{" + fields + R"(,"loaders":{"other":{)" + fields + "}}}"), std::nullopt);
  EXPECT_EQ(code("{" + fields + R"(,"loaders":{"data":{)" + fields + "}}}"), ErrorCode::kBadInput);
  EXPECT_EQ(code(R"({"cursor":{"epoch":-1,"window":2,"sample":3},"order_fingerprint":"ab"})"),
            ErrorCode::kBadInput);
  EXPECT_THROW(DecodeLoaderStates(nlohmann::json::parse(R"({"cursor":{}})"), "state"),
               nlohmann::json::exception);
}

TEST(SampleLoader, RefusesTheStateOfAnotherOrder) {
  const MemoryShardSet set(PairChunks(5), 2, 1u << 16, kPairs);
  const SampleLoader first(&set, Pairs(), {.seed = 1});
  SampleLoader other(&set, Pairs(), {.seed = 2});
  EXPECT_EQ(CodeOf([&] { other.Restore(first.state()); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright

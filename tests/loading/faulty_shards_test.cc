/// Shards that cannot be read, or not soon: what training makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <thread>

#include "lib/base/rng.h"
#include "lib/io/byte_sink.h"
#include "lib/loading/frame_cache.h"
#include "lib/loading/joined_shard_set.h"
#include "lib/loading/mixture_weights.h"
#include "lib/loading/sample_stream.h"
#include "lib/loading/spooled_shard_set.h"
#include "tests/loading/delivered_epoch.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MemoryShardSet;
using test::MessageOf;

/// Chunk i is one document of the tokens i, i: one sample a chunk, told apart by its tokens.
std::vector<Chunk> TwinChunks(uint32_t count) {
  std::vector<Chunk> chunks;
  for (uint32_t i = 0; i < count; ++i) chunks.push_back({.segments = {{.tokens = 2}}, .tokens = {i, i}});
  return chunks;
}

/// TwinChunks, some of them corrupt or slow.
class FaultyTwins : public test::FaultyShardSet {
 public:
  FaultyTwins(uint32_t chunks, uint32_t chunks_per_frame)
      : FaultyShardSet(TwinChunks(chunks), chunks_per_frame) {}
};

uint64_t ChunkOf(const Sample& sample) {
  PackedBatch batch;
  sample.AppendTo(&batch);
  return static_cast<uint64_t>(batch.tokens[0]);
}

TEST(SampleStream, NamesShardFrameAndOffsetOfACorruptChunk) {
  FaultyTwins set(12, 3);
  set.corrupt = {7};
  for (const int workers : {0, 2}) {
    SampleStream stream(&set, {.sequence_tokens = 2, .window_chunks = 4}, {.workers = workers});
    const std::string message = MessageOf([&] {
      for (int i = 0; i < 12; ++i) stream.Next();
    });
    EXPECT_THAT(message, testing::HasSubstr("shard-7.tws"));
    EXPECT_THAT(message, testing::HasSubstr("shard 0, frame 2, byte 99"));
    EXPECT_THAT(message, testing::HasSubstr("--skip-bad-chunks"));
  }
}

/// The chunk of every sample of the stream's first epochs by the page's definition.
std::vector<uint64_t> ExpectedChunks(const FaultyTwins& set, const SampleStreamOptions& options,
                                     uint64_t epochs) {
  const auto readable = [&](uint64_t chunk) {
    const uint64_t per_frame = set.header().chunks_per_frame, frame = chunk / per_frame;
    return std::none_of(set.corrupt.begin(), set.corrupt.end(),
                        [&](uint64_t bad) { return bad / per_frame == frame; });
  };
  const ChunkOrder order({{.chunks = set.chunks()}}, {.seed = options.seed});
  std::vector<uint64_t> expected;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    for (uint64_t begin = 0; begin < set.chunks(); begin += options.window_chunks) {
      std::vector<uint64_t> window;
      for (uint64_t slot = begin; slot < std::min(begin + options.window_chunks, set.chunks()); ++slot) {
        const ChunkDraw draw = order.At(epoch, slot);
        uint64_t chunk = draw.chunk;
        for (uint64_t attempt = 0; !readable(chunk); ++attempt) chunk = order.Substitute(draw, attempt);
        window.push_back(chunk);
      }
      const KeyedPermutation samples(
          window.size(), Rng(options.seed, "sample order", epoch).Bits(begin / options.window_chunks));
      for (uint64_t i = 0; i < window.size(); ++i) expected.push_back(window[samples(i)]);
    }
  }
  return expected;
}

TEST(SampleStream, PutsTheDefinedChunksInPlaceOfBadOnes) {
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE("seed " + std::to_string(test::TestSeed()) + ", round " + std::to_string(round));
    FaultyTwins set(5 + static_cast<uint32_t>(random() % 60), 1 + static_cast<uint32_t>(random() % 4));
    const SampleStreamOptions options{
        .sequence_tokens = 2, .seed = random(), .window_chunks = 1 + random() % 9};
    for (uint64_t bad = random() % 3; bad > 0; --bad) set.corrupt.insert(random() % set.chunks());
    if (set.corrupt.size() * set.header().chunks_per_frame >= set.chunks()) continue;
    const std::vector<uint64_t> expected = ExpectedChunks(set, options, 3);
    const LoaderOptions loader{.workers = static_cast<int>(random() % 3),
                               .cache_bytes = random() % 2 == 0 ? 0 : 500,
                               .skip_bad_chunks = 20};
    testing::internal::CaptureStderr();
    auto stream = std::make_unique<SampleStream>(&set, options, loader);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (random() % 20 == 0) {  // killed, and resumed from its state alone
        const SampleCursor cursor = stream->cursor();
        const std::vector<uint64_t> bad = stream->bad_chunks();
        stream = std::make_unique<SampleStream>(&set, options, loader);
        stream->set_bad_chunks(bad);
        stream->Seek(cursor);
      }
      ASSERT_EQ(ChunkOf(stream->Next()), expected[i]) << "sample " << i;
    }
    testing::internal::GetCapturedStderr();
  }
}

TEST(SampleStream, GoesOnWithoutAChunkThatWasBadBeforeItWasResumed) {
  FaultyTwins set(20, 1);
  set.corrupt = {4};
  const SampleStreamOptions options{.sequence_tokens = 2, .seed = 3, .window_chunks = 5};
  const std::vector<uint64_t> expected = ExpectedChunks(set, options, 2);
  testing::internal::CaptureStderr();
  auto first = std::make_unique<SampleStream>(&set, options, LoaderOptions{.skip_bad_chunks = 1});
  for (size_t i = 0; i < 20; ++i) first->Next();
  const std::vector<uint64_t> bad = first->bad_chunks();
  const SampleCursor cursor = first->cursor();
  ASSERT_THAT(bad, testing::ElementsAre(4));
  first.reset();        // joins its workers, which read the set
  set.corrupt.clear();  // the file was restored meanwhile
  SampleStream resumed(&set, options, {.skip_bad_chunks = 1});
  resumed.set_bad_chunks(bad);
  resumed.Seek(cursor);
  for (size_t i = 20; i < 40; ++i) ASSERT_EQ(ChunkOf(resumed.Next()), expected[i]);
  testing::internal::GetCapturedStderr();
}

TEST(SampleStream, AChunkThatWasBadStaysOutThoughItCanBeReadAgain) {
  for (const int workers : {0, 2}) {
    FaultyTwins set(20, 1);
    set.corrupt = {4, 11};
    const SampleStreamOptions options{.sequence_tokens = 2, .seed = 3, .window_chunks = 5};
    const std::vector<uint64_t> expected = ExpectedChunks(set, options, 4);
    testing::internal::CaptureStderr();
    SampleStream stream(&set, options, {.workers = workers, .prefetch = 2, .skip_bad_chunks = 2});
    for (size_t i = 0; i < expected.size(); ++i) {
      if (i == 20) set.restored = true;
      ASSERT_EQ(ChunkOf(stream.Next()), expected[i]) << "sample " << i << ", workers " << workers;
    }
    testing::internal::GetCapturedStderr();
  }
}

TEST(SampleStream, AStepThatCouldNotBeReadWholeIsReadAgain) {
  for (const int workers : {0, 1, 3}) {
    const SampleStreamOptions options{.sequence_tokens = 2, .seed = 5, .window_chunks = 3};
    FaultyTwins sound(20, 1), set(20, 1);
    SampleStream expected(&sound, options, {.workers = workers}), stream(&set, options, {.workers = workers});
    int failures = 0;
    for (int step = 0; step < 30; ++step) {
      if (step % 4 == 0) set.fails_at = set.reads + 2 + step % 3;
      std::vector<Sample> samples;
      while (samples.empty()) {
        try {
          samples = stream.NextStep(7, /*drop_last=*/step % 2 == 1);
        } catch (const std::bad_alloc&) {
          ++failures;
        }
      }
      const std::vector<Sample> wanted = expected.NextStep(7, step % 2 == 1);
      ASSERT_EQ(samples.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i)
        ASSERT_EQ(ChunkOf(samples[i]), ChunkOf(wanted[i])) << "step " << step;
    }
    EXPECT_GT(failures, 2);
  }
}

TEST(SampleStream, CountsTheWindowsThatSamplesKeep) {
  FaultyTwins set(64, 1);
  const SampleStreamOptions options{.sequence_tokens = 2, .window_chunks = 4};
  SampleStream dropped(&set, options, {.workers = 0}), kept(&set, options, {.workers = 0});
  std::vector<Sample> samples;
  for (int i = 0; i < 64; ++i) {
    dropped.Next();
    samples.push_back(kept.Next());
  }
  EXPECT_GT(kept.loader_counts().most_held_bytes, 4 * dropped.loader_counts().most_held_bytes);
}

TEST(SampleStream, LogsEachBadChunkOnceAndFailsAtTheOneTooMany) {
  FaultyTwins set(40, 1);
  set.corrupt = {3, 17, 30};
  const SampleStreamOptions options{.sequence_tokens = 2, .window_chunks = 4};
  const auto read = [&](uint64_t skip_bad_chunks, int samples) {
    SampleStream stream(&set, options, {.skip_bad_chunks = skip_bad_chunks});
    for (int i = 0; i < samples; ++i) stream.Next();
  };
  testing::internal::CaptureStderr();
  read(3, 120);
  const std::string log = testing::internal::GetCapturedStderr();
  for (const char* chunk : {"chunk 3 ", "chunk 17 ", "chunk 30 "}) {
    const size_t found = log.find(std::string("the place of ") + chunk);
    EXPECT_NE(found, std::string::npos) << chunk;
    EXPECT_EQ(log.find(std::string("the place of ") + chunk, found + 1), std::string::npos) << chunk;
  }
  testing::internal::CaptureStderr();
  EXPECT_EQ(CodeOf([&] { read(2, 40); }), ErrorCode::kBadInput);
  EXPECT_THAT(MessageOf([&] { read(2, 40); }), testing::HasSubstr("--skip-bad-chunks allows 2"));
  testing::internal::GetCapturedStderr();
  SampleStream other(&set, options, {.skip_bad_chunks = 1});
  EXPECT_EQ(CodeOf([&] { other.set_bad_chunks({3, 17}); }), ErrorCode::kUsage);
}

/// Chunk i is 1 + i mod 5 documents of two tokens.
std::vector<Chunk> UnlikeChunks(uint32_t count) {
  std::vector<Chunk> chunks(count);
  for (uint32_t i = 0; i < count; ++i) {
    chunks[i].segments.assign(1 + i % 5, {.tokens = 2});
    chunks[i].tokens.assign(2 * chunks[i].segments.size(), i);
  }
  return chunks;
}

TEST(SampleStream, CountsAnEpochWithWhatTakesThePlacesOfBadChunks) {
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE("seed " + std::to_string(test::TestSeed()) + ", round " + std::to_string(round));
    test::FaultyShardSet set(UnlikeChunks(23), 3);
    set.corrupt = {random() % 23, random() % 23};
    std::set<uint64_t> bad;
    for (const uint64_t chunk : set.corrupt) {
      for (uint64_t i = chunk / 3 * 3; i < std::min<uint64_t>(23, chunk / 3 * 3 + 3); ++i) bad.insert(i);
    }
    const SampleStreamOptions options{
        .sequence_tokens = 2,
        .seed = random(),
        .window_chunks = 4,
        .sets = {{.chunks = 9, .weight = 9}, {.first_chunk = 9, .chunks = 14, .weight = 14, .number = 1}}};
    testing::internal::CaptureStderr();
    SampleStream stream(&set, options, {.skip_bad_chunks = 6});
    const EpochCounts delivered = test::DeliveredEpoch(&stream);
    testing::internal::GetCapturedStderr();
    const EpochCounts counted = stream.CountEpoch();
    EXPECT_EQ(counted.samples, delivered.samples);
    EXPECT_EQ(counted.tokens, delivered.tokens);
    EXPECT_EQ(counted.labels, delivered.labels);
    EXPECT_EQ(counted.stored_tokens, delivered.tokens);
    EXPECT_EQ(counted.unreadable_chunks, bad.size());
  }
}

TEST(SampleStream, RefusesToCountASetOfWhichNoChunkCanBeRead) {
  std::vector<NamedShardSet> sets;
  sets.push_back({"sound", std::make_unique<MemoryShardSet>(TwinChunks(4), 2)});
  auto faulty = std::make_unique<FaultyTwins>(4, 2);
  faulty->corrupt = {0, 2};
  sets.push_back({"damaged", std::move(faulty)});
  const auto joined = JoinShardSets(std::move(sets));
  const SampleStream stream(
      joined.get(),
      {.sequence_tokens = 2,
       .sets = {{.chunks = 4, .weight = 4}, {.first_chunk = 4, .chunks = 4, .weight = 4, .number = 1}}},
      {.workers = 0, .skip_bad_chunks = 10});
  EXPECT_EQ(CodeOf([&] { stream.CountEpoch(); }), ErrorCode::kBadInput);
  EXPECT_THAT(MessageOf([&] { stream.CountEpoch(); }), testing::StartsWith("damaged"));
}

TEST(SampleStream, TellsEachWarningOfABadChunkOnce) {
  FaultyTwins set(40, 1);
  set.corrupt = {3, 17};
  testing::internal::CaptureStderr();
  SampleStream stream(&set, {.sequence_tokens = 2, .window_chunks = 4}, {.skip_bad_chunks = 2});
  for (int i = 0; i < 40; ++i) stream.Next();
  EXPECT_THAT(stream.TakeWarnings(),
              testing::UnorderedElementsAre(testing::HasSubstr("the place of chunk 3 "),
                                            testing::HasSubstr("the place of chunk 17 ")));
  for (int i = 0; i < 80; ++i) stream.Next();
  EXPECT_THAT(stream.TakeWarnings(), testing::IsEmpty());
  testing::internal::GetCapturedStderr();
}

TEST(SampleStream, FailsWhenEveryChunkIsBad) {
  FaultyTwins set(3, 1);
  set.corrupt = {0, 1, 2};
  testing::internal::CaptureStderr();
  SampleStream stream(&set, {.sequence_tokens = 2}, {.skip_bad_chunks = 100});
  EXPECT_EQ(CodeOf([&] { stream.Next(); }), ErrorCode::kBadInput);
  testing::internal::GetCapturedStderr();
}

TEST(SampleStream, CountsTheWaitForASlowSourceAndNamesWhatItWaitsFor) {
  FaultyTwins set(8, 1);
  set.slow = {5};
  set.delay = std::chrono::milliseconds(400);
  testing::internal::CaptureStderr();
  for (const int workers : {0, 1}) {
    SampleStream stream(&set, {.sequence_tokens = 2, .window_chunks = 8, .shuffle = false},
                        {.workers = workers, .stall_warning_s = 0.1});
    const auto start = std::chrono::steady_clock::now();
    stream.Next();
    const double whole_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_GE(stream.loader_counts().wait_s, 0.4);
    EXPECT_LE(stream.loader_counts().wait_s, whole_s);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr(" s: chunk 5 (shard 0, frame 5, byte 1005) is not read yet"));
}

TEST(SampleStream, AStalledSourceEndsTheWaitByName) {
  FaultyTwins set(8, 1);
  set.slow = {5};
  set.delay = std::chrono::milliseconds(600);
  SampleStream stream(&set, {.sequence_tokens = 2, .window_chunks = 8, .shuffle = false},
                      {.workers = 1, .stall_limit_s = 0.1});
  const std::string message = MessageOf([&] { stream.Next(); });
  EXPECT_THAT(message, testing::HasSubstr("nothing came for 0.1 s: chunk 5 (shard 0, frame 5, byte 1005)"));
  EXPECT_THAT(message, testing::HasSubstr("--data-timeout"));
}

TEST(FrameCache, GivesTheSameStreamForEveryBudgetAndReadsLess) {
  FaultyTwins set(64, 8);
  const SampleStreamOptions options{.sequence_tokens = 2, .window_chunks = 4};
  const auto walk = [&](int64_t cache_bytes, int* reads) {
    set.reads = 0;
    SampleStream stream(&set, options, {.workers = 2, .cache_bytes = cache_bytes});
    std::vector<uint64_t> chunks;
    for (int i = 0; i < 200; ++i) chunks.push_back(ChunkOf(stream.Next()));
    *reads = set.reads;
    return chunks;
  };
  int reads_without = 0, reads_with_some = 0, reads_with_all = 0;
  const std::vector<uint64_t> expected = walk(0, &reads_without);
  EXPECT_EQ(walk(4000, &reads_with_some), expected);
  EXPECT_EQ(walk(1 << 20, &reads_with_all), expected);
  EXPECT_LE(reads_with_all, 8 + 8) << "eight frames, which two workers may both have missed";
  EXPECT_LT(reads_with_some, reads_without);
  EXPECT_GT(reads_with_some, reads_with_all);
}

TEST(FrameCache, KeepsToItsBudgetAndGivesUpTheLeastRecentlyUsed) {
  FaultyTwins set(40, 4);
  const int64_t frame_bytes = static_cast<int64_t>(DecodedFrame(TwinChunks(4), 0, 1u << 30).size_bytes());
  FrameCache cache(&set, 3 * frame_bytes);
  const auto read = [&](uint64_t chunk) {
    const int before = set.reads;
    cache.ReadChunks({chunk}, 0, [&](size_t, const Chunk& content) { EXPECT_EQ(content.tokens[0], chunk); });
    EXPECT_LE(cache.held_bytes(), 3 * frame_bytes);
    return set.reads > before;
  };
  for (const uint64_t chunk : {0, 4, 8}) EXPECT_TRUE(read(chunk));
  EXPECT_FALSE(read(1));  // frame 0 is used again
  EXPECT_TRUE(read(12));  // frame 1 goes
  EXPECT_FALSE(read(3));
  EXPECT_FALSE(read(9));
  EXPECT_TRUE(read(4));
}

/// Hands out its bytes in two halves with a pause between them.
class PausingSource final : public ByteSource {
 public:
  PausingSource(std::string bytes, size_t pause_at) : bytes_(std::move(bytes)), pause_at_(pause_at) {}
  size_t Read(uint8_t* out, size_t size) override {
    if (position_ == pause_at_) std::this_thread::sleep_for(std::chrono::milliseconds(400));
    const size_t until = position_ < pause_at_ ? pause_at_ : bytes_.size();
    const size_t count = std::min(size, until - position_);
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(position_), count, out);
    position_ += count;
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string bytes_, name_ = "a pipe";
  size_t pause_at_, position_ = 0;
};

TEST(SpoolShardSet, SaysWhereAStalledStreamStandsAndTakesItWhole) {
  MemorySink sink;
  ShardSetHeader header;
  header.tokenizer.kind = "bytes";
  header.tokenizer.vocab_size = 1000;
  header.chunk_tokens = 2;
  header.provenance_json = "{}";
  ShardWriter writer(&sink, header, 0, 0);
  for (uint64_t chunk = 0; chunk < 6; ++chunk) {
    writer.AddFrame(EncodeFrame(header, TwinChunks(1), chunk, 3));
  }
  writer.Finish(/*last=*/true, 0);
  const std::string bytes(AsText(sink.bytes()));
  testing::internal::CaptureStderr();
  const auto set = SpoolShardSet(std::make_unique<PausingSource>(bytes, bytes.size() / 2),
                                 std::filesystem::temp_directory_path().string(), 0.1);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(set->chunks(), 6u);
  EXPECT_THAT(log, testing::ContainsRegex("nothing came for 0.[0-9] s: waiting for a pipe, byte " +
                                          std::to_string(bytes.size() / 2) + " "));
}

/// A set of `count` chunks that start with token `first`.
std::unique_ptr<ShardSet> SetOf(uint32_t count, uint32_t first) {
  std::vector<Chunk> chunks = TwinChunks(count);
  for (Chunk& chunk : chunks) chunk.tokens = {first + chunk.tokens[0], first + chunk.tokens[0]};
  return std::make_unique<MemoryShardSet>(chunks, 3);
}

TEST(JoinShardSets, NumbersTheChunksOfAllSetsOneAfterTheOther) {
  std::vector<NamedShardSet> sets;
  sets.push_back({"a", SetOf(7, 100)});
  sets.push_back({"b", SetOf(4, 200)});
  sets.push_back({"c", SetOf(1, 300)});
  const auto joined = JoinShardSets(std::move(sets));
  ASSERT_EQ(joined->chunks(), 12u);
  EXPECT_EQ(joined->totals().tokens, 24u);
  std::vector<uint32_t> tokens;
  for (uint64_t chunk = 0; chunk < 12; ++chunk) {
    uint64_t first_chunk = 0;
    const std::vector<Chunk> frame = joined->ReadFrameOf(chunk, &first_chunk);
    EXPECT_EQ(LocateChunk(*joined, chunk).first_chunk, first_chunk);
    tokens.push_back(frame.at(chunk - first_chunk).tokens[0]);
  }
  EXPECT_THAT(tokens, testing::ElementsAre(100, 101, 102, 103, 104, 105, 106, 200, 201, 202, 203, 300));
}

TEST(JoinShardSets, DrawsFromEachSetByItsWeight) {
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE("seed " + std::to_string(test::TestSeed()) + ", round " + std::to_string(round));
    std::vector<NamedShardSet> sets;
    SampleStreamOptions options{.sequence_tokens = 2, .seed = random(), .window_chunks = 1 + random() % 8};
    options.block_chunks = 1 + random() % 4;
    uint64_t first = 0;
    for (uint32_t set = 0; set < 1 + random() % 4 || set < 2; ++set) {
      const auto chunks = static_cast<uint32_t>(1 + random() % 20);
      sets.push_back({std::to_string(set), SetOf(chunks, 1000 * set)});
      options.sets.push_back(
          {.first_chunk = first, .chunks = chunks, .weight = 1 + random() % 1000, .number = set});
      first += chunks;
    }
    const std::vector<OrderedSet> parts = options.sets;
    const auto joined = JoinShardSets(std::move(sets));
    const ChunkOrder order(parts, {.seed = options.seed, .block_chunks = options.block_chunks});
    auto stream = std::make_unique<SampleStream>(joined.get(), options);
    const uint64_t slots = order.slots();
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      for (uint64_t begin = 0; begin < slots; begin += options.window_chunks) {
        std::multiset<uint64_t> expected, found;
        for (uint64_t slot = begin; slot < std::min(begin + options.window_chunks, slots); ++slot) {
          const ChunkDraw draw = order.At(epoch, slot);
          expected.insert(1000 * draw.set + draw.chunk - parts[draw.set].first_chunk);
        }
        for (size_t i = 0; i < expected.size(); ++i) {
          if (random() % 10 == 0) {
            const SampleCursor cursor = stream->cursor();
            stream = std::make_unique<SampleStream>(joined.get(), options);
            stream->Seek(cursor);
          }
          const Sample sample = stream->Next();
          found.insert(ChunkOf(sample));
          ASSERT_EQ(sample.set(), ChunkOf(sample) / 1000);
        }
        ASSERT_EQ(found, expected);
      }
    }
  }
}

TEST(ParseMixtureWeights, DividesBySumAndRefusesWhatIsNoShare) {
  EXPECT_THAT(ParseMixtureWeights("7,3", 2), testing::ElementsAre(3006477107, 1288490189));
  EXPECT_EQ(ParseMixtureWeights("0.7,0.3", 2), ParseMixtureWeights("7,3", 2));
  for (const char* text :
       {"", "1", "1,2,3", "1,", ",1", "1,0", "1,-1", "1,nan", "1,inf", "1;2", "1,1e-30", "a,b"}) {
    EXPECT_EQ(CodeOf([&] { ParseMixtureWeights(text, 2); }), ErrorCode::kUsage) << text;
  }
}

}  // namespace
}  // namespace trainwright

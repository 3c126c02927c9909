#include "lib/loading/sample_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "lib/base/rng.h"
#include "lib/loading/sample_loaders.h"
#include "tests/loading/delivered_epoch.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MemoryShardSet;

/// Documents of random lengths packed one after the other into chunks; every token id is unique, so that
/// positions can be told apart. Some documents are empty, some are cut at a chunk's end, some chunks end in
/// padding.
std::vector<Chunk> RandomChunks(std::mt19937_64* random, size_t count, uint32_t chunk_tokens) {
  std::vector<Chunk> chunks;
  uint32_t next_id = 1;
  uint32_t left_of_document = 0;
  while (chunks.size() < count) {
    Chunk chunk;
    uint32_t room =
        chunk_tokens - static_cast<uint32_t>((*random)() % 3 == 0 ? (*random)() % chunk_tokens : 0);
    while (room > 0) {
      Segment segment;
      if (left_of_document > 0) {
        segment.flags = kSegmentStartsMidDocument;
      } else {
        left_of_document =
            static_cast<uint32_t>((*random)() % 4 == 0 ? (*random)() % (3 * chunk_tokens) : (*random)() % 9);
      }
      segment.tokens = std::min(left_of_document, room);
      left_of_document -= segment.tokens;
      room -= segment.tokens;
      for (uint32_t i = 0; i < segment.tokens; ++i) chunk.tokens.push_back(next_id++);
      if (left_of_document > 0) {
        segment.flags |= kSegmentEndsMidDocument;
        segment.next_token = next_id;
      }
      segment.source_bytes = segment.tokens * 3 + segment.tokens / 2;
      chunk.segments.push_back(segment);
    }
    if (const uint32_t padding = chunk_tokens - static_cast<uint32_t>(chunk.tokens.size()); padding > 0) {
      chunk.segments.push_back({.tokens = padding, .flags = kSegmentPadding});
      chunk.tokens.resize(chunk_tokens, 0);
    }
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

/// A sample as plain rows (token, position, label), one a token, in order.
using Row = std::tuple<int64_t, int64_t, int64_t>;
using Rows = std::vector<Row>;

Rows RowsOf(const Sample& sample) {
  PackedBatch batch;
  sample.AppendTo(&batch);
  Rows rows;
  for (size_t i = 0; i < batch.tokens.size(); ++i)
    rows.emplace_back(batch.tokens[i], batch.positions[i], batch.labels[i]);
  return rows;
}

/// Groups of 64 of about one length: a length at a time, from the longest.
std::vector<Rows> Grouped(const std::vector<Rows>& samples, uint64_t key) {
  size_t longest = 0;
  for (const Rows& sample : samples) longest = std::max(longest, sample.size());
  std::vector<std::vector<Rows>> groups;
  for (size_t length = longest; length > 0; --length) {
    for (const Rows& sample : samples) {
      if (sample.size() != length) continue;
      if (groups.empty() || groups.back().size() == 64) groups.emplace_back();
      groups.back().push_back(sample);
    }
  }
  std::vector<Rows> ordered;
  const KeyedPermutation order(groups.size(), key);
  for (uint64_t i = 0; i < groups.size(); ++i) {
    ordered.insert(ordered.end(), groups[order(i)].begin(), groups[order(i)].end());
  }
  return ordered;
}

/// The header's definition, read off slowly: lists one whole epoch of samples from all chunks at once.
std::vector<Rows> ListEpoch(const std::vector<Chunk>& chunks, const SampleStreamOptions& options,
                            uint64_t epoch) {
  const int64_t limit = options.sequence_tokens;
  std::vector<uint64_t> chunk_order;  // of the page's definition, a block at a time
  const uint64_t key = Rng(options.seed, "chunk order", epoch).key(), block = options.block_chunks;
  const uint64_t blocks = chunks.size() / block;
  const uint64_t short_place = Rng::BitsOf(key, chunks.size()) % (blocks + 1);
  for (uint64_t place = 0; place <= blocks; ++place) {
    if (place == short_place) {
      for (uint64_t chunk = blocks * block; chunk < chunks.size(); ++chunk) chunk_order.push_back(chunk);
    }
    for (uint64_t i = 0; i < block && place < blocks; ++i) {
      chunk_order.push_back(KeyedPermutation(blocks, key)(place) * block + i);
    }
  }
  std::vector<Rows> all;
  for (uint64_t window = 0; window * options.window_chunks < chunks.size(); ++window) {
    std::vector<Rows> in_window;
    for (uint64_t i = window * options.window_chunks;
         i < std::min<uint64_t>((window + 1) * options.window_chunks, chunks.size()); ++i) {
      const Chunk& chunk = chunks[options.shuffle ? chunk_order[i] : i];
      // Pieces of at most `limit` tokens, a token at a time.
      std::vector<Rows> pieces;
      size_t at = 0;
      for (const Segment& segment : chunk.segments) {
        for (uint32_t k = 0; k < segment.tokens; ++k, ++at) {
          if (segment.flags & kSegmentPadding) continue;
          if (k % limit == 0) pieces.emplace_back();
          int64_t label = kIgnoreLabel;
          if (k + 1 < segment.tokens) label = chunk.tokens[at + 1];
          if (k + 1 == segment.tokens && segment.next_token != kNoId) label = segment.next_token;
          pieces.back().emplace_back(chunk.tokens[at], k % limit, label);
        }
      }
      Rows sample;
      for (const Rows& piece : pieces) {
        const bool fits = static_cast<int64_t>(sample.size() + piece.size()) <= limit;
        if (!sample.empty() && (!fits || options.packing == Packing::kOff)) {
          in_window.push_back(sample);
          sample.clear();
        }
        sample.insert(sample.end(), piece.begin(), piece.end());
      }
      if (!sample.empty()) in_window.push_back(sample);
    }
    if (in_window.empty()) continue;
    const KeyedPermutation order(in_window.size(), Rng(options.seed, "sample order", epoch).Bits(window));
    std::vector<Rows> ordered;
    for (uint64_t i = 0; i < in_window.size(); ++i) {
      ordered.push_back(in_window[options.shuffle ? order(i) : i]);
    }
    if (options.group_by_length && options.shuffle) {
      ordered = Grouped(ordered, Rng(options.seed, "length groups", epoch).Bits(window));
    }
    all.insert(all.end(), ordered.begin(), ordered.end());
  }
  return all;
}

TEST(SampleStream, GivesTheSamplesOfTheSlowListingForThreeEpochs) {
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("seed " + std::to_string(test::TestSeed()) + ", round " + std::to_string(round));
    const uint32_t chunk_tokens = 1 + static_cast<uint32_t>(random() % 60);
    const std::vector<Chunk> chunks = RandomChunks(&random, 1 + random() % 30, chunk_tokens);
    const MemoryShardSet set(chunks, 1 + static_cast<uint32_t>(random() % 5));
    const SampleStreamOptions options{.sequence_tokens = 1 + static_cast<int64_t>(random() % 40),
                                      .seed = random(),
                                      .window_chunks = 1 + random() % 9,
                                      .block_chunks = random() % 2 == 0 ? 1 : 1 + random() % 12,
                                      .shuffle = random() % 4 != 0,
                                      .group_by_length = random() % 2 == 0,
                                      .packing = random() % 2 == 0 ? Packing::kOn : Packing::kOff};
    if (set.totals().tokens == 0) continue;
    SampleStream stream(&set, options);
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      for (const Rows& expected : ListEpoch(chunks, options, epoch)) {
        ASSERT_EQ(stream.cursor().epoch, epoch);
        ASSERT_EQ(RowsOf(stream.Next()), expected);
      }
    }
  }
}

TEST(SampleStream, ShowsEveryTokenOnceAnEpochWithItsSuccessorAsLabel) {
  std::mt19937_64 random(test::TestSeed());
  const std::vector<Chunk> chunks = RandomChunks(&random, 50, 64);
  const MemoryShardSet set(chunks, 4);
  SampleStream stream(&set, {.sequence_tokens = 24, .seed = 5, .window_chunks = 8});
  std::multiset<int64_t> seen;
  while (stream.cursor().epoch == 0) {
    for (const auto& [token, position, label] : RowsOf(stream.Next())) {
      seen.insert(token);
      // Ids count up through each document, so the right label is known without any bookkeeping.
      ASSERT_THAT(label, testing::AnyOf(kIgnoreLabel, token + 1));
    }
  }
  std::multiset<int64_t> stored;
  for (const Chunk& chunk : chunks) {
    for (const uint32_t token : chunk.tokens) {
      if (token != 0) stored.insert(token);
    }
  }
  EXPECT_EQ(seen, stored);
}

/// Of a whole epoch, sorted.
std::vector<Rows> SamplesOfAnEpoch(const ShardSet& set, const SampleStreamOptions& options) {
  SampleStream stream(&set, options);
  std::vector<Rows> samples;
  while (stream.cursor().epoch == 0) samples.push_back(RowsOf(stream.Next()));
  std::sort(samples.begin(), samples.end());
  return samples;
}

TEST(SampleStream, GroupingByLengthKeepsTheSamplesOfAnEpochAndPutsLikeOnesTogether) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const MemoryShardSet set(RandomChunks(&random, 600, 60), 4);
  SampleStreamOptions options{.sequence_tokens = 40, .seed = random(), .packing = Packing::kOff};
  const std::vector<Rows> plain = SamplesOfAnEpoch(set, options);
  options.group_by_length = true;
  EXPECT_EQ(SamplesOfAnEpoch(set, options), plain);

  // Within 16 neighbours lengths differ less than among the samples of a window that are only shuffled.
  const auto mean_spread = [&] {
    SampleStream stream(&set, options);
    double spread = 0;
    int steps = 0;
    for (; stream.cursor().epoch == 0; ++steps) {
      int64_t least = INT64_MAX, most = 0;
      for (int i = 0; i < 16; ++i) {
        const int64_t tokens = stream.Next().tokens();
        least = std::min(least, tokens);
        most = std::max(most, tokens);
      }
      spread += static_cast<double>(most - least);
    }
    return spread / steps;
  };
  const double grouped = mean_spread();
  options.group_by_length = false;
  EXPECT_LT(2 * grouped, mean_spread());
}

TEST(SampleStream, WithoutPackingEachSampleIsOneDocumentOrAPieceOfOne) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const MemoryShardSet set(RandomChunks(&random, 50, 64), 4);
  SampleStream stream(&set, {.sequence_tokens = 24, .seed = 5, .packing = Packing::kOff});
  while (stream.cursor().epoch == 0) ASSERT_EQ(stream.Next().spans().size(), 1u);
}

TEST(SampleStream, EpochsHaveDifferentOrders) {
  std::mt19937_64 random(test::TestSeed());
  const MemoryShardSet set(RandomChunks(&random, 40, 32), 1);
  SampleStream stream(&set, {.sequence_tokens = 32, .seed = 1});
  std::vector<std::vector<Rows>> epochs(2);
  while (stream.cursor().epoch < 2) {
    const uint64_t epoch = stream.cursor().epoch;
    epochs[epoch].push_back(RowsOf(stream.Next()));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  std::sort(epochs[0].begin(), epochs[0].end());
  std::sort(epochs[1].begin(), epochs[1].end());
  EXPECT_EQ(epochs[0], epochs[1]);
}

TEST(SampleStream, ContinuesAtACursorAsIfNeverInterrupted) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const MemoryShardSet set(RandomChunks(&random, 23, 48), 3);
  const SampleStreamOptions options{.sequence_tokens = 20, .seed = 9, .window_chunks = 4};
  SampleStream whole(&set, options);
  std::vector<SampleCursor> cursors;
  std::vector<Rows> samples;
  for (int i = 0; i < 400; ++i) {
    cursors.push_back(whole.cursor());
    samples.push_back(RowsOf(whole.Next()));
  }
  ASSERT_GE(cursors.back().epoch, 2u) << "the walk must cross epochs";
  SampleStream other(&set, options);
  for (int jump = 0; jump < 60; ++jump) {
    const size_t at = random() % (samples.size() - 5);
    other.Seek(cursors[at]);
    EXPECT_EQ(other.cursor(), cursors[at]);
    for (size_t i = at; i < at + 5; ++i) ASSERT_EQ(RowsOf(other.Next()), samples[i]) << "jump to " << at;
  }
}

TEST(SampleStream, NeitherWorkersNorPrefetchChangeASample) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const MemoryShardSet set(RandomChunks(&random, 23, 48), 3);
  const SampleStreamOptions options{.sequence_tokens = 20, .seed = 9, .window_chunks = 4};
  const auto walk = [&](const LoaderOptions& loader) {
    SampleStream stream(&set, options, loader);
    std::vector<Rows> samples;
    SampleCursor half_way;
    while (stream.cursor().epoch < 3) {
      samples.push_back(RowsOf(stream.Next()));
      if (stream.cursor().epoch == 1 && half_way.epoch == 0) half_way = stream.cursor();
    }
    stream.Seek(half_way);  // throws away what was made ahead
    while (stream.cursor().epoch < 2) samples.push_back(RowsOf(stream.Next()));
    return samples;
  };
  const std::vector<Rows> expected = walk({.workers = 0});
  for (const int workers : {1, 3}) {
    for (const int prefetch : {1, 4}) {
      EXPECT_EQ(walk({.workers = workers, .prefetch = prefetch}), expected) << workers << " x " << prefetch;
    }
  }
}

TEST(SampleStream, IsOneGlobalStreamForAnyNumberOfProcessesAndAnyBatch) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const MemoryShardSet set(RandomChunks(&random, 23, 48), 3);
  const SampleStreamOptions options{.sequence_tokens = 20, .seed = 9, .window_chunks = 4};
  std::vector<Rows> expected;
  SampleStream whole(&set, options, {.workers = 0});
  for (int i = 0; i < 600; ++i) expected.push_back(RowsOf(whole.Next()));
  ASSERT_GE(whole.cursor().epoch, 2u) << "the walk must cross epochs";
  // Every few steps the job goes on in another number of processes with another batch, from the cursor alone.
  SampleCursor cursor;
  size_t done = 0;
  while (done < 500) {
    const auto world = std::vector<int64_t>{1, 2, 3, 7, 8}[random() % 5];
    const auto batch = static_cast<int64_t>(1 + random() % 19);
    std::vector<std::unique_ptr<SampleStream>> processes;
    for (int64_t rank = 0; rank < world; ++rank) {
      processes.push_back(std::make_unique<SampleStream>(&set, options));
      processes.back()->Seek(cursor);
    }
    for (int step = 0; step < 3; ++step) {
      const size_t end = done + static_cast<size_t>(batch);
      for (int64_t rank = 0; rank < world; ++rank) {
        const std::vector<Sample> share =
            ShareOf(processes[static_cast<size_t>(rank)]->NextStep(batch, false), rank, world);
        for (const Sample& sample : share) {
          ASSERT_EQ(RowsOf(sample), expected.at(done++)) << "world " << world << ", rank " << rank;
        }
        ASSERT_LT(std::abs(static_cast<double>(share.size()) -
                           static_cast<double>(batch) / static_cast<double>(world)),
                  1);
      }
      ASSERT_EQ(done, end) << "the shares, one behind the other, are the step";
    }
    cursor = processes[0]->cursor();
    for (const auto& process : processes) ASSERT_EQ(process->cursor(), cursor);
  }
}

TEST(SampleStream, IsTheSlowListingThroughRandomKillsBatchesWorldsAndCaches) {
  std::mt19937_64 random(test::TestSeed() + 7);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("seed " + std::to_string(test::TestSeed()) + ", round " + std::to_string(round));
    // Also a single chunk, and fewer chunks than a step takes; the last frame and window are odd.
    const std::vector<Chunk> chunks = RandomChunks(&random, round % 5 == 0 ? 1 : 1 + random() % 40,
                                                   1 + static_cast<uint32_t>(random() % 50));
    // Ids of two bytes or of four.
    const MemoryShardSet set(chunks, 1 + static_cast<uint32_t>(random() % 6),
                             round % 2 == 0 ? 1u << 16 : 1u << 30);
    const SampleStreamOptions options{.sequence_tokens = 1 + static_cast<int64_t>(random() % 40),
                                      .seed = random(),
                                      .window_chunks = 1 + random() % 9,
                                      .block_chunks = 1 + random() % 3};
    if (set.totals().tokens < 3) continue;
    std::vector<Rows> expected;
    for (uint64_t epoch = 0; expected.size() < 150; ++epoch) {
      for (Rows& rows : ListEpoch(chunks, options, epoch)) expected.push_back(std::move(rows));
    }
    SampleCursor cursor;
    size_t done = 0;
    while (done < 100) {
      const auto world = static_cast<int64_t>(1 + random() % 8),
                 batch = static_cast<int64_t>(1 + random() % 20);
      const auto steps = static_cast<int>(1 + random() % 2);
      size_t after = done;
      SampleCursor next;
      for (int64_t rank = 0; rank < world; ++rank) {
        SampleStream stream(&set, options,
                            {.workers = static_cast<int>(random() % 3),
                             .prefetch = static_cast<int>(1 + random() % 3),
                             .cache_bytes = static_cast<int64_t>(random() % 3 * 3000)});
        stream.Seek(cursor);
        after = done;
        for (int step = 0; step < steps; ++step, after += static_cast<size_t>(batch)) {
          size_t at = after + static_cast<size_t>(rank * batch / world);
          for (const Sample& sample : ShareOf(stream.NextStep(batch, false), rank, world)) {
            ASSERT_EQ(RowsOf(sample), expected.at(at++));
          }
          ASSERT_EQ(at, after + static_cast<size_t>((rank + 1) * batch / world));
        }
        if (rank > 0) {
          ASSERT_EQ(stream.cursor(), next);
        }
        next = stream.cursor();
      }
      cursor = next;
      done = after;
    }
  }
}

TEST(SampleStream, KeepsPrefetchWindowsAheadForEachWorker) {
  std::mt19937_64 random(test::TestSeed());
  const MemoryShardSet set(RandomChunks(&random, 23, 48), 3);
  const SampleStreamOptions options{.sequence_tokens = 20, .window_chunks = 4};
  for (const auto& [workers, prefetch, ahead] : {std::tuple(0, 5, 0), {1, 1, 1}, {1, 4, 4}, {3, 2, 6}}) {
    SampleStream stream(&set, options, {.workers = workers, .prefetch = prefetch});
    for (int i = 0; i < 100; ++i) stream.Next();
    EXPECT_EQ(stream.loader_counts().most_windows_ahead, ahead) << workers << " x " << prefetch;
    EXPECT_GT(stream.loader_counts().windows, 1);
    EXPECT_GT(stream.loader_counts().wait_s, 0);
  }
}

/// `count` chunks of one document of two tokens each: one sample a chunk, told apart by its first token.
MemoryShardSet PairsSet(uint32_t count) {
  std::vector<Chunk> chunks;
  for (uint32_t i = 0; i < count; ++i) chunks.push_back({.segments = {{.tokens = 2}}, .tokens = {i, 1000}});
  return MemoryShardSet(chunks, 1);
}

TEST(SampleStream, StepsRunOnIntoTheNextEpochUnlessTheLastIsDropped) {
  const MemoryShardSet set = PairsSet(10);
  const SampleStreamOptions options{.sequence_tokens = 2, .window_chunks = 3, .shuffle = false};
  const auto first_tokens = [&](bool drop_last, int steps) {
    SampleStream stream(&set, options);
    std::vector<uint32_t> tokens;
    for (int step = 0; step < steps; ++step) {
      for (const Sample& sample : stream.NextStep(4, drop_last)) {
        tokens.push_back(static_cast<uint32_t>(std::get<0>(RowsOf(sample)[0])));
      }
    }
    return tokens;
  };
  EXPECT_THAT(first_tokens(false, 3), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1));
  // Samples 8 and 9 do not fill a step.
  EXPECT_THAT(first_tokens(true, 4), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(SampleStream, DropsNothingOfAnEpochThatFillsItsSteps) {
  const MemoryShardSet set = PairsSet(8);
  SampleStream stream(&set, {.sequence_tokens = 2, .window_chunks = 3, .shuffle = false});
  for (const uint64_t epoch : {0, 1, 2}) {
    EXPECT_EQ(stream.cursor().epoch, epoch);
    for (int step = 0; step < 2; ++step) EXPECT_EQ(stream.NextStep(4, true).size(), 4u);
  }
}

TEST(SampleStream, RefusesToDropAWholeEpoch) {
  const MemoryShardSet set = PairsSet(3);
  SampleStream stream(&set, {.sequence_tokens = 2});
  EXPECT_EQ(CodeOf([&] { stream.NextStep(4, true); }), ErrorCode::kBadInput);
}

TEST(SampleStream, CountsAnEpochAsItIsDelivered) {
  std::mt19937_64 random(test::TestSeed());
  const MemoryShardSet set(RandomChunks(&random, 31, 40), 4);
  SampleStream stream(&set, {.sequence_tokens = 16, .seed = 2, .window_chunks = 5});
  const EpochCounts delivered = test::DeliveredEpoch(&stream);
  const EpochCounts counted = stream.CountEpoch();
  EXPECT_EQ(counted.samples, delivered.samples);
  EXPECT_EQ(counted.tokens, delivered.tokens);
  EXPECT_EQ(counted.labels, delivered.labels);
  EXPECT_EQ(counted.tokens, set.totals().tokens);
}

TEST(SampleStream, SharesOutSourceBytesAndDocumentsExactly) {
  std::mt19937_64 random(test::TestSeed());
  const std::vector<Chunk> chunks = RandomChunks(&random, 20, 64);
  const MemoryShardSet set(chunks, 2);
  uint64_t stored_bytes = 0, stored_documents = 0;
  for (const Chunk& chunk : chunks) {
    for (const Segment& segment : chunk.segments) {
      stored_bytes += segment.source_bytes;
      if (segment.tokens > 0 && !(segment.flags & (kSegmentStartsMidDocument | kSegmentPadding)))
        ++stored_documents;
    }
  }
  SampleStream stream(&set, {.sequence_tokens = 7, .seed = 2});
  PackedBatch batch;
  while (stream.cursor().epoch == 0) stream.Next().AppendTo(&batch);
  EXPECT_EQ(batch.source_bytes, stored_bytes);
  EXPECT_EQ(batch.documents, stored_documents);
}

TEST(SampleStream, FingerprintChangesWithDataSeedAndCutting) {
  const Chunk chunk{.segments = {{.tokens = 4}}, .tokens = {1, 2, 3, 4}};
  const MemoryShardSet set({chunk}, 1);
  MemoryShardSet other({chunk}, 1);
  other.set_content_sha256({1});
  const SampleStreamOptions options;
  const std::set<std::string> fingerprints = {SampleStream(&set, options).fingerprint(),
                                              SampleStream(&other, options).fingerprint(),
                                              SampleStream(&set, {.seed = 1}).fingerprint(),
                                              SampleStream(&set, {.sequence_tokens = 3}).fingerprint(),
                                              SampleStream(&set, {.window_chunks = 3}).fingerprint(),
                                              SampleStream(&set, {.block_chunks = 2}).fingerprint(),
                                              SampleStream(&set, {.shuffle = false}).fingerprint(),
                                              SampleStream(&set, {.group_by_length = true}).fingerprint(),
                                              SampleStream(&set, {.packing = Packing::kOff}).fingerprint()};
  EXPECT_EQ(fingerprints.size(), 9u);
  EXPECT_EQ(SampleStream(&set, options).fingerprint(), SampleStream(&set, options).fingerprint());
}

TEST(SampleStream, FingerprintsOfStoredStatesStay) {
  // Written by the loader as it was when states with them were made: a state of then resumes by them.
  const Chunk lines{.segments = {{.tokens = 4}}, .tokens = {1, 2, 3, 4}};
  const Chunk talk{
      .segments = {{.tokens = 2, .flags = kSegmentNoLoss}, {.tokens = 2, .flags = kSegmentContinuesPrevious}},
      .tokens = {1, 2, 3, 4}};
  const MemoryShardSet text({lines, lines, lines}, 1),
      talks({talk, talk, talk}, 1, 1u << 30, RecordKind::kSft);
  EXPECT_EQ(SampleStream(&text, {}).fingerprint(),
            "363f6c7c2783bfe98d818d4359b3e7d18ce08e777afc242dbf31c85f347f0203");
  SampleStreamOptions options{
      .sequence_tokens = 3,
      .seed = 7,
      .window_chunks = 5,
      .block_chunks = 2,
      .sets = {{.chunks = 1, .weight = 3}, {.first_chunk = 1, .chunks = 2, .weight = 4}},
      .shuffle = false,
      .split = DocumentSplit{.asked = "0.5", .seed = 9, .bound = 11}};
  EXPECT_EQ(SampleStream(&talks, options).fingerprint(),
            "fbefbb7cc730ca5103b024b58594073eae3e2e9d605870d994f67b5bdda6c4aa");
  options.loss_on = LossOn::kAll;
  EXPECT_EQ(SampleStream(&talks, options).fingerprint(),
            "b7192fc45b78bde8f80189f66dc132ede342ec8acedb2c002af799adf9369eb1");
}

TEST(SampleStream, KeepsSamplesWithoutLabels) {
  const Chunk single{.segments = {{.tokens = 1}}, .tokens = {7}};
  const Chunk pair{.segments = {{.tokens = 2}}, .tokens = {8, 9}};
  const MemoryShardSet set({single, pair}, 1);
  SampleStream stream(&set, {.shuffle = false});
  EXPECT_EQ(RowsOf(stream.Next()), (Rows{{7, 0, kIgnoreLabel}}));
  EXPECT_EQ(RowsOf(stream.Next()), (Rows{{8, 0, 9}, {9, 1, kIgnoreLabel}}));
}

TEST(SampleStream, RefusesSetsWithoutAnyLabel) {
  const auto open = [](std::vector<Chunk> chunks) {
    const MemoryShardSet set(std::move(chunks), 2);
    return CodeOf([&] { SampleStream(&set, {}); });
  };
  const Chunk single{.segments = {{.tokens = 1}}, .tokens = {7}};
  const Chunk empty{.segments = {{.tokens = 0}}};
  EXPECT_EQ(open({single, empty}), ErrorCode::kBadInput);
  EXPECT_EQ(open({}), ErrorCode::kBadInput);
  // One label suffices, also beside documents without tokens, and also the one of a cut.
  const Chunk pair{.segments = {{.tokens = 2}}, .tokens = {8, 9}};
  const Chunk cut{.segments = {{.tokens = 1, .flags = kSegmentEndsMidDocument, .next_token = 3}},
                  .tokens = {2}};
  EXPECT_EQ(open({empty, empty, pair}), std::nullopt);
  EXPECT_EQ(open({empty, cut}), std::nullopt);
}

TEST(SampleStream, RefusesACursorOfAnotherSet) {
  const Chunk pair{.segments = {{.tokens = 2}}, .tokens = {8, 9}};
  const MemoryShardSet set({pair, pair}, 1);
  SampleStream stream(&set, {});
  EXPECT_EQ(CodeOf([&] { stream.Seek({.epoch = 0, .window = 1, .sample = 0}); }), ErrorCode::kBadInput);
  stream.Seek({.epoch = 0, .window = 0, .sample = 99});
  EXPECT_EQ(CodeOf([&] { stream.Next(); }), ErrorCode::kBadInput);
}

TEST(PackedBatch, LaysSpansEndToEnd) {
  PackedBatch batch;
  const std::vector<uint32_t> first = {5, 6, 7}, second = {8};
  batch.AppendSpan(first, kNoId);
  batch.AppendSpan(second, 9);
  EXPECT_THAT(batch.tokens, testing::ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(batch.positions, testing::ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(batch.labels, testing::ElementsAre(6, 7, kIgnoreLabel, 9));
  EXPECT_THAT(batch.span_starts, testing::ElementsAre(0, 3, 4));
  EXPECT_EQ(batch.num_labels, 3);
}

}  // namespace
}  // namespace trainwright

#include "lib/formats/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/shard_fixture.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::EncodeShard;
using test::MessageOf;
using test::ReadShardStream;
using test::ReadShardView;
using test::SmallChunks;
using test::SmallShardSet;
using testing::HasSubstr;

std::vector<uint8_t> Join(const std::vector<std::vector<uint8_t>>& parts) {
  std::vector<uint8_t> whole;
  for (const std::vector<uint8_t>& part : parts) AppendBytes(&whole, part);
  return whole;
}

/// A set of three shards: chunks 0-1, 2-3 and 4.
std::vector<std::vector<uint8_t>> ThreeShards() {
  const std::vector<Chunk> chunks = SmallChunks();
  const ShardSetHeader header = SmallShardSet();
  return {EncodeShard(header, {chunks[0], chunks[1]}, 0, 0, false),
          EncodeShard(header, {chunks[2], chunks[3]}, 1, 2, false),
          EncodeShard(header, {chunks[4]}, 2, 4, true)};
}

class ShardOfEveryWidthTest : public testing::TestWithParam<uint32_t> {};

TEST_P(ShardOfEveryWidthTest, ChunksComeBackAsWritten) {
  const std::vector<Chunk> chunks = SmallChunks(GetParam());
  const std::vector<uint8_t> bytes = EncodeShard(SmallShardSet(GetParam()), chunks);
  EXPECT_EQ(ReadShardStream(bytes), chunks);
  EXPECT_EQ(ReadShardView(bytes), chunks);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, ShardOfEveryWidthTest,
                         testing::Values(300, 65536, 65537, 131072, 131073, 1 << 24, (1 << 24) + 1,
                                         0xFFFFFFFE));

TEST(ShardTest, RandomChunksComeBackAsWritten) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const uint32_t vocab_size : {32000u, 131072u, 200'000u}) {
    ShardSetHeader header = SmallShardSet(vocab_size, PackMode::kNone);
    header.chunk_tokens = 5000;
    header.chunks_per_frame = 3;
    std::vector<Chunk> chunks(50);
    for (Chunk& chunk : chunks) {
      const size_t segments = 1 + random() % 9;
      for (size_t i = 0; i < segments; ++i) {
        Segment segment;
        segment.tokens = static_cast<uint32_t>(1 + random() % 500);
        segment.flags = static_cast<uint8_t>(random() % 4);
        if ((segment.flags & kSegmentEndsMidDocument) != 0)
          segment.next_token = static_cast<uint32_t>(random() % vocab_size);
        segment.source_bytes = random() >> (random() % 64);
        chunk.segments.push_back(segment);
        for (uint32_t k = 0; k < segment.tokens; ++k)
          chunk.tokens.push_back(static_cast<uint32_t>(random() % vocab_size));
      }
    }
    const std::vector<uint8_t> bytes = EncodeShard(header, chunks);
    EXPECT_EQ(ReadShardStream(bytes), chunks);
    EXPECT_EQ(ReadShardView(bytes), chunks);
  }
}

// With packing none the most that a chunk may hold says nothing of what one does hold.
TEST(ShardTest, ChunksAboveTheLimitAreRefusedByBothReaders) {
  ShardSetHeader header = SmallShardSet(300, PackMode::kNone);
  header.chunk_tokens = kMaxChunkTokens;
  EXPECT_EQ(ReadShardView(EncodeShard(header, SmallChunks())), SmallChunks());
  for (const uint32_t chunk_tokens : {kMaxChunkTokens + 1, UINT32_MAX}) {
    header.chunk_tokens = chunk_tokens;
    const std::vector<uint8_t> bytes = EncodeShard(header, SmallChunks());
    for (const auto& read : {ReadShardView, ReadShardStream}) {
      EXPECT_EQ(CodeOf([&] { read(bytes); }), ErrorCode::kBadInput);
      EXPECT_THAT(MessageOf([&] { read(bytes); }), HasSubstr("chunks of " + std::to_string(chunk_tokens)));
    }
  }
}

TEST(ShardTest, AFrameOfMoreChunksThanTheHeaderAllowsIsRefusedWhenOpened) {
  const ShardSetHeader header = SmallShardSet();
  MemorySink sink;
  ShardWriter writer(&sink, header, 0, 0);
  EncodedFrame frame = EncodeFrame(header, std::vector<Chunk>{SmallChunks()[0]}, 0, 3);
  frame.totals.chunks = 3'000'000'000;
  writer.AddFrame(frame);
  writer.Finish(/*last=*/true, 0);
  EXPECT_THAT(MessageOf([&] { ShardView(sink.bytes(), "the shard"); }), HasSubstr("at most 2"));
}

TEST(ShardTest, HeaderComesBackAsWritten) {
  const std::vector<uint8_t> bytes = EncodeShard(SmallShardSet(), SmallChunks());
  const ShardView view(bytes, "the shard");
  const ShardSetHeader& header = view.info().header;
  EXPECT_EQ(header.tokenizer, SmallShardSet().tokenizer);
  EXPECT_EQ(header.mode, PackMode::kBestFit);
  EXPECT_EQ(header.overflow, OverflowPolicy::kSplit);
  EXPECT_EQ(header.chunk_tokens, 8u);
  EXPECT_EQ(header.chunks_per_frame, 2u);
  EXPECT_EQ(header.provenance_json, SmallShardSet().provenance_json);
}

TEST(ShardTest, TotalsAreThoseOfTheChunks) {
  const ShardTotals expected = {.chunks = 5,
                                .documents = 5,
                                .tokens = 31,
                                .pad_tokens = 9,
                                .documents_cut = 1,
                                .tokens_dropped = 0,
                                .source_bytes = 1'000'000'000'044};
  const std::vector<uint8_t> bytes = EncodeShard(SmallShardSet(), SmallChunks());
  EXPECT_EQ(ShardView(bytes, "the shard").info().totals, expected);
  ShardStreamReader reader(MemorySource(bytes));
  Chunk chunk;
  while (reader.Next(&chunk)) {
  }
  EXPECT_EQ(reader.totals(), expected);
}

TEST(ShardTest, AShardWithoutChunksIsWhole) {
  const std::vector<uint8_t> bytes = EncodeShard(SmallShardSet(), {});
  EXPECT_TRUE(ReadShardStream(bytes).empty());
  EXPECT_TRUE(ReadShardView(bytes).empty());
}

TEST(ShardTest, FramesDecodeOnTheirOwn) {
  const std::vector<Chunk> chunks = SmallChunks();
  const EncodedFrame frame = EncodeFrame(SmallShardSet(), std::span(chunks).first(2), 70, 3);
  EXPECT_EQ(DecodeFrame(SmallShardSet(), frame.bytes, 70, "a file", 4),
            (std::vector<Chunk>{chunks[0], chunks[1]}));
  EXPECT_THAT(MessageOf([&] { DecodeFrame(SmallShardSet(), frame.bytes, 72, "a file", 4); }),
              HasSubstr("chunk 72 must be here, found chunk 70"));
}

TEST(ShardTest, EveryProperPrefixIsRejected) {
  const std::vector<uint8_t> bytes = EncodeShard(SmallShardSet(), SmallChunks());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    const ByteSpan prefix = ByteSpan(bytes).first(cut);
    EXPECT_EQ(CodeOf([&] { ReadShardStream(prefix); }), ErrorCode::kBadInput) << "stream cut at " << cut;
    EXPECT_EQ(CodeOf([&] { ReadShardView(prefix); }), ErrorCode::kBadInput) << "file cut at " << cut;
  }
}

TEST(ShardTest, EveryProperPrefixOfASetIsRejected) {
  const std::vector<uint8_t> bytes = Join(ThreeShards());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_EQ(CodeOf([&] { ReadShardStream(ByteSpan(bytes).first(cut)); }), ErrorCode::kBadInput)
        << "cut at " << cut;
  }
}

TEST(ShardTest, EverySingleBitFlipIsRejected) {
  for (const uint32_t vocab_size : {300u, 70'000u}) {
    std::vector<uint8_t> bytes = EncodeShard(SmallShardSet(vocab_size), SmallChunks(vocab_size));
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
      EXPECT_EQ(CodeOf([&] { ReadShardStream(bytes); }), ErrorCode::kBadInput) << "stream, bit " << bit;
      EXPECT_EQ(CodeOf([&] { ReadShardView(bytes); }), ErrorCode::kBadInput) << "file, bit " << bit;
      bytes[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    }
  }
}

TEST(ShardTest, ASetOfShardsReadsAsOne) {
  EXPECT_EQ(ReadShardStream(Join(ThreeShards())), SmallChunks());
}

TEST(ShardTest, AMissingReorderedOrForeignShardIsRefused) {
  const auto shards = ThreeShards();
  EXPECT_THAT(MessageOf([&] {
                ReadShardStream(Join({shards[0], shards[1]}));
              }),
              HasSubstr("not the last of its set"));
  EXPECT_THAT(MessageOf([&] {
                ReadShardStream(Join({shards[0], shards[2]}));
              }),
              HasSubstr("missing or out of order"));
  EXPECT_THAT(MessageOf([&] {
                ReadShardStream(Join({shards[1], shards[2]}));
              }),
              HasSubstr("missing or out of order"));
  EXPECT_THAT(MessageOf([&] {
                ReadShardStream(Join({shards[0], shards[0]}));
              }),
              HasSubstr("missing or out of order"));
  EXPECT_THAT(MessageOf([&] {
                ReadShardStream(Join({shards[0], shards[1], shards[2], shards[0]}));
              }),
              HasSubstr("follows the last shard"));
  ShardSetHeader other = SmallShardSet();
  other.provenance_json = "{}";
  const auto foreign = EncodeShard(other, {SmallChunks()[2]}, 1, 2, true);
  EXPECT_THAT(MessageOf([&] { ReadShardStream(Join({shards[0], foreign})); }), HasSubstr("another set"));
}

TEST(ShardTest, AMissingFrameIsRefusedAtOnce) {
  const std::vector<uint8_t> bytes = EncodeShard(SmallShardSet(), SmallChunks());
  const FrameEntry first = ShardView(bytes, "the shard").info().frames[0];
  std::vector<uint8_t> without = bytes;
  without.erase(without.begin() + static_cast<ptrdiff_t>(first.offset),
                without.begin() + static_cast<ptrdiff_t>(first.offset + first.size_bytes));
  EXPECT_THAT(MessageOf([&] { ReadShardStream(without); }), HasSubstr("frames are missing or out of order"));
}

TEST(ShardTest, SplitFindsEveryShard) {
  const auto shards = ThreeShards();
  const std::vector<uint8_t> bytes = Join(shards);
  const std::vector<ByteSpan> found = ShardView::Split(bytes, "a set");
  ASSERT_EQ(found.size(), shards.size());
  for (size_t i = 0; i < shards.size(); ++i)
    EXPECT_TRUE(std::equal(found[i].begin(), found[i].end(), shards[i].begin(), shards[i].end()));
}

TEST(ShardTest, OnlyTheFirstShardCarriesTheTokenizerModel) {
  const auto shards = ThreeShards();
  EXPECT_EQ(ShardView(shards[0], "first").info().header.tokenizer.model, "a model");
  EXPECT_EQ(ShardView(shards[1], "second").info().header.tokenizer.model, "");
}

TEST(ShardTest, ContentHashIgnoresTheCompressionLevelAndNothingElse) {
  const auto hash_of = [](const ShardSetHeader& header, const std::vector<Chunk>& chunks, int level) {
    return ShardView(EncodeShard(header, chunks, 0, 0, true, level), "a shard").info().content_sha256;
  };
  const Sha256Digest hash = hash_of(SmallShardSet(), SmallChunks(), 3);
  EXPECT_EQ(hash, hash_of(SmallShardSet(), SmallChunks(), 19));
  std::vector<Chunk> other = SmallChunks();
  other[3].tokens[0] = 8;
  EXPECT_NE(hash, hash_of(SmallShardSet(), other, 3));
  EXPECT_NE(hash, hash_of(SmallShardSet(301), SmallChunks(), 3));
}

TEST(ShardTest, TheWriterReportsTheHashAndSizeThatReadersSee) {
  MemorySink sink;
  const ShardSetHeader header = SmallShardSet();
  ShardWriter writer(&sink, header, 0, 0);
  const std::vector<Chunk> chunks = SmallChunks();
  writer.AddFrame(EncodeFrame(header, std::span(chunks).first(2), 0, 3));
  writer.Finish(true, 17);
  const ShardView view(sink.bytes(), "the shard");
  EXPECT_EQ(view.info().content_sha256, writer.content_sha256());
  EXPECT_EQ(view.info().size_bytes, writer.size_bytes());
  EXPECT_EQ(view.info().totals, writer.totals());
  EXPECT_EQ(view.info().totals.tokens_dropped, 17u);
}

TEST(ShardTest, BrokenChunksAreNeverWritten) {
  const auto encode = [](const Chunk& chunk) { EncodeFrame(SmallShardSet(), std::span(&chunk, 1), 0, 3); };
  const Chunk good = SmallChunks()[0];
  EXPECT_NO_THROW(encode(good));
  for (const auto& spoil : std::vector<std::function<void(Chunk*)>>{
           [](Chunk* chunk) { chunk->segments.clear(); },
           [](Chunk* chunk) { chunk->segments[0].tokens = 4; },
           [](Chunk* chunk) { chunk->segments[0].flags = kSegmentNoLoss; },
           [](Chunk* chunk) { chunk->segments[0].next_token = 3; },
           [](Chunk* chunk) { chunk->segments[2].next_token = 300; },
           [](Chunk* chunk) { chunk->segments[2].next_token = kNoId; },
           [](Chunk* chunk) { chunk->segments[0].flags = kSegmentPadding; },
           [](Chunk* chunk) { chunk->segments[1].flags = kSegmentStartsMidDocument; },
           [](Chunk* chunk) { chunk->tokens[0] = 300; },
           [](Chunk* chunk) { chunk->segments[0].tokens = 6, chunk->tokens.push_back(1); },
       }) {
    Chunk bad = good;
    spoil(&bad);
    EXPECT_EQ(CodeOf([&] { encode(bad); }), ErrorCode::kInternal);
  }
}

TEST(ShardTest, ChunksBeyondTheFormatsLimitsNameTheFlag) {
  ShardSetHeader header = SmallShardSet(70'000, PackMode::kNone);
  header.chunk_tokens = 1 << 30;
  Chunk chunk;
  chunk.tokens.resize(40 << 20);
  chunk.segments = {{.tokens = 40 << 20}};
  EXPECT_THAT(MessageOf([&] { EncodeFrame(header, std::span(&chunk, 1), 0, 1); }), HasSubstr("--chunk"));
}

/// A shard whose header was edited, with the header's own hash made right again.
std::vector<uint8_t> EditedHeader(const std::function<void(uint8_t*)>& edit) {
  std::vector<uint8_t> bytes = EncodeShard(SmallShardSet(), SmallChunks());
  uint8_t* const header = bytes.data() + 8;
  uint32_t header_bytes;
  std::memcpy(&header_bytes, header + 12, 4);
  edit(header);
  const uint64_t hash = Xxh3(ByteSpan(header, header_bytes - 8));
  std::memcpy(header + header_bytes - 8, &hash, 8);
  return bytes;
}

TEST(ShardTest, AnotherMajorVersionIsRefusedByName) {
  const auto bytes = EditedHeader([](uint8_t* header) { header[8] = 2; });
  EXPECT_THAT(MessageOf([&] { ReadShardStream(bytes); }), HasSubstr("version 2.0"));
  EXPECT_THAT(MessageOf([&] { ReadShardView(bytes); }), HasSubstr("version 2.0"));
}

TEST(ShardTest, AnUnknownRequiredFlagIsRefused) {
  const auto bytes = EditedHeader([](uint8_t* header) { header[23] = 0x80; });
  EXPECT_THAT(MessageOf([&] { ReadShardStream(bytes); }), HasSubstr("needs a feature"));
}

TEST(ShardTest, AHeaderSwappedForAnotherValidOneIsRefused) {
  const auto bytes = EditedHeader([](uint8_t* header) { header[40] = 5; });  // eos_id
  EXPECT_EQ(CodeOf([&] { ReadShardView(bytes); }), ErrorCode::kBadInput);
  EXPECT_EQ(CodeOf([&] { ReadShardStream(bytes); }), ErrorCode::kBadInput);
}

TEST(ShardTest, AnotherFileIsNamedAsSuch) {
  const std::string text = "once upon a time there was a file that is no shard";
  EXPECT_THAT(MessageOf([&] { ReadShardStream(AsBytes(text)); }), HasSubstr("is not a shard"));
  EXPECT_THAT(MessageOf([&] { ReadShardView(AsBytes(text)); }), HasSubstr("is not a shard"));
}

TEST(ShardTest, NothingIsReadAfterAnError) {
  const std::vector<uint8_t> bytes = EncodeShard(SmallShardSet(), SmallChunks());
  ShardStreamReader reader(MemorySource(ByteSpan(bytes).first(bytes.size() - 1)));
  Chunk chunk;
  EXPECT_EQ(CodeOf([&] {
              while (reader.Next(&chunk)) {
              }
            }),
            ErrorCode::kBadInput);
  EXPECT_EQ(CodeOf([&] { (void)reader.Next(&chunk); }), ErrorCode::kInternal);
}

TEST(ShardTest, TheZstdToolTestsAndDecodesShardsAndSets) {
  const test::TemporaryFolder folder;
  const auto shards = ThreeShards();
  for (size_t i = 0; i < shards.size(); ++i) {
    test::WriteFile(folder.path("s" + std::to_string(i)), AsText(shards[i]));
  }
  const test::ProcessResult result =
      test::RunShell("cd " + folder.path() +
                     " && zstd -qt s0 s1 s2 --no-progress 2>/dev/null; for s in s0 s1 s2; do zstd -qt <$s || "
                     "exit 1; done; " +
                     "cat s0 s1 s2 | zstd -qt && cat s0 s1 s2 | zstd -dc >all && zstd -dc <s0 >one && cmp -n "
                     "$(stat -c %s one) one all");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
}

}  // namespace
}  // namespace trainwright

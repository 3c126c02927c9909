#include "lib/formats/id_codes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/formats/reference_decoder.h"
#include "tests/formats/shard_fixture.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;

// Few ids are frequent, most are rare or absent, as in text.
std::vector<uint64_t> SkewedCounts(uint32_t vocab_size, std::mt19937_64* random) {
  std::vector<uint64_t> counts(vocab_size, 0);
  for (uint32_t i = 0; i < vocab_size; i += 1 + static_cast<uint32_t>((*random)() % 3)) {
    counts[(*random)() % vocab_size] += 1'000'000 / (i + 1);
  }
  return counts;
}

size_t CodeBytes(const IdCodes& codes, uint32_t id) {
  std::vector<uint8_t> bytes;
  codes.AppendCodes(std::span(&id, 1), &bytes);
  return bytes.size();
}

class IdCodesOfEveryVocabularyTest : public testing::TestWithParam<uint32_t> {};

TEST_P(IdCodesOfEveryVocabularyTest, EveryIdComesBack) {
  const uint32_t vocab_size = GetParam();
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  const IdCodes codes = IdCodes::ForCounts(SkewedCounts(vocab_size, &random));
  std::vector<uint32_t> ids(vocab_size);
  for (uint32_t id = 0; id < vocab_size; ++id) ids[id] = id;
  std::shuffle(ids.begin(), ids.end(), random);
  std::vector<uint8_t> bytes;
  codes.AppendCodes(ids, &bytes);
  std::vector<uint32_t> found(ids.size());
  ASSERT_TRUE(codes.DecodeInto(bytes, found));
  EXPECT_EQ(found, ids);

  const IdCodes again = IdCodes::DecodeTable(codes.EncodeTable(), vocab_size, "a table", 0);
  EXPECT_EQ(again, codes);
  std::fill(found.begin(), found.end(), 0);
  ASSERT_TRUE(again.DecodeInto(bytes, found));
  EXPECT_EQ(found, ids);
}

TEST_P(IdCodesOfEveryVocabularyTest, AMoreFrequentIdHasNoLongerCode) {
  const uint32_t vocab_size = GetParam();
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  const std::vector<uint64_t> counts = SkewedCounts(vocab_size, &random);
  const IdCodes codes = IdCodes::ForCounts(counts);
  for (int i = 0; i < 20'000; ++i) {
    const auto a = static_cast<uint32_t>(random() % vocab_size);
    const auto b = static_cast<uint32_t>(random() % vocab_size);
    if (counts[a] > counts[b]) {
      EXPECT_LE(CodeBytes(codes, a), CodeBytes(codes, b));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, IdCodesOfEveryVocabularyTest,
                         testing::Values(1, 2, 255, 256, 257, 300, 32'000, 50'257, 65'536, 65'537, 131'072,
                                         200'019, 1 << 20, IdCodes::kMaxVocabulary));

TEST(IdCodesTest, CutOrLengthenedCodesAreRefused) {
  std::mt19937_64 random(test::TestSeed());
  const IdCodes codes = IdCodes::ForCounts(SkewedCounts(131'072, &random));
  std::vector<uint32_t> ids(50);
  for (uint32_t& id : ids) id = static_cast<uint32_t>(random() % 131'072);
  std::vector<uint8_t> bytes;
  codes.AppendCodes(ids, &bytes);
  std::vector<uint32_t> found(ids.size());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(codes.DecodeInto(ByteSpan(bytes).first(size), found)) << size;
  }
  bytes.push_back(0);
  EXPECT_FALSE(codes.DecodeInto(bytes, found));
}

TEST(IdCodesTest, ImpossibleTablesAreRefused) {
  const auto refused = [](std::vector<uint8_t> table, uint32_t vocab_size) {
    return CodeOf([&] { IdCodes::DecodeTable(table, vocab_size, "a table", 0); }) == ErrorCode::kBadInput;
  };
  ASSERT_FALSE(refused({255, 0, 2, 0, 0, 0, 7, 0, 8, 0}, 300));
  EXPECT_TRUE(refused({255, 0, 2, 0, 0, 0, 7, 0, 7, 0}, 300)) << "an id twice";
  EXPECT_TRUE(refused({255, 0, 2, 0, 0, 0, 7, 0, 44, 1}, 300)) << "an id outside the vocabulary";
  EXPECT_TRUE(refused({255, 0, 3, 0, 0, 0, 7, 0, 8, 0}, 300)) << "cut";
  EXPECT_TRUE(refused({255, 0, 2, 0, 0, 0, 7, 0, 8, 0, 0}, 300)) << "too long";
  EXPECT_TRUE(refused({255, 0, 2, 0, 0, 0, 7, 0, 8, 0}, 600)) << "too few codes";
  EXPECT_TRUE(refused({255, 2, 2, 0, 0, 0, 7, 0, 8, 0}, 300)) << "more first bytes than there are";
  EXPECT_TRUE(refused({0, 65, 2, 0, 0, 0, 7, 0, 8, 0}, 300)) << "too many codes of three bytes";
}

// Shards whose ids are coded.
class CodedShardTest : public testing::TestWithParam<uint32_t> {
 protected:
  ShardSetHeader Header() const {
    std::mt19937_64 random(test::TestSeed());
    ShardSetHeader header = test::SmallShardSet(GetParam());
    header.id_codes = std::make_shared<const IdCodes>(IdCodes::ForCounts(SkewedCounts(GetParam(), &random)));
    return header;
  }
  std::vector<Chunk> Chunks() const { return test::SmallChunks(GetParam()); }
};

TEST_P(CodedShardTest, ChunksComeBackAsWritten) {
  const std::vector<uint8_t> bytes = test::EncodeShard(Header(), Chunks());
  EXPECT_EQ(test::ReadShardStream(bytes), Chunks());
  EXPECT_EQ(test::ReadShardView(bytes), Chunks());
}

TEST_P(CodedShardTest, ADecoderWrittenFromTheManPageReadsThem) {
  const std::vector<uint8_t> bytes = test::EncodeShard(Header(), Chunks());
  const auto shards = test::DecodeShardsByReference(std::string(AsText(bytes)));
  ASSERT_EQ(shards.size(), 1u);
  ASSERT_EQ(shards[0].chunks.size(), Chunks().size());
  for (size_t i = 0; i < Chunks().size(); ++i) EXPECT_EQ(shards[0].chunks[i].tokens, Chunks()[i].tokens);
}

TEST_P(CodedShardTest, ProgramsThatDoNotKnowCodesMustRefuseThem) {
  const std::vector<uint8_t> bytes = test::EncodeShard(Header(), Chunks());
  // The required flags, of which version 1.0 knows none.
  EXPECT_EQ(bytes[24], 1);
}

TEST_P(CodedShardTest, EveryProperPrefixAndEveryFlippedByteIsRefused) {
  ShardSetHeader header = Header();
  header.id_codes = std::make_shared<const IdCodes>(
      IdCodes::ForCounts(std::vector<uint64_t>(GetParam(), 0)));  // a short table, for a short test
  std::vector<uint8_t> bytes = test::EncodeShard(header, Chunks());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(CodeOf([&] { test::ReadShardStream(ByteSpan(bytes).first(size)); }), ErrorCode::kBadInput);
  }
  for (uint8_t& byte : bytes) {
    byte ^= 16;
    EXPECT_EQ(CodeOf([&] { test::ReadShardStream(bytes); }), ErrorCode::kBadInput);
    EXPECT_EQ(CodeOf([&] { test::ReadShardView(bytes); }), ErrorCode::kBadInput);
    byte ^= 16;
  }
}

TEST_P(CodedShardTest, OtherCodesAreAnotherSetAndOtherContent) {
  ShardSetHeader other = Header();
  std::vector<uint64_t> counts(GetParam(), 0);
  counts[17] = 1;
  other.id_codes = std::make_shared<const IdCodes>(IdCodes::ForCounts(counts));
  const std::vector<Chunk> chunks = Chunks();
  std::vector<uint8_t> bytes = test::EncodeShard(Header(), {chunks[0], chunks[1]}, 0, 0, false);
  const Sha256Digest content = ShardView(bytes, "one").info().content_sha256;
  EXPECT_NE(
      ShardView(test::EncodeShard(other, {chunks[0], chunks[1]}, 0, 0, false), "two").info().content_sha256,
      content);
  AppendBytes(&bytes, test::EncodeShard(other, {chunks[2]}, 1, 2, true));
  EXPECT_THAT(test::MessageOf([&] { test::ReadShardStream(bytes); }), testing::HasSubstr("another set"));
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, CodedShardTest,
                         testing::Values(300, 65'536, 65'537, 131'072, 1 << 20));

}  // namespace
}  // namespace trainwright

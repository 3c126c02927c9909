#include "lib/loading/document_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "lib/base/rng.h"
#include "lib/loading/sample_stream.h"
#include "lib/packing/packer.h"
#include "tests/loading/text_chunks.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MemoryShardSet;
using Document = std::vector<uint32_t>;

/// Every id occurs once, so that a token tells its document.
std::vector<Document> UniqueDocuments(std::mt19937_64* random, size_t count, size_t most_tokens) {
  std::vector<Document> documents(count);
  uint32_t next_id = 1;
  for (Document& document : documents) {
    document.resize(1 + (*random)() % most_tokens);
    for (uint32_t& id : document) id = next_id++;
  }
  return documents;
}

std::vector<Chunk> Pack(const std::vector<Document>& documents, PackMode mode, uint32_t chunk_tokens) {
  std::vector<Chunk> chunks;
  Packer packer({.mode = mode, .chunk_tokens = chunk_tokens},
                [&](Chunk chunk) { chunks.push_back(std::move(chunk)); });
  for (const Document& document : documents) {
    packer.Add({.tokens = document, .source_bytes = document.size()});
  }
  packer.Finish();
  return chunks;
}

/// The header's definition with the reference library.
bool HeldOut(const Document& document, uint64_t seed, double share) {
  const uint64_t key =
      XXH3_64bits_withSeed(document.data(), document.size() * 4, Rng(seed, "eval split").key());
  return static_cast<double>(key) / 0x1p64 < share;
}

std::set<uint32_t> TokensOfAnEpoch(const MemoryShardSet& set, const SampleStreamOptions& options,
                                   std::set<uint32_t>* labels) {
  SampleStream stream(&set, options);
  std::set<uint32_t> tokens;
  while (stream.cursor().epoch == 0) {
    PackedBatch batch;
    stream.Next().AppendTo(&batch);
    tokens.insert(batch.tokens.begin(), batch.tokens.end());
    for (const int64_t label : batch.labels) {
      if (label != kIgnoreLabel) labels->insert(static_cast<uint32_t>(label));
    }
  }
  return tokens;
}

TEST(DocumentSplit, TrainingSeesEveryTokenThatIsNotHeldOutAndNoOther) {
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE("seed " + std::to_string(test::TestSeed()) + ", round " + std::to_string(round));
    const std::vector<Document> documents = UniqueDocuments(&random, 60, 50);
    const MemoryShardSet set(Pack(documents, round % 2 == 0 ? PackMode::kBestFit : PackMode::kNone, 64), 3);
    const uint64_t seed = random();
    const DocumentSplit split = ParseDocumentSplit("0.25", seed, &set);
    std::set<uint32_t> train, held_out;
    for (const Document& document : documents) {
      (HeldOut(document, seed, 0.25) ? held_out : train).insert(document.begin(), document.end());
    }
    std::set<uint32_t> labels;
    const SampleStreamOptions options{
        .sequence_tokens = 20, .seed = random(), .window_chunks = 4, .split = split};
    EXPECT_EQ(TokensOfAnEpoch(set, options, &labels), train);
    EXPECT_TRUE(std::includes(train.begin(), train.end(), labels.begin(), labels.end()));
    std::set<uint32_t> evaluated;
    for (uint64_t chunk = 0, first = 0; chunk < set.chunks(); ++chunk) {
      const std::vector<Chunk> frame = set.ReadFrameOf(chunk, &first);
      for (const DocumentPart& part : PartsOf(frame.at(chunk - first), split, /*held_out=*/true)) {
        evaluated.insert(part.tokens.begin(), part.tokens.end());
      }
    }
    EXPECT_EQ(evaluated, held_out);
    const SplitCounts counts = CountSplit(split, set, /*masked=*/false);
    EXPECT_EQ(counts.documents, documents.size());
    EXPECT_EQ(counts.held_out_tokens, held_out.size());
    EXPECT_EQ(counts.tokens, held_out.size() + train.size());
    EXPECT_EQ(counts.held_out_labels + counts.held_out_documents, counts.held_out_tokens);
  }
}

TEST(DocumentSplit, OfContrastiveRecordsTheQueryDecidesForAllTexts) {
  const std::vector<test::PlainRecord> records = test::NumberedRecords(80, 0, 2, 1);
  const MemoryShardSet set(test::ChunksOf(records), 3, 1u << 16, RecordKind::kContrastive);
  const DocumentSplit split = ParseDocumentSplit("0.3", 4, &set);
  std::set<uint32_t> expected, found;
  for (const test::PlainRecord& record : records) {
    if (HeldOut(record.query.tokens(), 4, 0.3)) expected.insert(record.query.pooled.front());
  }
  for (uint64_t chunk = 0, first = 0; chunk < set.chunks(); ++chunk) {
    const std::vector<Chunk> frame = set.ReadFrameOf(chunk, &first);
    for (const ContrastiveRecord& record :
         ContrastiveRecordsOf(frame.at(chunk - first), split, /*held_out=*/true)) {
      EXPECT_EQ(record.positives.size(), 2u);
      found.insert(record.query.tokens.front());
    }
  }
  EXPECT_EQ(found, expected);
  const SplitCounts counts = CountSplit(split, set, /*masked=*/false);
  EXPECT_EQ(counts.documents, 80u);
  EXPECT_EQ(counts.tokens, 320u);
  EXPECT_EQ(counts.held_out_documents, expected.size());
  EXPECT_EQ(counts.held_out_tokens, 4 * expected.size());
  EXPECT_EQ(counts.held_out_labels, expected.size());
}

/// Chunks of a conversation each: a question of two ids, and one of its answers, of one.
std::vector<Chunk> Conversations(uint32_t questions, uint32_t answers) {
  std::vector<Chunk> chunks;
  for (uint32_t question = 0; question < questions; ++question) {
    for (uint32_t answer = 0; answer < answers; ++answer) {
      chunks.push_back({.segments = {{.tokens = 2, .flags = kSegmentNoLoss},
                                     {.tokens = 1, .flags = kSegmentContinuesPrevious}},
                        .tokens = {1, 100 + question, 1000 + answer}});
    }
  }
  return chunks;
}

TEST(DocumentSplit, AllAnswersToAQuestionAreOnItsSide) {
  const std::vector<Chunk> chunks = Conversations(60, 4);
  const MemoryShardSet set(chunks, 8, 1u << 16, RecordKind::kSft);
  const DocumentSplit split = ParseDocumentSplit("0.3", 2, &set);
  DocumentSplit older = split;
  older.key = SplitKey::kAllIds;
  uint64_t held_out = 0, otherwise = 0;
  for (const Chunk& chunk : chunks) {
    const DocumentPart part = PartsOf(chunk).at(0);
    const Document all(part.tokens.begin(), part.tokens.end()), question = {all[0], all[1]};
    EXPECT_EQ(split.HoldsOut(part), HeldOut(question, 2, 0.3));
    EXPECT_EQ(older.HoldsOut(part), HeldOut(all, 2, 0.3));
    held_out += split.HoldsOut(part) ? 1 : 0;
    otherwise += split.HoldsOut(part) != older.HoldsOut(part) ? 1 : 0;
  }
  EXPECT_GT(otherwise, 0u);
  EXPECT_EQ(CountSplit(split, set, /*masked=*/true).held_out_documents, held_out);
  EXPECT_EQ(CountSplit(ParseDocumentSplit("6", 2, &set), set, true).held_out_documents, 8u)
      << "two questions: the answers that are more than asked for are held out with theirs";
}

TEST(DocumentSplit, WhatBeginsWithoutAQuestionGoesByAllItsIds) {
  const Chunk answer_first = {
      .segments = {{.tokens = 1}, {.tokens = 2, .flags = kSegmentNoLoss | kSegmentContinuesPrevious}},
      .tokens = {7, 8, 9}};
  const Chunk rest = {.segments = {{.tokens = 2, .flags = kSegmentNoLoss | kSegmentStartsMidDocument},
                                   {.tokens = 1, .flags = kSegmentContinuesPrevious}},
                      .tokens = {7, 8, 9}};
  const DocumentSplit split = {.asked = "0.5", .key = SplitKey::kQuestion};
  for (const Chunk& chunk : {answer_first, rest}) {
    EXPECT_EQ(split.KeyedOf(PartsOf(chunk).at(0)).size(), 3u);
  }
}

TEST(DocumentSplit, APlanSaysWhatItsKeysAreMadeOf) {
  const DocumentSplit split = {.asked = "0.1", .seed = 3, .bound = 5, .key = SplitKey::kQuestion};
  DocumentSplit older = split;
  older.key = SplitKey::kAllIds;
  EXPECT_EQ(EncodeSplit(split).dump(), R"({"asked":"0.1","seed":3,"bound":5,"key":"question"})");
  EXPECT_EQ(EncodeSplit(older).dump(), R"({"asked":"0.1","seed":3,"bound":5})");
  for (const DocumentSplit& stored : {split, older}) {
    EXPECT_EQ(DecodeSplit(nlohmann::json(EncodeSplit(stored))), stored);
  }
  EXPECT_NE(IdentityOf(split), IdentityOf(older));
  EXPECT_EQ(CodeOf([] {
              DecodeSplit(nlohmann::json::parse(R"({"asked":"0.1","seed":3,"bound":5,"key":"answer"})"));
            }),
            ErrorCode::kBadInput);
}

TEST(DocumentSplit, ANumberOfContrastiveRecordsIsThatOfTheirQueries) {
  const MemoryShardSet set(test::ChunksOf(test::NumberedRecords(50)), 3, 1u << 16, RecordKind::kContrastive);
  const SplitCounts counts = CountSplit(ParseDocumentSplit("7", 1, &set), set, /*masked=*/false);
  EXPECT_EQ(counts.held_out_documents, 7u);
}

TEST(DocumentSplit, OfACutDocumentNoTokenOrLabelOfTheOtherSideIsSeen) {
  std::mt19937_64 random(test::TestSeed());
  const std::vector<Document> documents = UniqueDocuments(&random, 40, 200);
  for (const PackMode mode : {PackMode::kConcat, PackMode::kBestFit}) {
    const MemoryShardSet set(Pack(documents, mode, 32), 4);
    const DocumentSplit split = ParseDocumentSplit("0.5", 3, &set);
    std::set<uint32_t> labels, held_out;
    for (uint64_t chunk = 0, first = 0; chunk < set.chunks(); ++chunk) {
      const std::vector<Chunk> frame = set.ReadFrameOf(chunk, &first);
      for (const DocumentPart& part : PartsOf(frame.at(chunk - first), split, /*held_out=*/true)) {
        held_out.insert(part.tokens.begin(), part.tokens.end());
        EXPECT_EQ(part.next_token(false), kNoId);
      }
    }
    std::set<uint32_t> train = TokensOfAnEpoch(set, {.sequence_tokens = 16, .split = split}, &labels);
    train.insert(labels.begin(), labels.end());
    std::vector<uint32_t> both;
    std::set_intersection(train.begin(), train.end(), held_out.begin(), held_out.end(),
                          std::back_inserter(both));
    EXPECT_THAT(both, testing::IsEmpty()) << "seed " << test::TestSeed();
    EXPECT_FALSE(held_out.empty());
  }
}

TEST(DocumentSplit, NeitherNewDataNorOrderNorPackingMovesADocument) {
  std::mt19937_64 random(test::TestSeed());
  std::vector<Document> documents = UniqueDocuments(&random, 200, 30);
  const std::vector<Document> few(documents.begin() + 50, documents.begin() + 120);
  const auto sides = [](const std::vector<Document>& some, PackMode mode, uint32_t chunk_tokens) {
    const MemoryShardSet set(Pack(some, mode, chunk_tokens), 2);
    const DocumentSplit split = ParseDocumentSplit("0.3", 7, &set);
    std::map<uint32_t, bool> held_out;  // by first token
    for (uint64_t chunk = 0, first = 0; chunk < set.chunks(); ++chunk) {
      const std::vector<Chunk> frame = set.ReadFrameOf(chunk, &first);
      for (const DocumentPart& part : PartsOf(frame.at(chunk - first))) {
        held_out[part.tokens.front()] = split.HoldsOut(part);
      }
    }
    return held_out;
  };
  const auto before = sides(few, PackMode::kBestFit, 64);
  std::shuffle(documents.begin(), documents.end(), random);
  for (const PackMode mode : {PackMode::kNone, PackMode::kBestFit}) {
    const auto after = sides(documents, mode, 100);
    EXPECT_EQ(after.size(), documents.size());
    for (const auto& [token, side] : before) EXPECT_EQ(after.at(token), side) << "seed " << test::TestSeed();
  }
}

TEST(DocumentSplit, AShareIsAboutThatShareAndANumberIsThatNumber) {
  std::mt19937_64 random(test::TestSeed());
  const std::vector<Document> documents = UniqueDocuments(&random, 4000, 5);
  const MemoryShardSet set(Pack(documents, PackMode::kBestFit, 64), 16);
  // Five standard deviations of a binomial.
  EXPECT_NEAR(
      static_cast<double>(CountSplit(ParseDocumentSplit("0.1", 1, &set), set, false).held_out_documents), 400,
      5 * std::sqrt(4000 * 0.1 * 0.9));
  for (const char* count : {"1", "17", "3999"}) {
    EXPECT_EQ(CountSplit(ParseDocumentSplit(count, 1, &set), set, false).held_out_documents,
              static_cast<uint64_t>(std::stoi(count)));
  }
  EXPECT_NE(ParseDocumentSplit("17", 1, &set).bound, ParseDocumentSplit("17", 2, &set).bound);
}

TEST(DocumentSplit, WhatCannotBeReadIsAnErrorOrLeftOutAsAsked) {
  std::mt19937_64 random(test::TestSeed());
  const std::vector<Document> documents = UniqueDocuments(&random, 60, 10);
  std::vector<Chunk> chunks = Pack(documents, PackMode::kNone, 64);
  test::FaultyShardSet cut(chunks, 8);
  cut.corrupt = {3};
  EXPECT_EQ(test::CodeOf([&] { ParseDocumentSplit("5", 0, &cut); }), ErrorCode::kBadInput);
  const DocumentSplit split = ParseDocumentSplit("5", 0, &cut, /*skip_bad=*/true);
  EXPECT_EQ(test::CodeOf([&] { CountSplit(split, cut, false); }), ErrorCode::kBadInput);
  const MemoryShardSet rest({chunks.begin() + 8, chunks.end()}, 8);
  EXPECT_EQ(split.bound, ParseDocumentSplit("5", 0, &rest).bound);
  const SplitCounts counts = CountSplit(split, cut, false, /*skip_bad=*/true),
                    expected = CountSplit(split, rest, false);
  EXPECT_EQ(counts.documents, expected.documents);
  EXPECT_EQ(counts.held_out_tokens, expected.held_out_tokens);
}

TEST(DocumentSplit, CopiesOfADocumentAreOnOneSide) {
  std::mt19937_64 random(test::TestSeed());
  std::vector<Document> documents = UniqueDocuments(&random, 50, 10);
  const std::vector<Document> once = documents;
  documents.insert(documents.end(), once.begin(), once.end());
  const MemoryShardSet set(Pack(documents, PackMode::kBestFit, 64), 2);
  EXPECT_EQ(CountSplit(ParseDocumentSplit("5", 0, &set), set, false).held_out_documents, 6u)
      << "three pairs: the fifth document's copy is held out with it";
}

TEST(DocumentSplit, WhatIsNoShareAndNoNumberIsRefused) {
  const MemoryShardSet set(Pack({{1, 2}, {3, 4}}, PackMode::kBestFit, 64), 2);
  for (const char* asked : {"0", "1.0", "-0.1", "0.0", "2", "x", "0.1x", "5%", "nan", "1e300", " 1"}) {
    EXPECT_EQ(CodeOf([&] { ParseDocumentSplit(asked, 0, &set); }), ErrorCode::kUsage) << asked;
  }
  EXPECT_EQ(CodeOf([&] { ParseDocumentSplit("1", 0, nullptr); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace trainwright

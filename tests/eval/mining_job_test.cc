#include "lib/eval/mining_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/eval/bytes_model.h"
#include "tests/model/families.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class MiningTest : public testing::Test {
 protected:
  MiningTest() {
    test::WriteModel(folder_.path("model"));
    settings_.embedding.checkpoint = folder_.path("model");
    settings_.output = folder_.path("out.jsonl");
    settings_.mining.records = folder_.path("records.jsonl");
    settings_.mining.relative_margin = 0;
  }
  std::vector<nlohmann::json> Mined(const std::string& records) {
    test::WriteFile(settings_.mining.records, records);
    summary_ = RunMining(test::Families(), settings_, ProcessSetup{}, Solo(), ProgressMode::kNever);
    std::istringstream lines(test::ReadFile(settings_.output));
    std::vector<nlohmann::json> mined;
    for (std::string line; std::getline(lines, line);) mined.push_back(nlohmann::json::parse(line));
    return mined;
  }
  test::TemporaryFolder folder_;
  EmbedSettings settings_;
  nlohmann::ordered_json summary_;
};

TEST_F(MiningTest, APositiveIsNeverANegativeWhicheverRecordBringsIt) {
  std::string records;
  for (int i = 0; i < 30; ++i) {
    records += "{\"query\": \"q" + std::to_string(i) + "\", \"pos\": [\"p" + std::to_string(i % 7) +
               "\", \"p" + std::to_string(i % 5) + "\"], \"kept\": " + std::to_string(i) + "}\n";
  }
  settings_.mining.negatives = 100;
  const auto mined = Mined(records);
  ASSERT_EQ(mined.size(), 30u);
  uint64_t negatives = 0;
  for (size_t i = 0; i < mined.size(); ++i) {
    EXPECT_EQ(mined[i]["kept"], i) << "records keep their order and what else they say";
    for (const nlohmann::json& negative : mined[i]["neg"]) {
      ++negatives;
      for (const nlohmann::json& positive : mined[i]["pos"]) EXPECT_NE(negative, positive);
    }
  }
  EXPECT_GT(negatives, 0u);
  EXPECT_EQ(summary_["negatives"], negatives);
  EXPECT_EQ(summary_["corpus"], 7) << "texts are told apart by what they say";
}

TEST_F(MiningTest, RecordsOfOneQueryGetTheNegativesOfOneWithAllTheirPositives) {
  std::string others;
  for (int i = 0; i < 20; ++i) {
    others += "{\"query\": \"r" + std::to_string(i) + "\", \"pos\": [\"p" + std::to_string(i) + "\"]}\n";
  }
  settings_.mining.negatives = 100;
  settings_.embedding.batch_invariant = true;
  const auto apart = Mined(
      "{\"query\": \"q\", \"pos\": [\"one\"]}\n"
      "{\"query\": \"q\", \"pos\": [\"another\"]}\n" +
      others);
  const auto together = Mined("{\"query\": \"q\", \"pos\": [\"one\", \"another\"]}\n" + others);
  EXPECT_EQ(apart[0]["neg"], together[0]["neg"]);
  EXPECT_EQ(apart[1]["neg"], together[0]["neg"]);
}

TEST_F(MiningTest, WhatElseRecordsSayIsKeptAsItIsWritten) {
  settings_.mining.negatives = 1;
  const std::string kept = "\"id\": 340282366920938463463374607431768211455, \"pi\": 3.1400, \"z\": [ 1e30]";
  Mined("{" + kept + ", \"query\": \"q\", \"pos\": [\"p\"]}\n{\"query\": \"r\", \"pos\": [\"s\"]}\n");
  EXPECT_THAT(
      test::ReadFile(settings_.output),
      testing::StartsWith("{\"id\":340282366920938463463374607431768211455,\"pi\":3.1400,\"z\":[ 1e30],"
                          "\"query\":\"q\",\"pos\":[\"p\"],\"neg\":["));
}

TEST_F(MiningTest, NegativesComeFromTheCorpusThatIsGiven) {
  test::WriteFile(folder_.path("corpus.txt"), "one\ntwo\nthe positive\nthe query\n");
  settings_.mining.corpus = folder_.path("corpus.txt");
  settings_.mining.relative_margin = 0;
  settings_.mining.negatives = 10;
  const auto mined = Mined(
      "{\"query\": \"the query\", \"pos\": [\"the positive\"], \"neg\": [\"old\"]}\n"
      "{\"query\": \"x\", \"pos\": [\"y\"]}\n");
  for (const nlohmann::json& record : mined) {
    for (const nlohmann::json& negative : record["neg"]) {
      EXPECT_TRUE(negative == "one" || negative == "two" || record["query"] == "x") << negative;
      EXPECT_NE(negative, "y") << "another record's positive, which is not of the corpus";
    }
  }
}

TEST_F(MiningTest, KeptNegativesStandInFrontAndComeOnce) {
  test::WriteFile(folder_.path("corpus.txt"), "old\nnew\n");
  settings_.mining.corpus = folder_.path("corpus.txt");
  settings_.mining.keep_negatives = true;
  const auto mined = Mined("{\"query\": [\"find\", \"q\"], \"pos\": [\"p\"], \"neg\": [\"old\"]}\n");
  ASSERT_GE(mined[0]["neg"].size(), 1u);
  EXPECT_EQ(mined[0]["neg"][0], "old");
  for (size_t i = 1; i < mined[0]["neg"].size(); ++i) EXPECT_EQ(mined[0]["neg"][i], "new");
}

TEST_F(MiningTest, ATextThatScoresAsThePositiveIsNotAboveIt) {
  test::WriteFile(folder_.path("corpus.txt"), "abcdefgh and another end\n");
  settings_.mining.corpus = folder_.path("corpus.txt");
  settings_.embedding.max_length = 8;  // what is left of both is the same
  settings_.embedding.batch_invariant = true;
  std::string records;
  for (int i = 0; i < 20; ++i) {
    records += "{\"query\": \"q" + std::to_string(i) + "\", \"pos\": [\"abcdefgh\"]}\n";
  }
  for (const nlohmann::json& record : Mined(records)) EXPECT_EQ(record["neg"].size(), 1u) << record["query"];
}

TEST_F(MiningTest, ACorpusWithoutATextIsRefused) {
  test::WriteFile(folder_.path("corpus.txt"), "\n");
  settings_.mining.corpus = folder_.path("corpus.txt");
  EXPECT_THAT(test::MessageOf([&] { Mined("{\"query\": \"q\", \"pos\": [\"p\"]}\n"); }),
              testing::HasSubstr("holds no text"));
}

TEST_F(MiningTest, BadRecordsAreRefusedWithTheirLine) {
  EXPECT_THAT(test::MessageOf([&] { Mined("{\"query\": \"q\", \"pos\": [\"p\"]}\n{\"query\": \"q\"}\n"); }),
              testing::HasSubstr("line 2"));
  EXPECT_EQ(test::CodeOf([&] { Mined("\n"); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright

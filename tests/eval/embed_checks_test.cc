#include "lib/eval/embed_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::StartsWith;

EmbedSettings MiningOf(const std::string& records) {
  EmbedSettings settings;
  settings.mining.records = records;
  return settings;
}

/// The message of what is refused; empty: it is taken.
std::string RefusalOf(const EmbedSettings& settings) {
  return test::MessageOf([&] { CheckEmbedSettings(settings); });
}

TEST(EmbedChecksTest, EmbeddingTakesItsOwnOptions) {
  EmbedSettings settings;
  settings.input = "texts.jsonl";
  settings.output = "texts.npy";
  settings.format = "npy";
  settings.resume = true;
  EXPECT_EQ(RefusalOf(settings), "");
  settings.mining.corpus = "corpus.jsonl";
  EXPECT_THAT(RefusalOf(settings), StartsWith("--corpus: has a meaning only with --mine-negatives"));
}

TEST(EmbedChecksTest, MiningRefusesWhatIsAboutVectors) {
  EXPECT_EQ(RefusalOf(MiningOf("records.jsonl")), "");
  EmbedSettings settings = MiningOf("records.jsonl");
  settings.input = "texts.jsonl";
  EXPECT_THAT(RefusalOf(settings), StartsWith("--input: "));
  settings = MiningOf("records.jsonl");
  settings.context_cache = "contexts";
  EXPECT_THAT(RefusalOf(settings), StartsWith("--context-cache: "));
  settings = MiningOf("records.jsonl");
  settings.resume = true;
  EXPECT_THAT(RefusalOf(settings), StartsWith("--resume: "));
}

TEST(EmbedChecksTest, MiningWritesRecordsAlone) {
  EmbedSettings settings = MiningOf("records.jsonl");
  settings.format = "jsonl";
  EXPECT_EQ(RefusalOf(settings), "");
  settings.format = "npy";
  EXPECT_THAT(RefusalOf(settings), StartsWith("--format: has to be jsonl"));
}

TEST(EmbedChecksTest, ThePlacesOfMiningDoNotEndBeforeTheyBegin) {
  EmbedSettings settings = MiningOf("records.jsonl");
  settings.mining.first_place = settings.mining.last_place = 7;
  EXPECT_EQ(RefusalOf(settings), "");
  settings.mining.last_place = 6;
  EXPECT_THAT(RefusalOf(settings), StartsWith("--first-place: 7 lies after --last-place 6"));
}

}  // namespace
}  // namespace trainwright

// Evaluation by several ranks, which are threads of this process, against that of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/dist/world.h"
#include "lib/eval/evaluate_job.h"
#include "lib/io/file_checksum.h"
#include "lib/loading/joined_shard_set.h"
#include "lib/objective/lm_objective.h"
#include "tests/eval/bytes_model.h"
#include "tests/model/families.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::BytesModel;
using testing::HasSubstr;

constexpr int64_t kSequenceTokens = 16;

std::string Document(int64_t number) {
  const std::string verse = "To be, or not to be, that is the question: " + std::to_string(number);
  return verse.substr(0, static_cast<size_t>(5 + number * 7 % 40));
}

class RankEvaluateTest : public testing::Test {
 protected:
  RankEvaluateTest() {
    test::WriteModel(folder_.path());
    std::string text;
    for (int64_t number = 0; number < 60; ++number) text += Document(number) + "\n";
    test::WriteFile(folder_.path("text.txt"), text);
  }

  EvaluateJobOptions OptionsFor(const std::string& data, World* world) const {
    EvaluateJobOptions options;
    options.checkpoint = folder_.path();
    options.data = folder_.path(data);
    options.sequence_tokens = kSequenceTokens;
    options.batch_sequences = 1;
    options.world = world;
    return options;
  }
  static std::string Evaluate(const EvaluateJobOptions& options) {
    return RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever).dump();
  }

  test::TemporaryFolder folder_;
};

TEST_F(RankEvaluateTest, TextGivesTheBytesThatOneRankGivesOnAllRanks) {
  const auto evaluate = [&](World* world) { return Evaluate(OptionsFor("text.txt", world)); };
  const std::string one = test::OnOneRank(evaluate);
  EXPECT_THAT(one, HasSubstr("perplexity"));
  for (const int64_t ranks : {2, 3}) {
    for (const std::string& result : test::OnRanks(ranks, evaluate)) EXPECT_EQ(result, one) << ranks;
  }
}

TEST_F(RankEvaluateTest, MoreRanksThanBatchesGiveTheSame) {
  const auto evaluate = [&](World* world) {
    EvaluateJobOptions options = OptionsFor("text.txt", world);
    options.batch_sequences = 60;  // two batches
    return Evaluate(options);
  };
  const std::string one = test::OnOneRank(evaluate);
  for (const std::string& result : test::OnRanks(5, evaluate)) EXPECT_EQ(result, one);
}

TEST_F(RankEvaluateTest, ABatchWithoutLabelsIsNobodysLoss) {
  std::string text;
  for (int64_t number = 0; number < kSequenceTokens; ++number) text += "x\n";  // the first batch of two
  test::WriteFile(folder_.path("single.txt"), text + "To be, or not to be\nthat is the question\n");
  const auto evaluate = [&](World* world) { return Evaluate(OptionsFor("single.txt", world)); };
  const std::string one = test::OnOneRank(evaluate);
  for (const std::string& result : test::OnRanks(2, evaluate)) EXPECT_EQ(result, one);
}

TEST_F(RankEvaluateTest, DataWithoutAnyLabelIsRefusedOnAllRanks) {
  test::WriteFile(folder_.path("none.txt"), "a\nb\n");
  const auto codes = test::OnRanks(
      2, [&](World* world) { return test::CodeOf([&] { Evaluate(OptionsFor("none.txt", world)); }); });
  for (const auto& code : codes) EXPECT_EQ(code, ErrorCode::kBadInput);
}

TEST_F(RankEvaluateTest, TheWriterDumpsTheLogitsThatOneRankDumps) {
  const auto dump = [&](const std::string& name) {
    return [this, name](World* world) {
      EvaluateJobOptions options = OptionsFor("text.txt", world);
      options.logits_path = folder_.path(name + std::to_string(world->rank()));
      return Evaluate(options);
    };
  };
  test::OnOneRank(dump("alone"));
  test::OnRanks(2, dump("logits"));
  EXPECT_EQ(Sha256OfFile(folder_.path("logits0")), Sha256OfFile(folder_.path("alone0")));
  EXPECT_FALSE(test::NamesIn(folder_.path()).contains("logits1"));
}

TEST_F(RankEvaluateTest, WhatCanBeReadOnceIsRefused) {
  ASSERT_EQ(mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  for (const std::string& data : {folder_.path("pipe"), std::string("-"), std::string("/dev/null")}) {
    const auto messages = test::OnRanks(2, [&](World* world) {
      EvaluateJobOptions options = OptionsFor("text.txt", world);
      options.data = data;
      return test::MessageOf([&] { Evaluate(options); });
    });
    for (const std::string& message : messages)
      EXPECT_THAT(message, HasSubstr("can be read once only")) << data;
  }
}

TEST_F(RankEvaluateTest, ARankWithOtherTextEndsAll) {
  std::string text = test::ReadFile(folder_.path("text.txt"));
  text[0] = 'X';  // as many tokens
  test::WriteFile(folder_.path("other.txt"), text);
  const auto messages = test::OnRanks(2, [&](World* world) {
    const std::string data = world->rank() == 0 ? "text.txt" : "other.txt";
    return test::MessageOf([&] { Evaluate(OptionsFor(data, world)); });
  });
  EXPECT_THAT(messages[1], HasSubstr("sha256 of the data"));
  EXPECT_THAT(messages[0], HasSubstr("rank 1"));
}

TEST_F(RankEvaluateTest, ARankWithOtherOptionsEndsAllBeforeAnythingIsComputed) {
  const auto messages = test::OnRanks(2, [&](World* world) {
    EvaluateJobOptions options = OptionsFor("text.txt", world);
    options.batch_sequences += world->rank();
    return test::MessageOf([&] { Evaluate(options); });
  });
  EXPECT_THAT(messages[1], HasSubstr("--batch"));
  EXPECT_THAT(messages[0], HasSubstr("rank 1"));
}

TEST_F(RankEvaluateTest, TextThatOneRankCannotReadEndsAll) {
  test::WriteFile(folder_.path("good.jsonl"), "{\"text\": \"To be, or not to be\"}\n");
  test::WriteFile(folder_.path("bad.jsonl"), "{\"text\": \"To be, or not to be\"}\njunk\n");
  const auto messages = test::OnRanks(2, [&](World* world) {
    const std::string data = world->rank() == 0 ? "good.jsonl" : "bad.jsonl";
    return test::MessageOf([&] { Evaluate(OptionsFor(data, world)); });
  });
  EXPECT_THAT(messages[1], HasSubstr("bad.jsonl"));
  EXPECT_THAT(messages[0], testing::AllOf(HasSubstr("rank 1"), HasSubstr("bad.jsonl")));
}

/// Chunks of a document each, one to a frame.
std::vector<Chunk> Documents(int64_t documents) {
  std::vector<Chunk> chunks;
  for (int64_t number = 0; number < documents; ++number) {
    const std::string document = Document(number);
    Chunk& chunk = chunks.emplace_back();
    chunk.tokens.assign(document.begin(), document.end());
    chunk.segments = {{.tokens = static_cast<uint32_t>(document.size()), .source_bytes = document.size()}};
  }
  return chunks;
}

/// As a run evaluates between two steps.
Evaluation EvaluateSet(LanguageModel* model, const ShardSet& set, World* world, uint64_t max_tokens = 0) {
  const LmObjective objective(LossOn::kAll, {});
  return objective.Evaluate(model, set,
                            {.sequence_tokens = kSequenceTokens,
                             .batch_tokens = 2 * kSequenceTokens,
                             .max_tokens = max_tokens,
                             .world = world});
}

TEST(RankObjectiveTest, AnEvaluationDuringTrainingIsThatOfOneRank) {
  const test::MemoryShardSet set(Documents(90), 4);
  for (const uint64_t max_tokens : {uint64_t{0}, uint64_t{700}}) {
    const auto evaluate = [&](World* world) {
      return EvaluateSet(BytesModel().get(), set, world, max_tokens);
    };
    const Evaluation one = test::OnOneRank(evaluate);
    for (const int64_t ranks : {2, 4}) {
      for (const Evaluation& evaluation : test::OnRanks(ranks, evaluate)) {
        EXPECT_EQ(evaluation.loss_nats, one.loss_nats) << ranks;
        EXPECT_EQ(evaluation.tokens, one.tokens);
        EXPECT_EQ(evaluation.documents, one.documents);
        ASSERT_EQ(evaluation.measures.size(), one.measures.size());
        for (size_t i = 0; i < one.measures.size(); ++i) {
          EXPECT_EQ(evaluation.measures[i].value, one.measures[i].value) << one.measures[i].name;
        }
      }
    }
  }
}

TEST(RankObjectiveTest, TokensOfAnEvaluationAreSharedOutOverItsSets) {
  const auto documents = [](size_t count, size_t tokens) {
    const Chunk chunk = {.segments = {{.tokens = static_cast<uint32_t>(tokens), .source_bytes = tokens}},
                         .tokens = std::vector<uint32_t>(tokens, 'a')};
    return std::make_unique<test::MemoryShardSet>(std::vector<Chunk>(count, chunk), 4);
  };
  std::vector<NamedShardSet> sets;
  sets.push_back({"long", documents(40, 20)});
  sets.push_back({"short", documents(200, 4)});
  const std::unique_ptr<ShardSet> set = JoinShardSets(std::move(sets));
  const Evaluation evaluation = EvaluateSet(BytesModel().get(), *set, Solo(), /*max_tokens=*/200);
  EXPECT_EQ(evaluation.tokens, 200u);
  EXPECT_EQ(evaluation.documents, 30u) << "5 of 20 tokens, and 25 of 4";
}

TEST(RankObjectiveTest, AFrameThatOneRankCannotReadEndsTheEvaluationOfAll) {
  const test::FaultyShardSet sound(Documents(90), 1);
  test::FaultyShardSet corrupt(Documents(90), 1);
  corrupt.corrupt.insert(70);
  const auto codes = test::OnRanks(3, [&](World* world) {
    return test::CodeOf(
        [&] { EvaluateSet(BytesModel().get(), world->rank() == 2 ? corrupt : sound, world); });
  });
  EXPECT_EQ(codes,
            (std::vector<std::optional<ErrorCode>>{ErrorCode::kIo, ErrorCode::kIo, ErrorCode::kBadInput}));
}

TEST(RankObjectiveTest, ALossThatIsNotFiniteOnOneRankEndsTheEvaluationOfAll) {
  const test::MemoryShardSet set(Documents(90), 4);
  const auto codes = test::OnRanks(3, [&](World* world) {
    const auto model = BytesModel();
    if (world->rank() == 1) {
      at::Tensor(model->parameters().all()[0].value).fill_(std::numeric_limits<float>::quiet_NaN());
      model->parameters().RefreshCompute();
    }
    return test::CodeOf([&] { EvaluateSet(model.get(), set, world); });
  });
  for (const auto& code : codes) EXPECT_EQ(code, ErrorCode::kNonFinite);
}

}  // namespace
}  // namespace trainwright

#include "lib/eval/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/eval/generate_job.h"
#include "lib/loading/packed_batch.h"
#include "lib/objective/perplexity.h"
#include "lib/score/answer.h"
#include "tests/eval/bytes_model.h"
#include "tests/model/families.h"
#include "tests/objective/counting_body.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::BytesModel;

using Prompts = std::vector<std::vector<uint32_t>>;

std::vector<uint32_t> Ids(const std::string& text) {
  return {text.begin(), text.end()};
}

struct Result {
  std::vector<Generation> samples;
  GenerationCounts counts;
};

Result GenerateAll(LanguageModel* model, const GenerationOptions& options, const Prompts& prompts,
                   const StopCheck& stop = {}) {
  Result result;
  uint64_t next = 0;
  result.counts = Generate(
      model, options,
      [&](TokenizedPrompt* prompt) {
        if (next == prompts.size()) return false;
        *prompt = {next, prompts[next]};
        ++next;
        return true;
      },
      stop, [&](Generation&& sample) { result.samples.push_back(std::move(sample)); });
  return result;
}

Generation GenerateOne(LanguageModel* model, const GenerationOptions& options, const std::string& prompt) {
  return GenerateAll(model, options, {Ids(prompt)}).samples.at(0);
}

/// Logits of the next token, from a forward pass over the whole sequence.
at::Tensor LogitsFromScratch(LanguageModel* model, const std::vector<uint32_t>& ids) {
  PackedBatch batch;
  batch.AppendSpan(ids, kNoId);
  return model->Logits(ToModelInput(batch))[-1];
}

const Prompts kPrompts = {Ids("To be"), Ids("x"),    Ids("Whether 'tis nobler"),          Ids("the question"),
                          Ids("q"),     Ids("mind"), Ids("Or not, or not, or not to be"), Ids("z")};

TEST(GenerateTest, TokensEqualThoseOfRecomputingFromScratch) {
  const auto model = BytesModel();
  const Generation generation = GenerateOne(model.get(), {.max_tokens = 40}, "To be");
  ASSERT_EQ(generation.ids.size(), 40u);
  EXPECT_EQ(generation.finish, FinishReason::kLength);
  std::vector<uint32_t> ids = Ids("To be");
  for (const uint32_t token : generation.ids) {
    EXPECT_EQ(token, LogitsFromScratch(model.get(), ids).argmax().item<int64_t>()) << "after " << ids.size();
    ids.push_back(token);
  }
}

TEST(GenerateTest, APromptsOwnEndsStandInPlaceOfThoseOfAll) {
  const auto model = BytesModel();
  const std::vector<uint32_t> ids = GenerateOne(model.get(), {.max_tokens = 20}, "To be").ids;
  const auto ends = std::make_shared<PromptEnds>(PromptEnds{.ids = {ids[4]}, .stop = {}});
  const StopCheck after_two = [](std::span<const int64_t>) -> FindEnd {
    return [](const std::vector<uint32_t>& made) -> std::optional<SampleEnd> {
      if (made.size() < 2) return std::nullopt;
      return SampleEnd{.reason = FinishReason::kStop, .ids = 2};
    };
  };
  uint64_t next = 0;
  std::vector<Generation> samples;
  Generate(
      model.get(), {.max_tokens = 20, .batch = 1},
      [&](TokenizedPrompt* prompt) {
        if (next == 2) return false;
        *prompt = {next, Ids("To be")};
        if (next++ == 0) prompt->ends = ends;
        return true;
      },
      after_two, [&](Generation&& sample) { samples.push_back(std::move(sample)); });
  ASSERT_EQ(samples.size(), 2u);
  const auto end = std::find(ids.begin(), ids.end(), ids[4]);
  EXPECT_EQ(samples[0].ids, std::vector<uint32_t>(ids.begin(), end));
  EXPECT_EQ(samples[0].finish, FinishReason::kEos);
  EXPECT_EQ(samples[1].ids, std::vector<uint32_t>(ids.begin(), ids.begin() + 2));
  EXPECT_EQ(samples[1].finish, FinishReason::kStop);
}

TEST(GenerateTest, IdsBeyondATokenizersAreNeverChosen) {
  constexpr int64_t kIds = 100;
  const auto model = BytesModel();
  const Generation greedy = GenerateOne(model.get(), {.max_tokens = 20, .chosen_ids = kIds}, "To be");
  std::vector<uint32_t> ids = Ids("To be");
  for (const uint32_t token : greedy.ids) {
    EXPECT_EQ(token, LogitsFromScratch(model.get(), ids).narrow(0, 0, kIds).argmax().item<int64_t>());
    ids.push_back(token);
  }
  for (const SamplingOptions& sampling :
       {SamplingOptions{.temperature = 5}, SamplingOptions{.temperature = 5, .top_k = 50},
        SamplingOptions{.temperature = 5, .top_p = 0.9}}) {
    const Generation drawn =
        GenerateOne(model.get(), {.sampling = sampling, .max_tokens = 50, .chosen_ids = kIds}, "To be");
    ASSERT_EQ(drawn.ids.size(), 50u);
    for (const uint32_t token : drawn.ids) EXPECT_LT(token, kIds);
  }
}

TEST(GenerateTest, GreedyTokensOfAnyBatchDifferFirstWhereTwoAreAllButEqual) {
  const auto model = BytesModel(128);
  const std::vector<Generation> alone =
      GenerateAll(model.get(), {.max_tokens = 60, .batch = 1}, kPrompts).samples;
  const std::vector<Generation> together =
      GenerateAll(model.get(), {.max_tokens = 60, .batch = 5}, kPrompts).samples;
  ASSERT_EQ(together.size(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) {
    const auto [a, b] = std::mismatch(alone[i].ids.begin(), alone[i].ids.end(), together[i].ids.begin(),
                                      together[i].ids.end());
    if (a == alone[i].ids.end() && b == together[i].ids.end()) continue;
    std::vector<uint32_t> ids = kPrompts[i];
    ids.insert(ids.end(), alone[i].ids.begin(), a);
    const auto top = std::get<0>(LogitsFromScratch(model.get(), ids).topk(2));
    EXPECT_LT(top[0].item<float>() - top[1].item<float>(), 1e-3) << "prompt " << i;
  }
}

TEST(GenerateTest, BatchInvariantSamplesHaveTheSameIdsForEveryBatch) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto model = BytesModel(128, precision);
    GenerationOptions options{.sampling = {.temperature = 1.3, .top_p = 0.98},
                              .max_tokens = 30,
                              .samples = 3,
                              .batch = 1,
                              .batch_invariant = true,
                              .seed = 4};
    const std::vector<Generation> expected = GenerateAll(model.get(), options, kPrompts).samples;
    for (const int64_t batch : {2, 5, 16, 24, 100}) {
      options.batch = batch;
      const std::vector<Generation> samples = GenerateAll(model.get(), options, kPrompts).samples;
      ASSERT_EQ(samples.size(), expected.size());
      for (size_t i = 0; i < samples.size(); ++i)
        EXPECT_EQ(samples[i].ids, expected[i].ids) << batch << ", " << i;
    }
  }
}

TEST(GenerateTest, SamplesComeInOrderAndPromptsAreComputedOnce) {
  const auto model = BytesModel(128);
  const Result result = GenerateAll(
      model.get(), {.sampling = {.temperature = 1}, .max_tokens = 9, .samples = 4, .batch = 3}, kPrompts);
  ASSERT_EQ(result.samples.size(), kPrompts.size() * 4);
  for (size_t i = 0; i < result.samples.size(); ++i) {
    EXPECT_EQ(result.samples[i].prompt, i / 4);
    EXPECT_EQ(result.samples[i].sample, static_cast<int64_t>(i % 4));
  }
  EXPECT_EQ(result.counts.prompts, kPrompts.size());
  EXPECT_EQ(result.counts.prefills, kPrompts.size());
  EXPECT_EQ(result.counts.samples, kPrompts.size() * 4);
  EXPECT_EQ(result.counts.tokens, kPrompts.size() * 4 * 9);
}

TEST(GenerateTest, SamplesDependOnSeedPromptAndNumber) {
  const auto model = BytesModel(128);
  GenerationOptions options{.sampling = {.temperature = 2}, .max_tokens = 20, .samples = 2, .seed = 1};
  const Prompts same = {Ids("To be"), Ids("To be")};
  const std::vector<Generation> first = GenerateAll(model.get(), options, same).samples;
  EXPECT_NE(first[0].ids, first[1].ids);
  EXPECT_NE(first[0].ids, first[2].ids);
  const std::vector<Generation> again = GenerateAll(model.get(), options, same).samples;
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(again[i].ids, first[i].ids);
  options.seed = 2;
  EXPECT_NE(GenerateAll(model.get(), options, same).samples[0].ids, first[0].ids);
}

TEST(GenerateTest, FirstTokensAreDrawnWithTheModelsProbabilities) {
  const auto model = BytesModel();
  constexpr int64_t kSamples = 4000;
  const Result result = GenerateAll(
      model.get(),
      {.sampling = {.temperature = 3}, .max_tokens = 1, .samples = kSamples, .batch = 64, .seed = 9},
      {Ids("To be")});
  std::map<uint32_t, int64_t> counts;
  for (const Generation& sample : result.samples) ++counts[sample.ids.at(0)];
  const at::Tensor probabilities =
      LogitsFromScratch(model.get(), Ids("To be")).to(at::kDouble).div(3).softmax(0);
  // Pearson's statistic over the tokens that are expected 5 times or more: mean about their number, variance
  // twice.
  double statistic = 0, cells = 0;
  for (int64_t token = 0; token < 258; ++token) {
    const double expected = probabilities[token].item<double>() * kSamples;
    if (expected < 5) continue;
    const double difference = static_cast<double>(counts[static_cast<uint32_t>(token)]) - expected;
    statistic += difference * difference / expected;
    ++cells;
  }
  ASSERT_GE(cells, 10);
  EXPECT_LT(statistic, cells + 5 * std::sqrt(2 * cells));
}

TEST(GenerateTest, ThePenaltyCountsPromptAndSample) {
  const auto model = BytesModel();
  constexpr double kPenalty = 1.8;
  const std::vector<uint32_t> prompt = Ids("To be");
  const Generation sample =
      GenerateOne(model.get(), {.sampling = {.repetition_penalty = kPenalty}, .max_tokens = 12}, "To be");
  std::vector<uint32_t> sequence = prompt;
  for (const uint32_t id : sample.ids) {
    at::Tensor logits_v = LogitsFromScratch(model.get(), sequence).clone();
    for (const uint32_t seen : std::set<uint32_t>(sequence.begin(), sequence.end())) {
      const double logit = logits_v[seen].item<double>();
      logits_v[seen] = logit < 0 ? logit * kPenalty : logit / kPenalty;
    }
    EXPECT_EQ(logits_v.argmax().item<int64_t>(), id);
    sequence.push_back(id);
  }
}

TEST(GenerateTest, LogProbabilitiesAreTheModelsOwn) {
  const auto model = BytesModel();
  const Generation sample =
      GenerateOne(model.get(),
                  {.sampling = {.temperature = 2, .top_k = 9, .repetition_penalty = 1.2},
                   .max_tokens = 8,
                   .seed = 4,
                   .log_probabilities = 3},
                  "To be");
  ASSERT_EQ(sample.log_probabilities.size(), sample.ids.size());
  std::vector<uint32_t> sequence = Ids("To be");
  for (size_t i = 0; i < sample.ids.size(); ++i) {
    const at::Tensor expected_v = LogitsFromScratch(model.get(), sequence).to(at::kDouble).log_softmax(0);
    EXPECT_NEAR(sample.log_probabilities[i].chosen, expected_v[sample.ids[i]].item<double>(), 1e-5);
    ASSERT_EQ(sample.log_probabilities[i].most.size(), 3u);
    EXPECT_NEAR(sample.log_probabilities[i].most[0].log_probability, expected_v.max().item<double>(), 1e-5);
    sequence.push_back(sample.ids[i]);
  }
}

TEST(GenerateTest, AConversationComputesWhatIsNewInIt) {
  const auto model = BytesModel(2000);
  const Generation first = GenerateOne(model.get(), {.max_tokens = 6}, "To be");
  std::vector<uint32_t> second = Ids("To be");
  second.insert(second.end(), first.ids.begin(), first.ids.end());
  const size_t held = second.size() - 1;  // the last id that was chosen was not computed
  for (const uint32_t id : Ids(", or not")) second.push_back(id);
  const Prompts prompts = {Ids("To be"), second, Ids("To me"), second};
  const GenerationOptions options{.max_tokens = 6, .batch = 1, .keep_prefix = true};
  const Result kept = GenerateAll(model.get(), options, prompts);
  EXPECT_EQ(kept.counts.kept_tokens, held + 3 + 3);  // "To " of the latter two
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(kept.samples[i].ids, GenerateAll(model.get(), {.max_tokens = 6}, {prompts[i]}).samples[0].ids)
        << i;
  }
}

TEST(GenerateTest, StopsAtTheEndTokenAndAtTheContextsEnd) {
  const auto model = BytesModel();
  const Generation free = GenerateOne(model.get(), {.max_tokens = 1000}, "To");
  EXPECT_EQ(free.finish, FinishReason::kContext);
  EXPECT_EQ(free.ids.size(), 63u);  // the 64th position predicts one more token
  const uint32_t end = free.ids[5];
  const Generation stopped = GenerateOne(model.get(), {.max_tokens = 1000, .ends = {300, end}}, "To");
  EXPECT_EQ(stopped.finish, FinishReason::kEos);
  EXPECT_THAT(stopped.ids, testing::Not(testing::Contains(end)));
}

TEST(GenerateTest, AnyNumberOfTokensMayBeAskedFor) {
  const auto model = BytesModel();
  const Generation generation =
      GenerateOne(model.get(), {.max_tokens = std::numeric_limits<int64_t>::max()}, "To");
  EXPECT_EQ(generation.finish, FinishReason::kContext);
  EXPECT_EQ(generation.ids.size(), 63u);
}

TEST(GenerateTest, EverySampleMayEndWithItsFirstToken) {
  const auto model = BytesModel();
  std::vector<uint32_t> all;
  for (uint32_t id = 0; id < 258; ++id) all.push_back(id);
  const Result result = GenerateAll(model.get(), {.samples = 2, .batch = 3, .ends = all}, kPrompts);
  ASSERT_EQ(result.samples.size(), kPrompts.size() * 2);
  for (const Generation& sample : result.samples) EXPECT_TRUE(sample.ids.empty());
}

TEST(GenerateTest, LongerPromptsMakeRoomForThemselves) {
  const auto model = BytesModel(2000);
  const Prompts prompts = {Ids("short"), Ids(std::string(700, 'a') + "b"), Ids("again"),
                           Ids(std::string(1990, 'c'))};
  const GenerationOptions options{.max_tokens = 20, .batch = 2, .batch_invariant = true};
  const std::vector<Generation> samples = GenerateAll(model.get(), options, prompts).samples;
  ASSERT_EQ(samples.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(samples[i].ids, GenerateAll(model.get(), options, {prompts[i]}).samples[0].ids) << i;
  }
  EXPECT_EQ(samples[3].finish, FinishReason::kContext);
}

/// How many sequences the decoder has memory for.
int64_t RoomOf(const GenerationOptions& options, const Prompts& prompts) {
  const auto model = BytesModel();
  const auto body = std::make_shared<test::CountingBody>(model->shared_body());
  LanguageModel counted(body);
  GenerateAll(&counted, options, prompts);
  return body->decoded_sequences;
}

TEST(GenerateTest, MemoryIsForTheSequencesThatThereAre) {
  const Prompts one = {Ids("To be")}, two = {Ids("To be"), Ids("x")};
  EXPECT_EQ(RoomOf({.max_tokens = 2}, one), 1);
  EXPECT_EQ(RoomOf({.max_tokens = 2, .samples = 3}, two), 6);
  EXPECT_EQ(RoomOf({.max_tokens = 2, .samples = 3, .batch = 4}, two), 4);
  EXPECT_EQ(RoomOf({.max_tokens = 2, .batch = 3}, kPrompts), 3);
}

TEST(GenerateTest, PromptsLongerThanTheContextAreRefused) {
  const auto model = BytesModel();
  EXPECT_EQ(test::CodeOf([&] { GenerateOne(model.get(), {.max_tokens = 4}, std::string(65, 'a')); }),
            ErrorCode::kBadInput);
}

/// What the job writes.
std::string OutputOfJob(GenerateSettings settings, nlohmann::ordered_json* summary = nullptr,
                        bool on_terminal = false) {
  const test::TemporaryFolder folder;
  test::WriteModel(folder.path());
  settings.checkpoint = folder.path();
  MemorySink sink;
  const nlohmann::ordered_json counts =
      RunGenerate(test::Families(), settings, ProcessSetup(), &sink, Solo(), on_terminal);
  if (summary != nullptr) *summary = counts;
  return std::string(AsText(sink.bytes()));
}

/// The lines that the job writes.
std::vector<nlohmann::json> RunJob(const GenerateSettings& settings,
                                   nlohmann::ordered_json* summary = nullptr) {
  std::vector<nlohmann::json> lines;
  std::istringstream text{OutputOfJob(settings, summary)};
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(GenerateJobTest, WritesOneJsonLineASample) {
  nlohmann::ordered_json summary;
  const auto lines = RunJob({.prompt = "To be", .max_tokens = 7, .samples = 2}, &summary);
  EXPECT_EQ(summary["tokens"], 14);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["prompt"], "To be");
  EXPECT_EQ(lines[1]["ids"].size(), 7u);
  EXPECT_EQ(lines[1]["sample"], 1);
  EXPECT_EQ(lines[1]["finish"], "length");
  EXPECT_TRUE(lines[1]["text"].is_string());
  EXPECT_FALSE(lines[1].contains("id"));
}

TEST(GenerateJobTest, ATerminalGetsTheTextOfTheOneSample) {
  const std::string text = RunJob({.prompt = "To be", .max_tokens = 9})[0]["text"];
  const GenerateSettings one = {.prompt = "To be", .max_tokens = 9};
  // What is not UTF-8 is replaced in JSON alone.
  EXPECT_EQ(nlohmann::json(OutputOfJob(one, nullptr, /*on_terminal=*/true))
                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
            nlohmann::json(text + "\n").dump());
  EXPECT_EQ(OutputOfJob({.prompt = "To be", .max_tokens = 9, .format = "text"}),
            OutputOfJob(one, nullptr, /*on_terminal=*/true));
}

TEST(GenerateJobTest, OnATerminalSeveralSamplesAreLines) {
  const std::string samples =
      OutputOfJob({.prompt = "To be", .max_tokens = 3, .samples = 2}, nullptr, /*on_terminal=*/true);
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), 2);
  EXPECT_EQ(samples[0], '{');
  EXPECT_EQ(
      OutputOfJob({.prompt = "To be", .max_tokens = 3, .format = "jsonl"}, nullptr, /*on_terminal=*/true)[0],
      '{');
}

TEST(GenerateJobTest, TextOfSeveralSamplesIsRefused) {
  const std::string message = test::MessageOf(
      [] { OutputOfJob({.prompt = "To be", .max_tokens = 3, .format = "text", .samples = 2}); });
  EXPECT_NE(message.find("--samples"), std::string::npos) << message;
}

TEST(GenerateJobTest, PromptsOfAFileKeepTheirIds) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("prompts"),
                  "{\"prompt\": \"To\", \"id\": \"a1\"}\n{\"id\": 7, \"prompt\": \"be\"}\n");
  const auto lines = RunJob({.input = folder.path("prompts"), .max_tokens = 3});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["id"], "a1");
  EXPECT_EQ(lines[1]["id"], 7);
  EXPECT_EQ(lines[1]["prompt"], "be");
}

TEST(GenerateJobTest, WhatElseALineHasIsCarriedThrough) {
  const test::TemporaryFolder folder;
  test::WriteFile(
      folder.path("prompts"),
      "{\"source\": {\"page\": [3, null]}, \"prompt\": \"To\", \"answer\": 1.5}\n{\"prompt\": \"be\"}\n");
  const auto lines = RunJob({.input = folder.path("prompts"), .max_tokens = 3});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["source"].dump(), "{\"page\":[3,null]}");
  EXPECT_EQ(lines[0]["answer"], 1.5);
  EXPECT_FALSE(lines[1].contains("answer"));
}

TEST(GenerateJobTest, AMemberNamedAsOneOfTheSamplesIsRefused) {
  const test::TemporaryFolder folder;
  for (const char* name : {"text", "ids", "sample", "finish"}) {
    test::WriteFile(folder.path("prompts"), "{\"prompt\": \"To\", \"" + std::string(name) + "\": 1}\n");
    const auto run = [&] { RunJob({.input = folder.path("prompts"), .max_tokens = 3}); };
    EXPECT_EQ(test::CodeOf(run), ErrorCode::kBadInput);
    EXPECT_NE(test::MessageOf(run).find(name), std::string::npos);
  }
}

TEST(GenerateJobTest, ALineThatIsNoPromptIsNamed) {
  const test::TemporaryFolder folder;
  for (const char* bad : {"[]", "{}", "{\"prompt\": 3}", "junk", "{\"prompt\": \"\"}"}) {
    test::WriteFile(folder.path("prompts"), "{\"prompt\": \"To\"}\n" + std::string(bad) + "\n");
    const std::string message =
        test::MessageOf([&] { RunJob({.input = folder.path("prompts"), .max_tokens = 2}); });
    EXPECT_NE(message.find("line 2"), std::string::npos) << message;
  }
}

TEST(GenerateJobTest, ASampleOfNoTokensHasItsLogProbabilities) {
  const test::TemporaryFolder folder;
  test::WriteModel(folder.path());
  std::vector<uint32_t> all(258);
  std::iota(all.begin(), all.end(), 0u);
  test::WriteFile(folder.path("generation_config.json"), nlohmann::json{{"eos_token_id", all}}.dump());
  const GenerateSettings settings = {
      .checkpoint = folder.path(), .prompt = "To be", .max_tokens = 3, .log_probabilities = 2};
  MemorySink sink;
  RunGenerate(test::Families(), settings, ProcessSetup(), &sink);
  nlohmann::json sample = nlohmann::json::parse(AsText(sink.bytes()));
  ASSERT_EQ(sample["ids"].size(), 0u);
  EXPECT_EQ(sample["logprobs"], nlohmann::json::array());
  EXPECT_EQ(sample["top_logprobs"], nlohmann::json::array());
}

TEST(GenerateJobTest, AStopEndsASampleAndIsNotPartOfItsText) {
  const auto free = RunJob({.prompt = "To be", .max_tokens = 40});
  std::string bytes;  // a token of this model is a byte
  for (const auto& id : free[0]["ids"]) bytes += static_cast<char>(id.get<int>());
  const std::string stop = bytes.substr(11, 3);
  const size_t place = bytes.find(stop);
  const auto stopped = RunJob({.prompt = "To be", .max_tokens = 40, .stops = {"never to be seen", stop}});
  EXPECT_EQ(stopped[0]["finish"], "stop");
  EXPECT_EQ(stopped[0]["ids"].size(), place + stop.size());
  const nlohmann::json before = bytes.substr(0, place);
  EXPECT_EQ(stopped[0]["text"].dump(), before.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

TEST(GenerateJobTest, ATemplatesPromptIsTheTextThatTrainingHasBeforeTheAnswer) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("prompts"),
                  "{\"question\": \"To be?\", \"answer\": \"not looked at\", \"id\": 3}\n"
                  "{\"messages\": [{\"role\": \"user\", \"content\": \"To be?\"}]}\n");
  const auto chats = RunJob({.input = folder.path("prompts"), .max_tokens = 12, .chat_template = "qa-space"});
  ASSERT_EQ(chats.size(), 2u);
  EXPECT_EQ(chats[0]["prompt"], "To be?");
  EXPECT_EQ(chats[0]["id"], 3);
  EXPECT_EQ(chats[1]["messages"][0]["content"], "To be?");
  const auto plain = RunJob({.prompt = "To be? ", .max_tokens = 12});  // bytes: the same tokens
  EXPECT_EQ(chats[0]["ids"], plain[0]["ids"]);
  EXPECT_EQ(chats[1]["ids"], plain[0]["ids"]);
}

TEST(GenerateJobTest, AConversationThatEndsWithTheAssistantIsRefused) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("prompts"),
                  "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
                  "\"content\": \"b\"}]}\n");
  const std::string message =
      test::MessageOf([&] { RunJob({.input = folder.path("prompts"), .chat_template = "qa-space"}); });
  EXPECT_NE(message.find("line 1"), std::string::npos) << message;
  EXPECT_NE(message.find("ends with the assistant"), std::string::npos) << message;
}

TEST(GenerateJobTest, RejectionKeepsSamplesAsTheyAreWithoutIt) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("gold"), "{\"prompt\": \"To be\", \"gold\": 5}\n");
  GenerateSettings settings{
      .prompt = "To be", .max_tokens = 12, .samples = 60, .sampling = {.temperature = 3}, .seed = 2};
  const auto all = RunJob(settings);  // without the gold file in sight
  settings.keep_if = "answered";
  settings.keep = "all";
  nlohmann::ordered_json summary;
  const auto kept = RunJob(settings, &summary);
  ASSERT_GT(kept.size(), 0u);
  ASSERT_LT(kept.size(), all.size());
  for (const auto& sample : kept) EXPECT_EQ(sample, all.at(sample["sample"].get<size_t>()));
  EXPECT_EQ(summary["samples_kept"], kept.size());
  settings.keep_if = "valid";
  settings.gold = folder.path("missing");
  EXPECT_EQ(test::CodeOf([&] { RunJob(settings); }), ErrorCode::kIo);
  settings.gold = folder.path("gold");
  for (const auto& sample : RunJob(settings)) {
    EXPECT_NEAR(ParseAnswer(sample["text"].get<std::string>(), AnswerFormat::kAuto), 5, 0.25);
  }
}

}  // namespace
}  // namespace trainwright

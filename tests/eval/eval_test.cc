#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/eval/evaluate_job.h"
#include "lib/formats/shard.h"
#include "lib/io/file_checksum.h"
#include "lib/model/hf_folder.h"
#include "lib/model/open_model.h"
#include "lib/objective/perplexity.h"
#include "tests/eval/bytes_model.h"
#include "tests/model/families.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::BytesModel;
using test::WriteModel;

const at::Device kCpu(at::kCPU);
constexpr char kText[] = "To be, or not to be\nthat is the question:\n\nWhether 'tis nobler in the mind\nx\n";

/// One chunk a document, as `pack --mode none` makes them, in one file.
/// \param says_bytes whether the documents say the bytes of their text
void WriteShards(const std::string& path, const std::vector<std::string>& documents,
                 const TokenizerIdentity& tokenizer, bool says_bytes = true) {
  ShardSetHeader header;
  header.tokenizer = tokenizer;
  header.mode = PackMode::kNone;
  header.chunk_tokens = 4096;
  header.provenance_json = "{}";
  std::vector<Chunk> chunks;
  for (const std::string& document : documents) {
    Chunk chunk;
    chunk.tokens.assign(document.begin(), document.end());
    const uint64_t source_bytes = says_bytes ? document.size() : 0;
    chunk.segments = {{static_cast<uint32_t>(document.size()), 0, kNoId, source_bytes}};
    chunks.push_back(chunk);
  }
  AtomicFileSink sink(path);
  ShardWriter writer(&sink, header, 0, 0);
  for (size_t i = 0; i < chunks.size(); ++i) writer.AddFrame(EncodeFrame(header, {&chunks[i], 1}, i, 3));
  writer.Finish(/*last=*/true, 0);
  sink.Commit();
}

/// -log p of each token but the first, every span computed alone, in double from the model's logits.
double ReferenceLoss(LanguageModel* model, const std::string& document, size_t sequence_tokens) {
  double loss = 0;
  for (size_t begin = 0; begin < document.size(); begin += sequence_tokens) {
    const auto count = static_cast<int64_t>(std::min(sequence_tokens, document.size() - begin));
    ModelInput input;
    input.tokens_n = at::full({count}, 0, at::kLong);
    for (int64_t i = 0; i < count; ++i) {
      input.tokens_n[i].fill_(static_cast<int64_t>(document[begin + static_cast<size_t>(i)]));
    }
    input.positions_n = at::arange(count, at::kLong);
    input.labels_n = at::full({count}, -100, at::kLong);
    input.span_starts = {0, static_cast<int32_t>(count)};
    const at::Tensor log_probabilities = at::log_softmax(model->Logits(input).to(at::kDouble), 1);
    for (int64_t i = 0; i < count; ++i) {
      const size_t next = begin + static_cast<size_t>(i) + 1;
      if (next < document.size())
        loss -= log_probabilities[i][static_cast<int64_t>(document[next])].item<double>();
    }
  }
  return loss;
}

EvaluateJobOptions OptionsFor(const test::TemporaryFolder& folder, const std::string& data) {
  EvaluateJobOptions options;
  options.checkpoint = folder.path();
  options.data = folder.path(data);
  return options;
}

class EvaluateTest : public testing::Test {
 protected:
  EvaluateTest() {
    WriteModel(folder_.path());
    test::WriteFile(folder_.path("text.txt"), kText);
    for (const char* line :
         {"To be, or not to be", "that is the question:", "Whether 'tis nobler in the mind", "x"}) {
      documents_.emplace_back(line);
    }
  }
  test::TemporaryFolder folder_;
  std::vector<std::string> documents_;
};

TEST_F(EvaluateTest, TextIsScoredDocumentByDocumentCutAtTheSequenceLength) {
  const auto model = BytesModel();
  for (const int64_t sequence_tokens : {64, 10, 7}) {
    EvaluateJobOptions options = OptionsFor(folder_, "text.txt");
    options.sequence_tokens = sequence_tokens;
    options.batch_sequences = 2;
    const auto result = RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever);
    double loss = 0;
    uint64_t bytes = 0, labels = 0;
    for (const std::string& document : documents_) {
      loss += ReferenceLoss(model.get(), document, static_cast<size_t>(sequence_tokens));
      bytes += document.size();
      labels += document.size() - 1;
    }
    const double mean = loss / static_cast<double>(labels);
    EXPECT_NEAR(result["loss_nats"].get<double>(), mean, 1e-5 * mean) << sequence_tokens;
    EXPECT_NEAR(result["perplexity"].get<double>(), std::exp(mean), 1e-4 * std::exp(mean));
    EXPECT_NEAR(result["bits_per_token"].get<double>(), mean / std::log(2.0), 1e-5 * mean);
    EXPECT_NEAR(result["bits_per_byte"].get<double>(), loss / std::log(2.0) / static_cast<double>(bytes),
                1e-5 * mean);
    EXPECT_EQ(result["docs"], 4);
    EXPECT_EQ(result["tokens"], bytes);
    EXPECT_EQ(result["labels"], labels);
  }
}

/// Of the micro-batch that --logits wrote.
int64_t TokensOfDump(const std::string& path) {
  const std::string file = test::ReadFile(path);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const auto header = nlohmann::json::parse(file.substr(sizeof(header_bytes), header_bytes));
  return header.at("tokens").at("shape").at(0).get<int64_t>();
}

TEST_F(EvaluateTest, AMicroBatchOfALongContextHasNoMoreTokensThanOneOfAUsualContext) {
  const std::string model = folder_.path("model");
  std::filesystem::create_directories(model);
  WriteHfFolder(model, *BytesModel(/*context=*/8192), LoadTokenizer("bytes")->identity());
  std::string text;
  for (int i = 0; i < 700; ++i) text += std::string(64, static_cast<char>('a' + i % 26)) + "\n";
  test::WriteFile(folder_.path("long.txt"), text);
  EvaluateJobOptions options = OptionsFor(folder_, "long.txt");
  options.checkpoint = model;
  options.logits_path = folder_.path("logits.safetensors");
  RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever);
  EXPECT_EQ(TokensOfDump(options.logits_path), 32768) << "not of 8 times 8,192";
}

TEST_F(EvaluateTest, ShardsGiveWhatTheirTextGives) {
  WriteShards(folder_.path("text.tws"), documents_, LoadTokenizer("bytes")->identity());
  auto from_text = RunEvaluate(test::Families(), BuiltInObjectives(), OptionsFor(folder_, "text.txt"),
                               ProgressMode::kNever);
  auto from_shards = RunEvaluate(test::Families(), BuiltInObjectives(), OptionsFor(folder_, "text.tws"),
                                 ProgressMode::kNever);
  EXPECT_NE(from_text.at("data"), from_shards.at("data")) << "path and hash";
  from_text.erase("data");
  from_shards.erase("data");
  EXPECT_EQ(from_text, from_shards);
}

TEST_F(EvaluateTest, BitsPerByteAreNullWhereShardsDoNotSayTheirBytes) {
  WriteShards(folder_.path("foreign.tws"), documents_, LoadTokenizer("bytes")->identity(),
              /*says_bytes=*/false);
  const auto result = RunEvaluate(test::Families(), BuiltInObjectives(), OptionsFor(folder_, "foreign.tws"),
                                  ProgressMode::kNever);
  EXPECT_TRUE(result.at("bits_per_byte").is_null()) << result.at("bits_per_byte");
}

TEST_F(EvaluateTest, ShardsOnAPipeAreNotScoredAsText) {
  WriteShards(folder_.path("text.tws"), documents_, LoadTokenizer("bytes")->identity());
  ASSERT_EQ(mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream(folder_.path("pipe"), std::ios::binary) << test::ReadFile(folder_.path("text.tws"));
  });
  const std::string message = test::MessageOf([&] {
    RunEvaluate(test::Families(), BuiltInObjectives(), OptionsFor(folder_, "pipe"), ProgressMode::kNever);
  });
  writer.join();
  EXPECT_THAT(message, testing::HasSubstr("holds shards"));
  EXPECT_THAT(message, testing::HasSubstr("--format shards"));
}

TEST_F(EvaluateTest, WhatIsNoTextIsNotScoredThoughTheTokenizerTakesAnyBytes) {
  for (const std::string_view content :
       {std::string_view("\x89TWT\r\n\x1A\nab\ncd\n"), std::string_view("PK\x03\x04\0ab\ncd\n", 11),
        std::string_view("PAR1\x15\x04\x15\nxy\n")}) {
    test::WriteFile(folder_.path("data"), content);
    EXPECT_EQ(test::CodeOf([&] {
                RunEvaluate(test::Families(), BuiltInObjectives(), OptionsFor(folder_, "data"),
                            ProgressMode::kNever);
              }),
              ErrorCode::kBadInput)
        << content;
  }
}

TEST_F(EvaluateTest, JsonReadAsPlainLinesIsWarnedOf) {
  test::WriteFile(folder_.path("data"), "{\"text\": \"To be, or not to be\"}\n");
  const auto messages = [&](const std::string& format) {
    EvaluateJobOptions options = OptionsFor(folder_, "data");
    options.format = format;
    testing::internal::CaptureStderr();
    RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(messages("auto"), testing::HasSubstr("looks like JSON lines"));
  EXPECT_THAT(messages("lines"), testing::Not(testing::HasSubstr("looks like JSON lines")));
}

TEST_F(EvaluateTest, JsonLinesAreReadByKey) {
  test::WriteFile(folder_.path("text.jsonl"), "{\"body\": \"To be, or not to be\"}\n");
  EvaluateJobOptions options = OptionsFor(folder_, "text.jsonl");
  options.keys = {"body"};
  EXPECT_EQ(RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever)["labels"], 18);
  options.keys = {"text"};
  EXPECT_EQ(test::CodeOf(
                [&] { RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever); }),
            ErrorCode::kBadInput);
}

TEST_F(EvaluateTest, ShardsOfAnotherTokenizerAreRefusedUnlessAllowed) {
  TokenizerIdentity other = LoadTokenizer("bytes")->identity();
  other.sha256[0] ^= 1;
  WriteShards(folder_.path("other.tws"), documents_, other);
  EvaluateJobOptions options = OptionsFor(folder_, "other.tws");
  EXPECT_EQ(test::CodeOf(
                [&] { RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever); }),
            ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf(
                  [&] { RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever); }),
              testing::HasSubstr("--allow-other-tokenizer"));
  options.allow_other_tokenizer = true;
  EXPECT_EQ(RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever)["docs"], 4);
}

TEST_F(EvaluateTest, DataWithoutAnyLabelIsRefused) {
  test::WriteFile(folder_.path("single.txt"), "a\nb\n");
  EXPECT_EQ(test::CodeOf([&] {
              RunEvaluate(test::Families(), BuiltInObjectives(), OptionsFor(folder_, "single.txt"),
                          ProgressMode::kNever);
            }),
            ErrorCode::kBadInput);
}

TEST_F(EvaluateTest, GpusAreRefusedAsMissingDevices) {
  EvaluateJobOptions options = OptionsFor(folder_, "text.txt");
  EXPECT_EQ(test::CodeOf([&] {
              options.process = SetUpProcess({.threads = at::get_num_threads(), .device = "cuda"});
              RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever);
            }),
            ErrorCode::kDevice);
}

TEST(CheckpointTest, ARunDirectoryStandsForItsLatestCheckpoint) {
  const test::TemporaryFolder run;
  const std::string checkpoint = run.path("checkpoints/step-00000003");
  std::filesystem::create_directories(checkpoint);
  WriteModel(checkpoint);
  std::filesystem::create_symlink("checkpoints/step-00000003", run.path("latest"));
  const Checkpoint loaded = LoadCheckpoint(test::Families(), run.path(), Precision::kFp32, kCpu);
  EXPECT_EQ(loaded.folder, checkpoint);
  EXPECT_EQ(loaded.tokenizer->identity().kind, "bytes");
}

/// A checkpoint of a run, with hashes, that nothing can be resumed from.
std::string MakeCheckpoint(const std::string& run, const std::string& name, const std::string& saved_at) {
  const std::string folder = run + "/checkpoints/" + name;
  std::filesystem::create_directories(folder);
  WriteModel(folder);
  nlohmann::json files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().string()] = {{"sha256", Sha256OfFile(entry.path().string())}};
  }
  test::WriteFile(folder + "/metadata.json", nlohmann::json{{"schema", "trainwright.checkpoint/1"},
                                                            {"resumable", false},
                                                            {"saved_at", saved_at},
                                                            {"files", files}}
                                                 .dump());
  return folder;
}

TEST(CheckpointTest, ARunDirectoryStandsForAWholeCheckpointThatWasSavedAfterItsLatest) {
  const test::TemporaryFolder run;
  const std::string third = MakeCheckpoint(run.path(), "step-00000003", "2026-11-22T10:00:00Z");
  const std::string sixth = MakeCheckpoint(run.path(), "step-00000006", "2026-11-22T11:00:00Z");
  // The run was set back: step 9 is of before.
  MakeCheckpoint(run.path(), "step-00000009", "2026-11-22T09:00:00Z");
  std::filesystem::create_symlink("checkpoints/step-00000003", run.path("latest"));
  EXPECT_EQ(ResolveCheckpoint(run.path()), sixth);
  test::WriteFile(sixth + "/model.safetensors", "damaged");
  EXPECT_EQ(ResolveCheckpoint(run.path()), third);
}

TEST(CheckpointTest, FoldersWithoutAModelAreRefused) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(test::CodeOf([&] { ResolveCheckpoint(folder.path()); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::CodeOf([&] { ResolveCheckpoint(folder.path("missing")); }), ErrorCode::kIo);
}

TEST(CheckpointTest, FilesThatDisagreeWithTheMetadataAreRefused) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(VerifyCheckpointFiles(folder.path()));
  test::WriteFile(folder.path("a"), "abc");
  // FIPS 180-2, example B.1
  test::WriteFile(
      folder.path("metadata.json"),
      R"({"files": {"a": {"sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}})");
  EXPECT_TRUE(VerifyCheckpointFiles(folder.path()));
  test::WriteFile(folder.path("a"), "abd");
  EXPECT_EQ(test::CodeOf([&] { VerifyCheckpointFiles(folder.path()); }), ErrorCode::kBadInput);
  std::filesystem::remove(folder.path("a"));
  EXPECT_EQ(test::CodeOf([&] { VerifyCheckpointFiles(folder.path()); }), ErrorCode::kBadInput);
}

/// -log p of the tokens that `predicted` marks, each document computed alone, in double from the model's
/// logits.
double ReferenceLossOn(LanguageModel* model, const std::vector<uint32_t>& tokens,
                       const std::vector<bool>& predicted) {
  PackedBatch batch;
  batch.AppendSpan(tokens, kNoId);
  const at::Tensor log_probabilities = at::log_softmax(model->Logits(ToModelInput(batch)).to(at::kDouble), 1);
  double loss = 0;
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (predicted[i]) {
      loss -= log_probabilities[static_cast<int64_t>(i) - 1][static_cast<int64_t>(tokens[i])].item<double>();
    }
  }
  return loss;
}

TEST(PerplexityTest, ConversationsPackedTogetherLoseWhatTheyLoseAlone) {
  const auto model = BytesModel();
  // Two conversations in a chunk: prompt, answer, prompt, answer; and prompt, answer.
  const std::vector<uint32_t> first = {'H', 'i', '?', 'y', 'o', 257, 'a', 'n', 'd', 'o', 'k', 257};
  const std::vector<bool> first_predicted = {false, false, false, true, true, true,
                                             false, false, false, true, true, true};
  const std::vector<uint32_t> second = {'2', '+', '2', '4', 257};
  const std::vector<bool> second_predicted = {false, false, false, true, true};
  Chunk chunk;
  chunk.tokens = first;
  chunk.tokens.insert(chunk.tokens.end(), second.begin(), second.end());
  constexpr uint8_t kAnswer = kSegmentContinuesPrevious, kPrompt = kSegmentNoLoss;
  chunk.segments = {
      {3, kPrompt, kNoId, 3}, {3, kAnswer, kNoId, 2}, {3, kPrompt | kSegmentContinuesPrevious, kNoId, 3},
      {3, kAnswer, kNoId, 2}, {3, kPrompt, kNoId, 3}, {2, kAnswer, kNoId, 1}};
  PerplexityMeter meter(model.get(), 64, 4096);
  meter.set_masked(true);
  meter.AddChunk(chunk);
  const PerplexitySums& sums = meter.Finish();
  const double alone = ReferenceLossOn(model.get(), first, first_predicted) +
                       ReferenceLossOn(model.get(), second, second_predicted);
  EXPECT_NEAR(sums.loss_nats, alone, 1e-4 * alone);
  EXPECT_EQ(sums.labels, 8u);
  EXPECT_EQ(sums.tokens, 17u);
  EXPECT_EQ(sums.documents, 2u);
  EXPECT_EQ(sums.source_bytes, 5u) << "of the answers";

  PerplexityMeter every_token(model.get(), 64, 4096);
  every_token.AddChunk(chunk);
  EXPECT_EQ(every_token.Finish().labels, 15u);
}

/// \param documents the tokens and the bytes of each
/// \param flags_of_last of the last one's segment
std::optional<double> BitsPerByteOf(const std::vector<std::pair<uint32_t, uint64_t>>& documents,
                                    uint32_t flags_of_last = 0) {
  Chunk chunk;
  for (const auto& [tokens, bytes] : documents) {
    chunk.tokens.insert(chunk.tokens.end(), tokens, uint32_t{'a'});
    chunk.segments.push_back({tokens, 0, kNoId, bytes});
  }
  chunk.segments.back().flags = flags_of_last;
  const auto model = BytesModel();
  PerplexityMeter meter(model.get(), 64, 4096);
  meter.AddChunk(chunk);
  return meter.Finish().bits_per_byte();
}

TEST(PerplexityTest, BitsPerByteAreUnknownWhereTheBytesOfADocumentAre) {
  EXPECT_TRUE(BitsPerByteOf({{40, 40}, {2, 0}})) << "two tokens may be marks alone";
  EXPECT_FALSE(BitsPerByteOf({{40, 40}, {40, 0}}));
  EXPECT_FALSE(BitsPerByteOf({{5, 0}, {5, 0}}));
  EXPECT_TRUE(BitsPerByteOf({{40, 40}, {40, 0}}, kSegmentStartsMidDocument))
      << "bytes of a conversation's answers stand where it begins";
}

}  // namespace
}  // namespace trainwright

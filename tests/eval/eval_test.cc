#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "lib/base/rng.h"
#include "lib/eval/checkpoint.h"
#include "lib/eval/evaluate_job.h"
#include "lib/eval/generate.h"
#include "lib/eval/generate_job.h"
#include "lib/eval/perplexity.h"
#include "lib/formats/shard.h"
#include "lib/model/checkpoint_metadata.h"
#include "lib/model/hf_folder.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

const at::Device kCpu(at::kCPU);
constexpr char kText[] = "To be, or not to be\nthat is the question:\n\nWhether 'tis nobler in the mind\nx\n";

std::unique_ptr<LanguageModel> BytesModel(int64_t context = 64) {
  ModelConfig config;
  config.vocab_size = 258;
  config.hidden_size = 32;
  config.intermediate_size = 64;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  config.max_positions = context;
  config.tie_embeddings = true;
  auto model = MakeModel(config, Precision::kFp32, kCpu, 11);
  // Large weights: predictions that differ by context, so that greedy decoding does not settle at once.
  for (const Parameter& parameter : model->parameters().all()) {
    at::Tensor value = parameter.value;
    if (parameter.decay) value.mul_(12);
  }
  return model;
}

/// A folder as train leaves it.
void WriteModel(const std::string& folder) {
  WriteHfFolder(folder, *BytesModel(), LoadTokenizer("bytes")->identity());
}

/// One chunk a document, as `pack --mode none` makes them, in one file.
void WriteShards(const std::string& path, const std::vector<std::string>& documents,
                 const TokenizerIdentity& tokenizer) {
  ShardSetHeader header;
  header.tokenizer = tokenizer;
  header.mode = PackMode::kNone;
  header.chunk_tokens = 4096;
  header.provenance_json = "{}";
  std::vector<Chunk> chunks;
  for (const std::string& document : documents) {
    Chunk chunk;
    chunk.tokens.assign(document.begin(), document.end());
    chunk.segments = {{static_cast<uint32_t>(document.size()), 0, kNoId, document.size()}};
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
    const auto result = RunEvaluate(options, ProgressMode::kNever);
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

TEST_F(EvaluateTest, ShardsGiveWhatTheirTextGives) {
  WriteShards(folder_.path("text.tws"), documents_, LoadTokenizer("bytes")->identity());
  const auto from_text = RunEvaluate(OptionsFor(folder_, "text.txt"), ProgressMode::kNever);
  const auto from_shards = RunEvaluate(OptionsFor(folder_, "text.tws"), ProgressMode::kNever);
  EXPECT_EQ(from_text, from_shards);
}

TEST_F(EvaluateTest, JsonLinesAreReadByKey) {
  test::WriteFile(folder_.path("text.jsonl"), "{\"body\": \"To be, or not to be\"}\n");
  EvaluateJobOptions options = OptionsFor(folder_, "text.jsonl");
  options.keys = {"body"};
  EXPECT_EQ(RunEvaluate(options, ProgressMode::kNever)["labels"], 18);
  options.keys = {"text"};
  EXPECT_EQ(test::CodeOf([&] { RunEvaluate(options, ProgressMode::kNever); }), ErrorCode::kBadInput);
}

TEST_F(EvaluateTest, ShardsOfAnotherTokenizerAreRefusedUnlessAllowed) {
  TokenizerIdentity other = LoadTokenizer("bytes")->identity();
  other.sha256[0] ^= 1;
  WriteShards(folder_.path("other.tws"), documents_, other);
  EvaluateJobOptions options = OptionsFor(folder_, "other.tws");
  EXPECT_EQ(test::CodeOf([&] { RunEvaluate(options, ProgressMode::kNever); }), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf([&] { RunEvaluate(options, ProgressMode::kNever); }),
              testing::HasSubstr("--allow-other-tokenizer"));
  options.allow_other_tokenizer = true;
  EXPECT_EQ(RunEvaluate(options, ProgressMode::kNever)["docs"], 4);
}

TEST_F(EvaluateTest, DataWithoutAnyLabelIsRefused) {
  test::WriteFile(folder_.path("single.txt"), "a\nb\n");
  EXPECT_EQ(test::CodeOf([&] { RunEvaluate(OptionsFor(folder_, "single.txt"), ProgressMode::kNever); }),
            ErrorCode::kBadInput);
}

TEST_F(EvaluateTest, GpusAreRefusedAsMissingDevices) {
  EvaluateJobOptions options = OptionsFor(folder_, "text.txt");
  options.device = "cuda";
  EXPECT_EQ(test::CodeOf([&] { RunEvaluate(options, ProgressMode::kNever); }), ErrorCode::kDevice);
}

TEST(CheckpointTest, ARunDirectoryStandsForItsLatestCheckpoint) {
  const test::TemporaryFolder run;
  const std::string checkpoint = run.path("checkpoints/step-00000003");
  std::filesystem::create_directories(checkpoint);
  WriteModel(checkpoint);
  std::filesystem::create_symlink("checkpoints/step-00000003", run.path("latest"));
  const Checkpoint loaded = LoadCheckpoint(run.path(), Precision::kFp32, kCpu);
  EXPECT_EQ(loaded.folder, checkpoint);
  EXPECT_EQ(loaded.tokenizer->identity().kind, "bytes");
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

/// The most probable next token, from a forward pass over the whole sequence.
uint32_t NextFromScratch(LanguageModel* model, const std::vector<uint32_t>& ids) {
  PackedBatch batch;
  batch.AppendSpan(ids, kNoId);
  return static_cast<uint32_t>(model->Logits(ToModelInput(batch))[-1].argmax().item<int64_t>());
}

TEST(GenerateTest, TokensEqualThoseOfRecomputingFromScratch) {
  const auto model = BytesModel();
  const std::vector<uint32_t> prompt = {'T', 'o', ' ', 'b', 'e'};
  const Generation generation = GenerateGreedily(model.get(), prompt, 40, kNoId);
  ASSERT_EQ(generation.ids.size(), 40u);
  EXPECT_EQ(generation.finish, FinishReason::kLength);
  std::vector<uint32_t> ids = prompt;
  for (const uint32_t token : generation.ids) {
    EXPECT_EQ(token, NextFromScratch(model.get(), ids)) << "after " << ids.size() << " tokens";
    ids.push_back(token);
  }
}

TEST(GenerateTest, StopsAtTheEndTokenAndAtTheContextsEnd) {
  const auto model = BytesModel();
  const std::vector<uint32_t> prompt = {'T', 'o'};
  const Generation free = GenerateGreedily(model.get(), prompt, 1000, kNoId);
  EXPECT_EQ(free.finish, FinishReason::kContext);
  EXPECT_EQ(free.ids.size(), 63u);  // the 64th position predicts one more token
  const uint32_t end = free.ids[5];
  const Generation stopped = GenerateGreedily(model.get(), prompt, 1000, end);
  EXPECT_EQ(stopped.finish, FinishReason::kEos);
  EXPECT_THAT(stopped.ids, testing::Not(testing::Contains(end)));
}

TEST(GenerateTest, PromptsLongerThanTheContextAreRefused) {
  const auto model = BytesModel();
  EXPECT_EQ(test::CodeOf([&] { GenerateGreedily(model.get(), std::vector<uint32_t>(65, 'a'), 4, kNoId); }),
            ErrorCode::kBadInput);
}

TEST(GenerateTest, TheJobWritesOneJsonLine) {
  const test::TemporaryFolder folder;
  WriteModel(folder.path());
  GenerateJobOptions options;
  options.checkpoint = folder.path();
  options.prompt = "To be";
  options.max_tokens = 7;
  MemorySink sink;
  const auto summary = RunGenerate(options, &sink);
  EXPECT_EQ(summary["tokens"], 7);
  const std::string line(AsText(sink.bytes()));
  ASSERT_EQ(line.find('\n'), line.size() - 1);
  const auto sample = nlohmann::json::parse(line);
  EXPECT_EQ(sample["prompt"], "To be");
  EXPECT_EQ(sample["ids"].size(), 7u);
  EXPECT_EQ(sample["sample"], 0);
  EXPECT_EQ(sample["finish"], "length");
  EXPECT_TRUE(sample["text"].is_string());
}

}  // namespace
}  // namespace trainwright

#include "lib/train/checkpointer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

#include "tests/support/support.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using test::CodeOf;
using test::TemporaryFolder;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    ModelConfig config;
    config.vocab_size = 32;
    config.hidden_size = 32;
    config.intermediate_size = 32;
    config.num_layers = 1;
    config.num_heads = 2;
    config.num_kv_heads = 1;
    config.head_dim = 16;
    config.max_positions = 8;
    model_ = MakeModel(config, Precision::kFp32, at::Device(at::kCPU), 1);
    tokenizer_.kind = "bytes";
    tokenizer_.vocab_size = 32;
    state_.trainer.exp_avg = model_->parameters().values().mul(2);
    state_.trainer.exp_avg_sq = model_->parameters().values().mul(3);
    state_.layout = DescribeLayout(model_->parameters());
  }
  SavedCheckpoint Save(RunDirectory* run, int64_t step) {
    state_.trainer.step = step;
    return SaveCheckpoint(run, *model_, tokenizer_, state_, {{"seed", 1}}, 0);
  }

  TemporaryFolder folder_;
  std::unique_ptr<LanguageModel> model_;
  TokenizerIdentity tokenizer_;
  TrainState state_;
};

TEST_F(CheckpointTest, ReadsBackTheStateThatWasWritten) {
  state_.trainer = {.step = 7,
                    .updates = 6,
                    .tokens_seen = int64_t{1} << 40,
                    .labels_seen = 11,
                    .cursor = {.epoch = 2, .window = 3, .sample = 4},
                    .scaler = {.scale = 512, .good_steps = 5, .skipped_steps = 1},
                    .exp_avg = state_.trainer.exp_avg,
                    .exp_avg_sq = state_.trainer.exp_avg_sq};
  state_.plan.seed = 99;
  state_.order_fingerprint = "abc";
  state_.data_sha256 = "def";
  state_.compute = {.device = "cpu", .cpu_capability = "AVX2", .torch_build = "t", .threads = 3};
  WriteTrainState(folder_.path("state"), state_);
  const TrainState read = ReadTrainState(folder_.path("state"));
  EXPECT_EQ(read.trainer.step, 7);
  EXPECT_EQ(read.trainer.updates, 6);
  EXPECT_EQ(read.trainer.tokens_seen, int64_t{1} << 40);
  EXPECT_EQ(read.trainer.labels_seen, 11);
  EXPECT_EQ(read.trainer.cursor, state_.trainer.cursor);
  EXPECT_EQ(read.trainer.scaler, state_.trainer.scaler);
  EXPECT_EQ(read.plan.seed, 99u);
  EXPECT_EQ(read.order_fingerprint, "abc");
  EXPECT_EQ(read.data_sha256, "def");
  EXPECT_EQ(read.compute, state_.compute);
  EXPECT_EQ(read.layout, state_.layout);
  EXPECT_TRUE(read.trainer.exp_avg.equal(state_.trainer.exp_avg));
  EXPECT_TRUE(read.trainer.exp_avg_sq.equal(state_.trainer.exp_avg_sq));
}

TEST_F(CheckpointTest, PayloadsOfTwoSavesAreEqual) {
  RunDirectory first(folder_.path("a")), second(folder_.path("b"));
  const std::string one = Save(&first, 5).path, two = Save(&second, 5).path;
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(one)) {
    const std::string name = entry.path().filename().string();
    if (name == kCheckpointMetadataName) continue;  // it holds the time
    EXPECT_EQ(test::ReadFile(one + "/" + name), test::ReadFile(two + "/" + name)) << name;
    ++compared;
  }
  EXPECT_GE(compared, 3);
}

TEST_F(CheckpointTest, WeightsHashIsThatOfTheFile) {
  RunDirectory run(folder_.path("run"));
  const SavedCheckpoint saved = Save(&run, 5);
  const test::ProcessResult sum =
      test::RunShell("sha256sum " + saved.path + "/model.safetensors | cut -d' ' -f1");
  EXPECT_EQ(sum.standard_output, saved.weights_sha256 + "\n");
}

TEST_F(CheckpointTest, EveryFileIsCoveredByTheMetadata) {
  RunDirectory run(folder_.path("run"));
  const std::string path = Save(&run, 5).path;
  VerifyCheckpoint(path);
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string file = entry.path().string();
    if (entry.path().filename() == kCheckpointMetadataName) continue;
    const std::string whole = test::ReadFile(file);
    std::string flipped = whole;
    flipped[flipped.size() / 2] ^= 1;
    test::WriteFile(file, flipped);
    EXPECT_EQ(CodeOf([&] { VerifyCheckpoint(path); }), ErrorCode::kBadInput) << file;
    test::WriteFile(file, whole.substr(0, whole.size() - 1));
    EXPECT_EQ(CodeOf([&] { VerifyCheckpoint(path); }), ErrorCode::kBadInput) << file;
    fs::remove(file);
    EXPECT_TRUE(CodeOf([&] { VerifyCheckpoint(path); }).has_value()) << file;
    test::WriteFile(file, whole);
    VerifyCheckpoint(path);
  }
}

TEST_F(CheckpointTest, FallsBackToTheNewestThatVerifies) {
  RunDirectory run(folder_.path("run"));
  EXPECT_EQ(NewestGoodCheckpoint(run), "");
  const std::string old = Save(&run, 5).path, middle = Save(&run, 6).path, newest = Save(&run, 7).path;
  EXPECT_EQ(NewestGoodCheckpoint(run), newest);
  test::WriteFile(newest + "/model.safetensors", "no");
  EXPECT_EQ(NewestGoodCheckpoint(run), middle);
  fs::remove_all(newest);
  EXPECT_EQ(NewestGoodCheckpoint(run), middle) << "latest dangles";
  fs::remove(middle + "/" + kCheckpointMetadataName);
  EXPECT_EQ(NewestGoodCheckpoint(run), old);
  fs::remove(old + "/config.json");
  EXPECT_EQ(CodeOf([&] { NewestGoodCheckpoint(run); }), ErrorCode::kBadInput);
}

TEST_F(CheckpointTest, AFullDiskLeavesTheLastCheckpointAndNothingElse) {
  RunDirectory run(folder_.path("run"));
  const std::string good = Save(&run, 5).path;
  const uint64_t weights_bytes = fs::file_size(good + "/model.safetensors");

  // A limit on the size of files fails writes where a full disk would.
  signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  for (const uint64_t limit : {uint64_t{100}, weights_bytes / 2, weights_bytes + 10}) {
    rlimit small = {.rlim_cur = limit, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const auto code = CodeOf([&] { Save(&run, 6); });
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(code, ErrorCode::kIo) << limit;
    EXPECT_EQ(NewestGoodCheckpoint(run), good) << limit;
    EXPECT_EQ(std::distance(fs::directory_iterator(run.checkpoints_path()), fs::directory_iterator()), 1)
        << limit;
  }
  EXPECT_EQ(NewestGoodCheckpoint(run), good);
  EXPECT_EQ(Save(&run, 6).path, run.CheckpointPath(6)) << "with room again the next save works";
}

}  // namespace
}  // namespace trainwright

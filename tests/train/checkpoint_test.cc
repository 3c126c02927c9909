#include "lib/checkpoint/checkpoint.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/checkpoint/checkpoint_writer.h"
#include "lib/checkpoint/retention.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/product_choices.h"
#include "lib/train/checkpoint_parts.h"
#include "lib/train/snapshot_buffers.h"
#include "lib/train/train_state.h"
#include "tests/model/families.h"
#include "tests/support/support.h"
#include "tests/support/syscall_faults/syscall_faults.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using test::CodeOf;
using test::TemporaryFolder;

void ExpectSame(const std::vector<OptimizerState>& read, const std::vector<OptimizerState>& written) {
  ASSERT_EQ(read.size(), written.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].name, written[i].name);
    EXPECT_EQ(read[i].value.scalar_type(), written[i].value.scalar_type()) << read[i].name;
    EXPECT_TRUE(read[i].value.equal(written[i].value)) << read[i].name;
  }
}

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    ModelConfig config;
    config.family = &LlamaFamily();
    config.vocab_size = 32;
    config.hidden_size = 32;
    config.intermediate_size = 32;
    config.num_layers = 1;
    config.num_heads = 2;
    config.num_kv_heads = 1;
    config.head_dim = 16;
    config.max_positions = 8;
    model_ = MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kCPU), 1);
    tokenizer_.kind = "bytes";
    tokenizer_.vocab_size = 32;
    const at::Tensor& values = model_->parameters().values();
    state_.trainer.optimizer = {{"exp_avg", values.mul(2)}, {"exp_avg_sq", values.mul(3)}};
    state_.layout = DescribeLayout(model_->parameters());
    state_.plan.schedule.total_steps = 100;
  }
  CheckpointContent Content(const CheckpointOptions& options = {}) {
    return DescribeCheckpoint(*model_, {}, tokenizer_, state_, {{"seed", 1}}, options);
  }
  SavedCheckpoint Save(RunDirectory* run, int64_t step) {
    state_.trainer.step = step;
    CheckpointWriter writer;
    writer.Begin(background_, std::chrono::steady_clock::now(), [&]() -> CheckpointWriter::Write {
      return [run, content = Content()] { return WriteCheckpoint(run, content); };
    });
    return writer.Wait()->saved;
  }

  bool background_ = false;  ///< who writes
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
                    .loaders = {{kMainLoader,
                                 {.cursor = {.epoch = 2, .window = 3, .sample = 4},
                                  .bad_chunks = {5, 7},
                                  .order_fingerprint = "abc"}},
                                {"other", {.cursor = {.epoch = 1}, .order_fingerprint = "def"}}},
                    .scaler = {.scale = 512, .good_steps = 5, .skipped_steps = 1},
                    .optimizer = state_.trainer.optimizer};
  state_.plan.seed = 99;
  state_.data_sha256 = "def";
  state_.compute = {
      .device = "cpu", .cpu_capability = "AVX2", .torch_build = "t", .threads = 3, .scan = "chunked"};
  WriteTrainState(folder_.path("state"), state_);
  const TrainState read = ReadTrainState(folder_.path("state"));
  EXPECT_EQ(read.trainer.step, 7);
  EXPECT_EQ(read.trainer.updates, 6);
  EXPECT_EQ(read.trainer.tokens_seen, int64_t{1} << 40);
  EXPECT_EQ(read.trainer.labels_seen, 11);
  EXPECT_EQ(read.trainer.loaders, state_.trainer.loaders);
  EXPECT_EQ(read.trainer.scaler, state_.trainer.scaler);
  EXPECT_EQ(read.plan.seed, 99u);
  EXPECT_EQ(read.data_sha256, "def");
  EXPECT_EQ(read.compute, state_.compute);
  EXPECT_EQ(read.layout, state_.layout);
  ExpectSame(read.trainer.optimizer, state_.trainer.optimizer);
}

TEST_F(CheckpointTest, ACompressedStateReadsBackTheSame) {
  state_.matrices = DescribeMatrices(model_->parameters(), state_.trainer.optimizer);
  WriteTrainState(folder_.path("plain"), state_);
  WriteTrainState(folder_.path("small"), state_, {.on = true, .threads = 2});
  EXPECT_LT(fs::file_size(folder_.path("small")), fs::file_size(folder_.path("plain")));
  const TrainState read = ReadTrainState(folder_.path("small"));
  ExpectSame(read.trainer.optimizer, state_.trainer.optimizer);
  EXPECT_EQ(read.layout, state_.layout);
  // What was read is written as if nothing had been compressed.
  WriteTrainState(folder_.path("again"), read);
  EXPECT_EQ(test::ReadFile(folder_.path("again")), test::ReadFile(folder_.path("plain")));
}

TEST_F(CheckpointTest, AStateThatIsSpreadOverRanksMakesTheFileOfAWholeOne) {
  WriteTrainState(folder_.path("whole"), state_);
  TrainState spread = state_;
  spread.sharded.elements = state_.trainer.optimizer[0].value.numel();
  int64_t read_elements = 0;
  spread.sharded.read = [&](size_t index, int64_t begin, at::Tensor out) {
    out.copy_(state_.trainer.optimizer[index].value.view({-1}).narrow(0, begin, out.numel()));
    read_elements += out.numel();
  };
  for (OptimizerState& own : spread.trainer.optimizer) {
    own.by_element = true;
    own.value = own.value.view({-1}).narrow(0, 0, 1).clone();  // what this rank has of it
  }
  WriteTrainState(folder_.path("spread"), spread);
  EXPECT_EQ(read_elements, 2 * spread.sharded.elements);
  EXPECT_EQ(test::ReadFile(folder_.path("spread")), test::ReadFile(folder_.path("whole")));
}

TEST_F(CheckpointTest, AMappedStateReadsTheSameAfterItsFileIsGone) {
  WriteTrainState(folder_.path("state"), state_);
  const TrainState read = ReadTrainState(folder_.path("state"), StateTensors::kMapped);
  fs::remove(folder_.path("state"));
  ExpectSame(read.trainer.optimizer, state_.trainer.optimizer);
}

TEST_F(CheckpointTest, TheMetadataSayWhetherTheStateIsCompressed) {
  for (const bool compressed : {false, true}) {
    RunDirectory run(folder_.path(compressed ? "small" : "plain"));
    state_.trainer.step = 5;
    const std::string path = WriteCheckpoint(&run, Content({.state = {.on = compressed}})).path;
    VerifyCheckpoint(path);
    const nlohmann::json metadata = nlohmann::json::parse(test::ReadFile(path + "/metadata.json"));
    EXPECT_EQ(metadata.value("compressed_files", std::vector<std::string>()),
              compressed ? std::vector<std::string>{kStateFileName} : std::vector<std::string>());
  }
}

TEST_F(CheckpointTest, PayloadsOfTwoSavesAreEqual) {
  RunDirectory first(folder_.path("a")), second(folder_.path("b"));
  const std::string one = Save(&first, 5).path, two = Save(&second, 5).path;
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(one)) {
    const std::string name = entry.path().filename().string();
    if (name == kCheckpointMetadataFile) continue;  // it holds the time
    EXPECT_EQ(test::ReadFile(one + "/" + name), test::ReadFile(two + "/" + name)) << name;
    ++compared;
  }
  EXPECT_GE(compared, 3);
}

TEST_F(CheckpointTest, TheBackgroundWritesTheSameBytesThoughTrainingGoesOn) {
  RunDirectory first(folder_.path("a")), second(folder_.path("b"));
  const std::string one = Save(&first, 5).path;
  FlatParameters& parameters = model_->parameters();
  const at::Tensor weights = parameters.values().clone();
  SnapshotBuffers buffers;
  for (int round = 0; round < 2; ++round) {  // the second one uses the buffers again
    CheckpointWriter writer;
    writer.Begin(true, std::chrono::steady_clock::now(), [&]() -> CheckpointWriter::Write {
      TrainState state = state_;
      size_t slot = 0;
      for (OptimizerState& copied : state.trainer.optimizer)
        copied.value = buffers.Copy(slot++, copied.value);
      const CheckpointContent content = DescribeCheckpoint(
          *model_, {.values = buffers.Copy(slot, parameters.values())}, tokenizer_, state, {{"seed", 1}});
      return [&second, content] { return WriteCheckpoint(&second, content); };
    });
    parameters.values().fill_(7);
    state_.trainer.optimizer_state("exp_avg").fill_(8);
    state_.trainer.optimizer_state("exp_avg_sq").fill_(9);
    const std::string two = writer.Wait()->saved.path;
    for (const char* name : {"model.safetensors", kStateFileName}) {
      EXPECT_EQ(test::ReadFile(one + "/" + name), test::ReadFile(two + "/" + name)) << name;
    }
    parameters.values().copy_(weights);
    state_.trainer.optimizer_state("exp_avg").copy_(weights.mul(2));
    state_.trainer.optimizer_state("exp_avg_sq").copy_(weights.mul(3));
  }
}

TEST(SnapshotBuffersTest, TheFirstCopyIntoMemoryMadeAheadFaultsInNoPage) {
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  const at::Tensor live = at::ones({int64_t{1} << 22});
  const int64_t pages = live.nbytes() / sysconf(_SC_PAGESIZE);
  SnapshotBuffers buffers;
  buffers.Allocate(0, live);
  const int64_t before = faults();
  const at::Tensor copy = buffers.Copy(0, live);
  EXPECT_LT(faults() - before, pages / 20);
  EXPECT_TRUE(at::equal(copy, live));
}

TEST_F(CheckpointTest, AnErrorOfTheBackgroundIsThrownOnceToWhoeverAsks) {
  CheckpointWriter writer;
  writer.Begin(true, std::chrono::steady_clock::now(), []() -> CheckpointWriter::Write {
    return []() -> SavedCheckpoint { throw Error(ErrorCode::kIo, "disk", "is full"); };
  });
  EXPECT_EQ(CodeOf([&] { writer.Wait(); }), ErrorCode::kIo);
  EXPECT_FALSE(writer.busy());
  EXPECT_FALSE(writer.Poll().has_value());
}

TEST_F(CheckpointTest, TheBestStayBesideTheNewestAndTheLinkFollows) {
  RunDirectory run(folder_.path("run"));
  const double losses[] = {3.0, 2.0, 2.5, 2.2, 4.0, 5.0};
  for (int64_t step = 1; step <= 6; ++step) {
    state_.trainer.step = step;
    CheckpointContent content = Content();
    content.metadata["validation_metrics"] = {{"eval_loss", losses[step - 1]}};
    WriteCheckpoint(&run, content);
    ApplyRetention(&run, {.newest = 1, .best = 2}, step);
  }
  EXPECT_EQ(run.CheckpointSteps(), (std::vector<int64_t>{2, 4, 6}));
  EXPECT_EQ(fs::read_symlink(run.path() + "/best"), "checkpoints/step-00000002");
  ApplyRetention(&run, {.newest = 1, .best = 1}, 6);
  EXPECT_EQ(run.CheckpointSteps(), (std::vector<int64_t>{2, 6}));
}

TEST_F(CheckpointTest, AModelAloneIsWholeButNoRunContinuesFromIt) {
  RunDirectory run(folder_.path("run"));
  state_.trainer.step = 7;
  const std::string path = WriteCheckpoint(&run, Content({.model_only = true})).path;
  EXPECT_FALSE(fs::exists(path + "/" + kStateFileName));
  EXPECT_FALSE(VerifyCheckpoint(path));
  const std::string message = test::MessageOf([&] { NewestGoodCheckpoint(run.path()); });
  EXPECT_THAT(message, testing::HasSubstr("holds the model alone"));
  EXPECT_THAT(message, testing::HasSubstr("--init " + path));
  const std::string older = Save(&run, 5).path;
  EXPECT_EQ(NewestGoodCheckpoint(run.path()), older) << "one with a state is taken, though older";
}

TEST_F(CheckpointTest, TheNewestGoodOneIsTakenWhateverLatestSays) {
  RunDirectory run(folder_.path("run")), other(folder_.path("other"));
  Save(&run, 5);
  const std::string newest = Save(&run, 6).path, foreign = Save(&other, 9).path;
  const std::string latest = run.path() + "/latest";
  for (const std::string& target :
       {std::string("checkpoints/step-00000005"), std::string("checkpoints/step-9"),
        fs::absolute(foreign).string(), std::string("../other/latest"), std::string("/nowhere")}) {
    fs::remove(latest);
    fs::create_symlink(target, latest);
    EXPECT_EQ(NewestGoodCheckpoint(run.path()), newest) << target;
  }
  fs::remove(latest);
  EXPECT_EQ(NewestGoodCheckpoint(run.path()), newest) << "none";
  test::WriteFile(latest, "checkpoints/step-00000005");
  EXPECT_EQ(NewestGoodCheckpoint(run.path()), newest) << "a file";
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
    if (entry.path().filename() == kCheckpointMetadataFile) continue;
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
  EXPECT_EQ(NewestGoodCheckpoint(run.path()), "");
  const std::string old = Save(&run, 5).path, middle = Save(&run, 6).path, newest = Save(&run, 7).path;
  EXPECT_EQ(NewestGoodCheckpoint(run.path()), newest);
  test::WriteFile(newest + "/model.safetensors", "no");
  EXPECT_EQ(NewestGoodCheckpoint(run.path()), middle);
  fs::remove_all(newest);
  EXPECT_EQ(NewestGoodCheckpoint(run.path()), middle) << "latest dangles";
  fs::remove(middle + "/" + kCheckpointMetadataFile);
  EXPECT_EQ(NewestGoodCheckpoint(run.path()), old);
  fs::remove(old + "/config.json");
  EXPECT_EQ(CodeOf([&] { NewestGoodCheckpoint(run.path()); }), ErrorCode::kBadInput);
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
    EXPECT_EQ(NewestGoodCheckpoint(run.path()), good) << limit;
    EXPECT_EQ(std::distance(fs::directory_iterator(run.checkpoints_path()), fs::directory_iterator()), 1)
        << limit;
  }
  EXPECT_EQ(NewestGoodCheckpoint(run.path()), good);
  EXPECT_EQ(Save(&run, 6).path, run.CheckpointPath(6)) << "with room again the next save works";
}

/// A checkpoint of step 5 under `path`, and the model and state to save another.
class CheckpointFaultTest : public CheckpointTest, public testing::WithParamInterface<bool> {
 protected:
  CheckpointFaultTest() { background_ = GetParam(); }
  ~CheckpointFaultTest() override { test::SetSyscallFault(""); }
  /// Saves step 5 into a new run; later calls on its files are recorded.
  std::unique_ptr<RunDirectory> NewRun(const std::string& path) {
    test::RecordSyscalls(path);
    auto run = std::make_unique<RunDirectory>(path);
    Save(run.get(), 5);
    test::RecordSyscalls(path);
    return run;
  }
  static std::vector<std::string> Hidden(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".") && name != ".lock") names.push_back(name);
    }
    return names;
  }
  /// The newest checkpoint is whole and one of the two, nothing else is left, and a save works again.
  /// \returns its step
  int64_t CheckRun(const std::string& path) {
    RunDirectory run(path);
    const std::string good = NewestGoodCheckpoint(run.path());
    EXPECT_TRUE(good == run.CheckpointPath(5) || good == run.CheckpointPath(6)) << good;
    EXPECT_THAT(Hidden(path), testing::IsEmpty());
    EXPECT_THAT(Hidden(run.checkpoints_path()), testing::IsEmpty());
    const int64_t step = ReadTrainState(good + "/" + kStateFileName).trainer.step;
    Save(&run, 6);
    EXPECT_EQ(NewestGoodCheckpoint(run.path()), run.CheckpointPath(6));
    return step;
  }
  /// Calls that change files in a save.
  size_t NumCalls() {
    const auto run = NewRun(folder_.path("counted"));
    Save(run.get(), 6);
    return test::RecordedSyscalls().size();
  }
};

INSTANTIATE_TEST_SUITE_P(Writers, CheckpointFaultTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "background" : "foreground"; });

TEST_P(CheckpointFaultTest, AKillAtAnySystemCallLeavesAWholeCheckpoint) {
  const size_t calls = NumCalls();
  ASSERT_GT(calls, 30u);
  int at_step[2] = {};
  for (size_t call = 1; call <= calls; ++call) {
    SCOPED_TRACE("killed at call " + std::to_string(call));
    const std::string path = folder_.path("run-" + std::to_string(call));
    NewRun(path).reset();
    const pid_t child = fork();
    if (child == 0) {
      RunDirectory run(path);
      test::SetSyscallFault("any " + path + " " + std::to_string(call) + " KILL");
      Save(&run, 6);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ++at_step[CheckRun(path) - 5];
  }
  EXPECT_GT(at_step[0], 0);
  EXPECT_GT(at_step[1], 0) << "a kill after the last rename finds the new checkpoint";
}

TEST_P(CheckpointFaultTest, AFailureOfAnySystemCallIsAnIoErrorThatNamesAFileAndLeavesAWholeCheckpoint) {
  const size_t calls = NumCalls();
  for (const char* action : {"EIO", "ENOSPC..."}) {
    for (size_t call = 1; call <= calls; ++call) {
      SCOPED_TRACE(std::string(action) + " from call " + std::to_string(call));
      const std::string path = folder_.path("run-" + std::to_string(call) + action);
      {
        const auto run = NewRun(path);
        test::SetSyscallFault("any " + path + " " + std::to_string(call) + " " + action);
        const std::string message = test::MessageOf([&] { Save(run.get(), 6); });
        test::SetSyscallFault("");
        EXPECT_NE(message.find(path + "/"), std::string::npos) << message;
        const std::string expected =
            fs::exists(run->CheckpointPath(6))
                ? "is in place but may not survive a power loss"
                : "step 6 is not saved; the last checkpoint is " + run->CheckpointPath(5);
        EXPECT_NE(message.find(expected), std::string::npos) << message;
        EXPECT_THAT(Hidden(run->checkpoints_path()), testing::IsEmpty());
        test::RecordSyscalls(path);
      }
      CheckRun(path);
    }
  }
}

TEST_P(CheckpointFaultTest, EveryFileIsSyncedBeforeItsRenameAndEveryFolderAfterIt) {
  const auto run = NewRun(folder_.path("run"));
  Save(run.get(), 6);
  const std::vector<test::RecordedSyscall> calls = test::RecordedSyscalls();
  const auto find = [&](const std::string& call, const std::string& path, size_t from) {
    size_t i = from;
    while (i < calls.size() && !(calls[i].call == call && calls[i].path == path)) ++i;
    return i;
  };
  int renames = 0;
  bool renamed_latest = false;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].call != "rename") continue;
    SCOPED_TRACE(calls[i].from + " -> " + calls[i].path);
    ++renames;
    renamed_latest |= calls[i].path == run->path() + "/latest";
    EXPECT_LT(find("fsync", fs::path(calls[i].path).parent_path(), i), calls.size()) << "folder not synced";
    if (calls[i].path == run->path() + "/latest") continue;  // a link has no content
    const size_t synced = find("fsync", calls[i].from, 0);
    EXPECT_LT(synced, i) << "content not synced before";
    EXPECT_EQ(find("write", calls[i].from, synced), calls.size()) << "written after its sync";
    const bool is_checkpoint = calls[i].path == run->CheckpointPath(6);
    for (size_t j = i + 1; is_checkpoint && j < calls.size(); ++j) {
      EXPECT_EQ(calls[j].path.find("/.step-"), std::string::npos)
          << "the folder changed after its commit: " << calls[j].call << " " << calls[j].path;
    }
  }
  EXPECT_GE(renames, 7) << "six files and the folder";
  EXPECT_TRUE(renamed_latest);
}

/// Rewrites the metadata of a state file; `edit` gets its "__metadata__".
void EditStateFile(const std::string& path, const std::function<void(nlohmann::json*)>& edit) {
  const std::string file = test::ReadFile(path);
  uint64_t old_size = 0;
  std::memcpy(&old_size, file.data(), sizeof(old_size));
  nlohmann::json header = nlohmann::json::parse(file.substr(8, old_size));
  edit(&header["__metadata__"]);
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t size = text.size();
  test::WriteFile(path, std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text +
                            file.substr(8 + old_size));
}

/// The same for the JSON of its field "state".
void EditState(const std::string& path, const std::function<void(nlohmann::json*)>& edit) {
  EditStateFile(path, [&](nlohmann::json* metadata) {
    nlohmann::json state = nlohmann::json::parse(metadata->at("state").get<std::string>());
    edit(&state);
    (*metadata)["state"] = state.dump();
  });
}

TEST_F(CheckpointTest, TheGemmKernelsOfAStateAreReadAlsoWhereTheyWereATextOfTheirOwn) {
  const std::string path = folder_.path("state");
  state_.compute.choices.products = {{"linear_gradients bf16 8x8x8", 3}};
  WriteTrainState(path, state_);
  EXPECT_EQ(ReadTrainState(path).compute.choices, state_.compute.choices);
  EditState(path, [&](nlohmann::json* state) {
    nlohmann::json& compute = state->at("compute");
    compute.erase("choices");
    compute["products"] = EncodeProductChoices(state_.compute.choices.products);
  });
  EXPECT_EQ(ReadTrainState(path).compute.choices.products, state_.compute.choices.products);
}

TEST_F(CheckpointTest, EveryFieldOfTheStateIsNeededAndHasAType) {
  const std::string path = folder_.path("state");
  WriteTrainState(path, state_);
  const std::string whole = test::ReadFile(path);
  nlohmann::json flat;
  EditState(path, [&](nlohmann::json* state) { flat = state->flatten(); });
  ReadTrainState(path);  // the editing itself does no harm
  ASSERT_GE(flat.size(), 30u);
  for (const auto& [name, value] : flat.items()) {
    SCOPED_TRACE(name);
    const nlohmann::json::json_pointer pointer(name);
    test::WriteFile(path, whole);
    EditState(path, [&](nlohmann::json* state) { (*state)[pointer.parent_pointer()].erase(pointer.back()); });
    EXPECT_EQ(CodeOf([&] { ReadTrainState(path); }), ErrorCode::kBadInput) << "dropped";
    test::WriteFile(path, whole);
    EditState(path, [&](nlohmann::json* state) { (*state)[pointer] = nlohmann::json::array(); });
    EXPECT_EQ(CodeOf([&] { ReadTrainState(path); }), ErrorCode::kBadInput) << "of another type";
  }
  for (const char* name : {"state", "layout"}) {
    test::WriteFile(path, whole);
    EditStateFile(path, [&](nlohmann::json* metadata) { metadata->erase(name); });
    EXPECT_EQ(CodeOf([&] { ReadTrainState(path); }), ErrorCode::kBadInput) << name;
  }
}

TEST_F(CheckpointTest, AStateOfTheFirstVersionIsReadWithLaterLeversOff) {
  const std::string path = folder_.path("state");
  state_.trainer.step = 7;
  WriteTrainState(path, state_);
  EditState(path, [](nlohmann::json* state) {
    (*state)["schema"] = "trainwright.state/1";
    for (const char* name : {"accumulation_phase", "watchdog"}) ASSERT_EQ(state->erase(name), 1u) << name;
    ASSERT_EQ((*state)["compute"].erase("attention"), 1u);
    for (const char* name : {"decay_steps", "cycle_momentum", "z_loss", "label_smoothing", "drop_last",
                             "eval_split", "objective", "loss_on"}) {
      ASSERT_EQ((*state)["plan"].erase(name), 1u) << name;
    }
  });
  const TrainState read = ReadTrainState(path);
  EXPECT_EQ(read.trainer.step, 7);
  EXPECT_EQ(read.plan.loss_addends.z_loss, 0);
  EXPECT_FALSE(read.plan.drop_last);
  EXPECT_FALSE(read.plan.schedule.cycle_beta1);
}

TEST_F(CheckpointTest, AStateOfAnotherVersionOrThatContradictsItselfIsRefused) {
  const std::string path = folder_.path("state");
  state_.trainer.step = 50;
  state_.trainer.updates = 40;
  state_.trainer.scaler = {.scale = 2, .good_steps = 3, .skipped_steps = 10};
  WriteTrainState(path, state_);
  ReadTrainState(path);
  const std::string whole = test::ReadFile(path);
  const std::pair<const char*, nlohmann::json> edits[] = {{"/schema", "trainwright.state/0"},
                                                          {"/schema", "trainwright.state/3"},
                                                          {"/accumulation_phase", 1},
                                                          {"/step", 101},
                                                          {"/step", -1},
                                                          {"/step", 39},
                                                          {"/updates", 51},
                                                          {"/updates", 41},
                                                          {"/loss_scaler/scale", 0},
                                                          {"/loss_scaler/skipped_steps", 11},
                                                          {"/labels_seen", 1},
                                                          {"/plan/precision", "fp64"},
                                                          {"/plan/batch", 0}};
  for (const auto& [name, value] : edits) {
    test::WriteFile(path, whole);
    EditState(path, [&, key = name, to = value](nlohmann::json* state) {
      (*state)[nlohmann::json::json_pointer(key)] = to;
    });
    EXPECT_EQ(CodeOf([&] { ReadTrainState(path); }), ErrorCode::kBadInput) << name << " " << value;
  }
}

}  // namespace
}  // namespace trainwright

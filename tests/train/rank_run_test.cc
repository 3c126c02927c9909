// Whole runs as rank 1 of 2, through the entry of the engine, in a process that is killed where it changes a
// file: only the writer's rank may.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/dist/shared_work.h"
#include "lib/train/train_job.h"
#include "tests/model/families.h"
#include "tests/support/support.h"
#include "tests/train/rank_one.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using test::Moment;
using test::RankOne;

constexpr int64_t kRankSteps = 6;
constexpr int kOtherSteps = 99;  // of no Error

/// The calls that change files whatever their arguments are, or lock them.
std::vector<long> ChangingCalls() {
  std::vector<long> calls = {SYS_openat2,  SYS_mkdirat,   SYS_mknodat,   SYS_unlinkat,  SYS_renameat2,
                             SYS_linkat,   SYS_symlinkat, SYS_truncate,  SYS_ftruncate, SYS_fallocate,
                             SYS_fchmodat, SYS_fchownat,  SYS_utimensat, SYS_flock};
#ifdef SYS_open  // architectures that have the older calls, too
  calls.insert(calls.end(), {SYS_creat, SYS_mkdir, SYS_mknod, SYS_unlink, SYS_rmdir, SYS_rename, SYS_renameat,
                             SYS_link, SYS_symlink, SYS_chmod, SYS_chown});
#endif
  return calls;
}

/// From here on the kernel kills this process by SIGSYS where it opens a file for writing, or makes, renames,
/// removes or locks one.
void ForbidChangesOfFiles() {
  constexpr auto kLoad = BPF_LD | BPF_W | BPF_ABS, kReturn = BPF_RET | BPF_K;
  constexpr auto kEqual = BPF_JMP | BPF_JEQ | BPF_K, kAnyBit = BPF_JMP | BPF_JSET | BPF_K;
  constexpr uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  const auto number = static_cast<uint32_t>(offsetof(seccomp_data, nr));
  std::vector<sock_filter> filter = {BPF_STMT(kLoad, number)};
  for (const long call : ChangingCalls()) {
    filter.push_back(BPF_JUMP(kEqual, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(kReturn, SECCOMP_RET_KILL_PROCESS));
  }
  const auto forbid_writing = [&](long call, size_t flags) {
    const auto argument = static_cast<uint32_t>(offsetof(seccomp_data, args) + flags * sizeof(uint64_t));
    filter.push_back(BPF_JUMP(kEqual, static_cast<uint32_t>(call), 0, 4));
    filter.push_back(BPF_STMT(kLoad, argument));
    filter.push_back(BPF_JUMP(kAnyBit, kWriting, 0, 1));
    filter.push_back(BPF_STMT(kReturn, SECCOMP_RET_KILL_PROCESS));
    filter.push_back(BPF_STMT(kReturn, SECCOMP_RET_ALLOW));
  };
  forbid_writing(SYS_openat, 2);
#ifdef SYS_open
  forbid_writing(SYS_open, 1);
#endif
  filter.push_back(BPF_STMT(kReturn, SECCOMP_RET_ALLOW));
  const sock_fprog program = {.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("seccomp");
    std::_Exit(kOtherSteps);
  }
}

/// The answers of rank 0 before the first step, one after another; later it wants nothing.
RankOne::Answers Start(std::vector<std::vector<int64_t>> answers) {
  return [answers = std::move(answers), next = size_t{0}](Moment moment, int64_t) mutable {
    return moment == Moment::kStart && next < answers.size() ? answers[next++] : std::vector<int64_t>();
  };
}

class RankRunTest : public testing::Test {
 protected:
  RankRunTest() : before_(fs::current_path()) {
    fs::current_path(folder_.path());
    std::string lines;
    for (int line = 0; line < 40; ++line) {
      lines += R"({"text":"abcdefgh )" + std::to_string(line) + " abcdefgh\"}\n";
    }
    test::WriteFile("in.jsonl", lines);
    const test::ProcessResult made = test::RunShell("pretokenize -q in.jsonl | pack -q --chunk 64 -o shards");
    EXPECT_EQ(made.exit_status, 0) << made.standard_error;
    test::WriteFile("model.json",
                    R"({"model_type":"llama","vocab_size":258,"hidden_size":16,"num_hidden_layers":2,)"
                    R"("intermediate_size":32,"num_attention_heads":2,"max_position_embeddings":64})");
    settings_.data = {"shards"};
    settings_.model = "model.json";
    settings_.out = "run";
    settings_.steps = kRankSteps;
    settings_.batch = 2;
    settings_.accum = 2;  // which ranks can share
    settings_.seq = 32;
    settings_.save_every = "3";
    settings_.eval_data = {"shards"};
    settings_.eval_every = 3;
    settings_.threads = 1;
    settings_.device = "cpu";
  }
  ~RankRunTest() override { fs::current_path(before_); }

  int Train(World* world) const {
    nlohmann::ordered_json summary;
    const TrainJobContext context = {.families = test::Families(),
                                     .world = world,
                                     .progress = ProgressMode::kNever,
                                     .optimizers = BuiltInOptimizers(),
                                     .objectives = BuiltInObjectives()};
    return RunTraining(settings_, context, &summary);
  }
  /// Trains the whole run, which is to be resumed.
  void TrainAlone() {
    EXPECT_EQ(Train(Solo()), 0);
    settings_.model.clear();
    settings_.steps.reset();
    settings_.batch.reset();
    settings_.accum.reset();
    settings_.seq.reset();
    settings_.resume = true;
  }
  /// Ends this process with the status of a run as rank 1.
  /// \param steps that it is to take
  [[noreturn]] void EndAsRankOne(const RankOne::Answers& rank_zero, int64_t steps) const {
    RankOne world(rank_zero);
    ForbidChangesOfFiles();
    int status = 0;
    try {
      status = Train(&world);
    } catch (const Error& error) {
      status = static_cast<int>(error.code());
    }
    std::_Exit(world.steps() == steps ? status : kOtherSteps);
  }
  static auto Exits(ErrorCode code) { return testing::ExitedWithCode(static_cast<int>(code)); }

  test::TemporaryFolder folder_;
  fs::path before_;
  TrainSettings settings_;
};
using RankRunDeathTest = RankRunTest;

TEST_F(RankRunDeathTest, ANewRunChangesNoFile) {
  EXPECT_EXIT(EndAsRankOne(Start({}), kRankSteps), testing::ExitedWithCode(0), "");
}

TEST_F(RankRunDeathTest, ANewRunWithoutAFolderChangesNoFile) {
  settings_.out.clear();
  EXPECT_EXIT(EndAsRankOne(Start({}), kRankSteps), testing::ExitedWithCode(0), "");
}

// Shows that the tests above can fail.
TEST_F(RankRunDeathTest, TheWriterIsKilledAtItsFirstFile) {
  const auto train = [&] {
    ForbidChangesOfFiles();
    std::_Exit(Train(Solo()));
  };
  EXPECT_EXIT(train(), testing::KilledBySignal(SIGSYS), "");
}

TEST_F(RankRunDeathTest, GoesOnFromTheCheckpointThatTheWriterChoosesAndChangesNoFile) {
  TrainAlone();
  const int64_t step = 3;  // not the newest
  EXPECT_EXIT(EndAsRankOne(Start({{0, step + 1}, {}, {step, -step}}), kRankSteps - step),
              testing::ExitedWithCode(0), "");
}

TEST_F(RankRunDeathTest, OfACompleteRunItLeavesTheRestToTheWriterWhoseStatusItTakes) {
  TrainAlone();
  EXPECT_EXIT(EndAsRankOne(Start({{0, kRankSteps + 1}, {0, 4}}), 0), Exits(ErrorCode::kIo), "");
}

TEST_F(RankRunDeathTest, BranchesFromAnotherRunAndChangesNoFile) {
  TrainAlone();
  settings_.resume = false;
  settings_.branch_from = "run@3";
  settings_.out = "branch";
  EXPECT_EXIT(EndAsRankOne(Start({{}, {3, -3}}), kRankSteps - 3), testing::ExitedWithCode(0), "");
}

TEST_F(RankRunDeathTest, RefusesToGoOnFromAnotherStepThanTheWriter) {
  TrainAlone();
  settings_.resume = false;
  settings_.branch_from = "run";
  settings_.steps = 2 * kRankSteps;
  settings_.out = "branch";
  EXPECT_EXIT(EndAsRankOne(Start({{}, {3, -3}}), 0), Exits(ErrorCode::kIo), "");
}

TEST_F(RankRunDeathTest, EndsWhereTheWriterCannotMakeTheFolder) {
  EXPECT_EXIT(EndAsRankOne(Start({{static_cast<int64_t>(WorkEnd::kFailed)}}), 0), Exits(ErrorCode::kIo), "");
}

TEST_F(RankRunDeathTest, LeavesADryRunToTheWriterWhoseStatusItTakes) {
  settings_.dry_run = true;
  EXPECT_EXIT(EndAsRankOne(Start({{0, 1}}), 0), testing::ExitedWithCode(1), "");
}

TEST_F(RankRunDeathTest, WantsToKnowWhichRunIsResumed) {
  TrainAlone();
  settings_.out.clear();
  EXPECT_EXIT(EndAsRankOne(Start({}), 0), Exits(ErrorCode::kUsage), "");
}

}  // namespace
}  // namespace trainwright

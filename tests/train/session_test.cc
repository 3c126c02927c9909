// A session on a rank that is not the writer's: rank 1 of 2, whose rank 0 is played by the test.
#include "lib/train/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "tests/support/support.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 8;
/// How many questions a session asks before each step, after its passes, and after it.
constexpr size_t kBeforeStep = 2, kAfterPasses = 1, kAfterStep = 3;

/// Rank 1 of 2. Rank 0 answers what a function says, by the number of the step that is under way.
class RankOne final : public World {
 public:
  using Answers = std::function<std::vector<int64_t>(int64_t step, size_t questions)>;
  explicit RankOne(Answers rank_zero) : rank_zero_(std::move(rank_zero)) {}
  int64_t rank() const override { return 1; }
  int64_t size() const override { return 2; }
  void Reduce(std::vector<int64_t>*) override {}
  std::vector<int64_t> Agree(const std::vector<int64_t>& answers) override {
    if (answers.size() == kBeforeStep) ++step_;
    std::vector<int64_t> agreed = rank_zero_(step_, answers.size());
    agreed.resize(answers.size());
    for (size_t i = 0; i < answers.size(); ++i) agreed[i] = std::max(agreed[i], answers[i]);
    return agreed;
  }

 private:
  Answers rank_zero_;
  int64_t step_ = 0;
};

/// A run of kSteps steps in an empty folder, which is the working folder meanwhile.
class RankOneSessionTest : public testing::Test {
 protected:
  RankOneSessionTest() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~RankOneSessionTest() override { fs::current_path(before_); }

  /// \returns the exit status
  int Train(World* world) {
    run_.model.config = test::TinyModel();
    run_.plan = test::TinyPlan();
    run_.plan.schedule.total_steps = kSteps;
    run_.cadence = {.save_every = {.steps = 2}, .eval_every = 2};
    std::vector<NamedShardSet> sets;
    sets.push_back({"documents", std::make_unique<test::MemoryShardSet>(test::CountingDocuments())});
    run_.data = std::make_unique<TrainingData>(
        std::move(sets), std::make_unique<test::MemoryShardSet>(test::CountingDocuments(2)));
    run_.stream = std::make_unique<SampleStream>(&run_.data->set(), run_.plan.stream_options());
    session_ = std::make_unique<Session>(settings_, context_, world, &run_, nullptr);
    return session_->Run();
  }
  bool FolderIsEmpty() const { return fs::is_empty(folder_.path()); }

  test::TemporaryFolder folder_;
  fs::path before_;
  TrainSettings settings_;
  TrainJobContext context_ = {.families = test::Families(),
                              .progress = ProgressMode::kNever,
                              .optimizers = BuiltInOptimizers(),
                              .objectives = BuiltInObjectives()};
  ResolvedRun run_;
  std::unique_ptr<Session> session_;
};

TEST_F(RankOneSessionTest, TrainsToTheEndAndWritesNoFile) {
  settings_.copy_to = folder_.path("copies");
  RankOne world([](int64_t, size_t) { return std::vector<int64_t>(); });
  EXPECT_EQ(Train(&world), 0);
  EXPECT_EQ(session_->step(), kSteps);
  EXPECT_TRUE(FolderIsEmpty());
}

TEST_F(RankOneSessionTest, EndsAfterTheStepWhereRankZeroGotASignal) {
  RankOne world([](int64_t step, size_t questions) {
    return std::vector<int64_t>{step == 3 && questions == kAfterStep ? 15 : 0};
  });
  EXPECT_EQ(Train(&world), 128 + 15);
  EXPECT_EQ(session_->step(), 3);
  EXPECT_TRUE(FolderIsEmpty());
}

TEST_F(RankOneSessionTest, TakesNoStepWhenRankZeroGotASignalBeforeIt) {
  RankOne world([](int64_t step, size_t) { return std::vector<int64_t>{step == 3 ? 2 : 0}; });
  EXPECT_EQ(Train(&world), 128 + 2);
  EXPECT_EQ(session_->step(), 2);
}

TEST_F(RankOneSessionTest, EndsWhenTheTimeOfRankZeroIsUp) {
  RankOne world([](int64_t step, size_t questions) {
    return std::vector<int64_t>{0, step == 4 && questions == kAfterStep ? 1 : 0};
  });
  EXPECT_EQ(Train(&world), 0);
  EXPECT_EQ(session_->step(), 4);
}

TEST_F(RankOneSessionTest, EndsWhenTheWatchdogOfRankZeroStopsTheRun) {
  RankOne world([](int64_t step, size_t questions) {
    return std::vector<int64_t>{0, 0, step == 5 && questions == kAfterStep ? 1 : 0};
  });
  EXPECT_EQ(Train(&world), static_cast<int>(ErrorCode::kNonFinite));
  EXPECT_EQ(session_->step(), 5);
}

TEST_F(RankOneSessionTest, TakesTheStepAgainInSmallerMicroBatchesWhereRankZeroRanOutOfMemory) {
  settings_.auto_oom = true;
  int64_t asked = 0;
  RankOne world([&](int64_t step, size_t questions) {
    return std::vector<int64_t>{step == 3 && questions == kAfterPasses && asked++ == 0 ? 1 : 0};
  });
  EXPECT_EQ(Train(&world), 0);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(session_->step(), kSteps);
  EXPECT_EQ(session_->plan().batch, 1);
  EXPECT_EQ(session_->plan().samples_per_step(), test::TinyPlan().samples_per_step());
}

}  // namespace
}  // namespace trainwright

// A session on a rank that is not the writer's: rank 1 of 2, whose rank 0 is played by the test.
#include "lib/train/session.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lib/dist/shared_work.h"
#include "tests/support/support.h"
#include "tests/train/rank_one.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using test::Moment;
using test::RankOne;

constexpr int64_t kSessionSteps = 8;
constexpr auto kOutOfMemory = static_cast<int64_t>(WorkEnd::kOutOfMemory);

/// A run of kSessionSteps steps in an empty folder, which is the working folder meanwhile.
class RankOneSessionTest : public testing::Test {
 protected:
  RankOneSessionTest() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~RankOneSessionTest() override { fs::current_path(before_); }

  /// \returns the exit status
  int Train(World* world) {
    run_.model.config = test::TinyModel();
    run_.plan = test::TinyPlan();
    run_.plan.ranks = world->size();
    run_.plan.schedule.total_steps = kSessionSteps;
    run_.cadence = {.save_every = {.steps = 2}, .eval_every = 2};
    std::vector<NamedShardSet> sets;
    sets.push_back({"documents", std::make_unique<test::MemoryShardSet>(test::CountingDocuments())});
    run_.data = std::make_unique<TrainingData>(
        std::move(sets), std::make_unique<test::MemoryShardSet>(test::CountingDocuments(2)));
    run_.loaders[kMainLoader] = std::make_unique<SampleStream>(&run_.data->set(), run_.plan.stream_options());
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
  RankOne world([](Moment, int64_t) { return std::vector<int64_t>(); });
  EXPECT_EQ(Train(&world), 0);
  EXPECT_EQ(session_->step(), kSessionSteps);
  EXPECT_TRUE(FolderIsEmpty());
}

TEST_F(RankOneSessionTest, EndsAfterTheStepWhereRankZeroGotASignal) {
  RankOne world([](Moment moment, int64_t step) {
    return std::vector<int64_t>{step == 3 && moment == Moment::kAfterStep ? 15 : 0};
  });
  EXPECT_EQ(Train(&world), 128 + 15);
  EXPECT_EQ(session_->step(), 3);
  EXPECT_TRUE(FolderIsEmpty());
}

TEST_F(RankOneSessionTest, TakesNoStepWhenRankZeroGotASignalBeforeIt) {
  RankOne world([](Moment moment, int64_t step) {
    return std::vector<int64_t>{step == 3 && moment == Moment::kBeforeStep ? 2 : 0};
  });
  EXPECT_EQ(Train(&world), 128 + 2);
  EXPECT_EQ(session_->step(), 2);
}

TEST_F(RankOneSessionTest, EndsWhenTheTimeOfRankZeroIsUp) {
  RankOne world([](Moment moment, int64_t step) {
    return std::vector<int64_t>{0, step == 4 && moment == Moment::kAfterStep ? 1 : 0};
  });
  EXPECT_EQ(Train(&world), 0);
  EXPECT_EQ(session_->step(), 4);
}

TEST_F(RankOneSessionTest, EndsWhenTheWatchdogOfRankZeroStopsTheRun) {
  RankOne world([](Moment moment, int64_t step) {
    return std::vector<int64_t>{0, 0, step == 5 && moment == Moment::kAfterStep ? 1 : 0};
  });
  EXPECT_EQ(Train(&world), static_cast<int>(ErrorCode::kNonFinite));
  EXPECT_EQ(session_->step(), 5);
}

TEST_F(RankOneSessionTest, IsCompleteWhereRankZeroStopsEarly) {
  settings_.early_stop = kSessionSteps;  // nothing that this rank would stop by
  RankOne world([](Moment moment, int64_t step) {
    return std::vector<int64_t>{0, 0, step == 4 && moment == Moment::kBeforeStep ? 1 : 0};
  });
  EXPECT_EQ(Train(&world), 0);
  EXPECT_EQ(session_->step(), 3);
}

TEST_F(RankOneSessionTest, TakesTheStepAgainInSmallerMicroBatchesWhereRankZeroRanOutOfMemory) {
  settings_.auto_oom = true;
  int64_t asked = 0;
  RankOne world([&](Moment moment, int64_t step) {
    return std::vector<int64_t>{step == 3 && moment == Moment::kAfterPasses && asked++ == 0 ? kOutOfMemory
                                                                                            : 0};
  });
  EXPECT_EQ(Train(&world), 0);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(session_->step(), kSessionSteps);
  EXPECT_EQ(session_->plan().batch, 1);
  EXPECT_EQ(session_->plan().samples_per_rank(), test::TinyPlan().samples_per_rank());
}

TEST_F(RankOneSessionTest, TakesTheEvaluationAgainWhereRankZeroRanOutOfMemory) {
  settings_.auto_oom = true;
  int64_t asked = 0;
  RankOne world([&](Moment moment, int64_t step) {
    return std::vector<int64_t>{step == 2 && moment == Moment::kOtherwise && asked++ == 0 ? kOutOfMemory : 0};
  });
  EXPECT_EQ(Train(&world), 0);
  EXPECT_EQ(asked, 3) << "how it ended, whose memory ran out, and how it ended then";
  EXPECT_EQ(session_->step(), kSessionSteps);
  EXPECT_EQ(session_->plan().batch, 1);
}

TEST_F(RankOneSessionTest, EndsWithStatus6WhereRankZerosLossIsNotFinite) {
  RankOne world([](Moment moment, int64_t step) {
    return std::vector<int64_t>{0, step == 3 && moment == Moment::kAfterPasses ? 1 : 0};
  });
  EXPECT_EQ(test::CodeOf([&] { Train(&world); }), ErrorCode::kNonFinite);
  EXPECT_EQ(session_->step(), 2);
  EXPECT_TRUE(FolderIsEmpty());
}

TEST_F(RankOneSessionTest, EndsWithStatus4WhereRankZeroFailed) {
  RankOne world([](Moment moment, int64_t step) {
    return std::vector<int64_t>{
        step == 3 && moment == Moment::kAfterPasses ? static_cast<int64_t>(WorkEnd::kFailed) : 0};
  });
  EXPECT_EQ(test::CodeOf([&] { Train(&world); }), ErrorCode::kIo);
  EXPECT_EQ(session_->step(), 2);
}

}  // namespace
}  // namespace trainwright

#include "lib/run/training_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(TrainingHistory, TellsWhatAListOfAllLossesTells) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  std::mt19937_64 random(test::TestSeed());
  std::vector<double> losses;
  TrainingHistory history;
  for (int64_t step = 1; step <= 250; ++step) {
    losses.push_back(std::uniform_real_distribution<double>(1, 5)(random));
    history.AddStep(step, losses.back(), 0.001 * static_cast<double>(step));
  }
  double sum = 0, squares = 0, lowest = losses[0];
  int64_t lowest_step = 1;
  for (size_t i = 0; i < losses.size(); ++i) {
    sum += losses[i];
    if (losses[i] < lowest) {
      lowest = losses[i];
      lowest_step = static_cast<int64_t>(i) + 1;
    }
  }
  const double mean = sum / 250;
  for (const double loss : losses) squares += (loss - mean) * (loss - mean);
  EXPECT_NEAR(history.mean_loss_nats(), mean, 1e-12);
  EXPECT_NEAR(history.loss_deviation_nats(), std::sqrt(squares / 250), 1e-12);

  const nlohmann::ordered_json json = history.Encode(250);
  EXPECT_EQ(json.at("current_loss"), losses.back());
  EXPECT_EQ(json.at("best_loss"), lowest);
  EXPECT_EQ(json.at("validation_metrics").at("steps_since_best"), 250 - lowest_step);
  EXPECT_EQ(json.at("loss_history"), std::vector<double>(losses.begin() + 150, losses.end()));
  EXPECT_EQ(json.at("learning_rates").size(), TrainingHistory::kMostKept);
}

TEST(TrainingHistory, GoesOnFromItsEncodingAsIfItHadNotStopped) {
  const auto loss = [](int64_t step) { return 3 + std::sin(static_cast<double>(step) * 0.7); };
  TrainingHistory whole, half;
  for (int64_t step = 1; step <= 300; ++step) {
    whole.AddStep(step, loss(step), 1e-3);
    half.AddStep(step, loss(step), 1e-3);
    if (step % 50 == 0) {
      whole.AddEvaluation(step, loss(step) + 1);
      half.AddEvaluation(step, loss(step) + 1);
    }
    if (step % 70 != 0) continue;
    TrainingHistory again;
    again.Restore(nlohmann::json::parse(half.Encode(step).dump()));
    half = again;
  }
  EXPECT_EQ(whole.Encode(300), half.Encode(300));
}

TEST(TrainingHistory, KnowsTheBestEvaluationAndWhetherACheckpointHasIt) {
  TrainingHistory history;
  history.AddEvaluation(10, 3.0);
  history.AddEvaluation(20, 2.0);
  EXPECT_EQ(history.Encode(20).at("validation_metrics").at("is_best"), true);
  history.AddEvaluation(30, 2.5);
  const nlohmann::ordered_json later = history.Encode(30).at("validation_metrics");
  EXPECT_EQ(later.at("is_best"), false);
  EXPECT_EQ(later.at("eval_loss"), 2.5);
  EXPECT_EQ(later.at("best_eval_step"), 20);
  EXPECT_TRUE(history.Encode(35).at("validation_metrics").at("eval_loss").is_null()) << "not evaluated there";
}

nlohmann::json MetadataOf(const TrainingHistory& history, int64_t step) {
  nlohmann::json metadata = nlohmann::json::parse(history.Encode(step).dump());
  metadata["step"] = step;
  return metadata;
}

TEST(TrainingHistory, RemembersAnEvaluationThatIsLeftUntilItIsMade) {
  TrainingHistory history("these"), later("these");
  history.AddEvaluation(10, 3.0);
  history.LeaveEvaluation(12);
  later.Restore(MetadataOf(history, 12));
  EXPECT_TRUE(later.evaluation_is_left(12));
  EXPECT_FALSE(later.evaluation_is_left(10));
  later.AddEvaluation(12, 2.0);
  TrainingHistory latest("these");
  latest.Restore(MetadataOf(later, 12));
  EXPECT_FALSE(latest.evaluation_is_left(12));
  EXPECT_EQ(latest.evaluation_nats(12), 2.0);
}

TEST(TrainingHistory, ComparesNoLossesOfDifferentEvaluationData) {
  TrainingHistory history("these"), same("these"), others("others");
  history.AddStep(1, 2, 3);
  history.AddEvaluation(10, 1.0);
  const nlohmann::json metadata = MetadataOf(history, 20);
  same.Restore(metadata);
  EXPECT_FALSE(same.compares_anew());
  same.AddEvaluation(20, 2.0);
  EXPECT_EQ(same.steps_since_best_evaluation(), 10);
  others.Restore(metadata);
  EXPECT_TRUE(others.compares_anew());
  EXPECT_EQ(others.best_loss_nats(), 2) << "training's losses stay";
  others.AddEvaluation(20, 2.0);
  EXPECT_FALSE(others.compares_anew());
  EXPECT_EQ(others.steps_since_best_evaluation(), 0);
}

/// Evaluations at some steps, each with the interval of --eval-every that it was made under.
struct Evaluated {
  int64_t step, eval_every;
  double loss_nats;
};

/// How many of --eval-every came since the best one, by the whole list.
int64_t CountSinceBest(const std::vector<Evaluated>& all) {
  size_t best = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].loss_nats < all[best].loss_nats) best = i;
  }
  return std::count_if(all.begin() + static_cast<std::ptrdiff_t>(best) + 1, all.end(),
                       [](const Evaluated& one) { return one.step % one.eval_every == 0; });
}

TEST(TrainingHistory, StopsEarlyByEvaluationsHoweverManyStepsLieBetweenThem) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  std::mt19937_64 random(test::TestSeed());
  int64_t eval_every = 8;
  TrainingHistory history("these", eval_every);
  std::vector<Evaluated> all;
  for (int64_t step = 0; step < 600; ++step) {
    if (step % 50 == 37) {  // resumed with another interval
      eval_every = std::uniform_int_distribution<int64_t>(1, 12)(random);
      TrainingHistory resumed("these", eval_every);
      resumed.Restore(MetadataOf(history, step));
      history = resumed;
    }
    const bool of_a_save = random() % 7 == 0;
    if (step % eval_every != 0 && !of_a_save) continue;
    const double loss = std::uniform_real_distribution<double>(0, 1)(random) + (step % 200 < 100 ? 0.0 : 1.0);
    history.AddEvaluation(step, loss);
    all.push_back({step, eval_every, loss});
    const int64_t count = CountSinceBest(all);
    ASSERT_EQ(history.StopsEarly(count + 1), false) << "step " << step;
    ASSERT_EQ(history.StopsEarly(count), true) << "step " << step;
  }
  EXPECT_FALSE(history.StopsEarly(std::nullopt));
}

TEST(TrainingHistory, OfABranchComparesNoEvaluationWithThoseBeforeItsFirstStep) {
  TrainingHistory parent("these", 10);
  for (int64_t step = 0; step <= 30; step += 10) {
    parent.AddStep(step + 1, 2.0, 1e-3);
    parent.AddEvaluation(step, 1.0 + static_cast<double>(step));
  }
  TrainingHistory evaluated("these", 10), between("these", 10);
  evaluated.Restore(MetadataOf(parent, 30));
  evaluated.CompareFrom(30);
  EXPECT_FALSE(evaluated.StopsEarly(1));
  EXPECT_EQ(evaluated.evaluation_nats(30), 31.0) << "made by the parent";
  EXPECT_EQ(evaluated.best_loss_nats(), 2.0) << "training's losses stay";
  evaluated.AddEvaluation(40, 20.0);
  EXPECT_EQ(evaluated.best_evaluation_step(), 40);
  evaluated.AddEvaluation(50, 20.0);
  EXPECT_TRUE(evaluated.StopsEarly(1));
  between.Restore(MetadataOf(parent, 35));
  between.CompareFrom(35);
  EXPECT_FALSE(between.evaluation_nats(35));
  EXPECT_FALSE(between.has_evaluations());
  EXPECT_FALSE(between.StopsEarly(1));
}

TEST(TrainingHistory, ALossThatIsNoNumberCountsOnceAsAnEvaluationThatIsNoBetter) {
  TrainingHistory history("these", 10);
  history.AddEvaluation(0, 1.0);
  history.AddEvaluation(10, std::nan(""));
  TrainingHistory resumed("these", 10);
  resumed.Restore(MetadataOf(history, 10));
  resumed.AddEvaluation(10, std::nan(""));
  EXPECT_TRUE(resumed.StopsEarly(1));
  EXPECT_FALSE(resumed.StopsEarly(2));
  resumed.AddEvaluation(20, std::nan(""));
  EXPECT_TRUE(resumed.StopsEarly(2));
}

TEST(TrainingHistory, StopsEarlyAsBeforeWhereOlderVersionsCountedNoEvaluations) {
  TrainingHistory history("these", 10), resumed("these", 10);
  for (int64_t step = 0; step <= 30; step += 10) history.AddEvaluation(step, 1.0);
  nlohmann::json metadata = MetadataOf(history, 30);
  metadata.at("history_state").erase("evaluations_since_best");
  resumed.Restore(metadata);
  EXPECT_FALSE(resumed.StopsEarly(4));
  EXPECT_TRUE(resumed.StopsEarly(3));
}

TEST(TrainingHistory, GoesOnComparingWhereOlderVersionsNamedNoData) {
  TrainingHistory history, later("these");
  history.AddEvaluation(10, 1.0);
  later.Restore(MetadataOf(history, 10));
  EXPECT_FALSE(later.compares_anew());
  EXPECT_EQ(later.evaluation_nats(10), 1.0);
}

TEST(TrainingHistory, TakesNothingFromMetadataOfOlderVersions) {
  TrainingHistory history;
  history.AddStep(1, 2, 3);
  history.Restore({{"schema", "trainwright.checkpoint/1"}, {"step", 5}});
  EXPECT_TRUE(history.Encode(5).at("current_loss").is_null());
}

}  // namespace
}  // namespace trainwright

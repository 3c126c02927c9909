#include "lib/bench/run_figures.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

/// Two variants of two rounds, as Measure reads them of runs of 12 steps that make half an epoch.
Measurement TwoVariants() {
  const auto run = [](double step_time_s) {
    return Sample{{"step_time_s", step_time_s}, {"effective_batch", 16}, {"cpu_cores", 3},
                  {"max_memory_bytes", 1e6},    {"final:epoch", 0.5},    {"final:step", 12}};
  };
  Measurement measurement;
  for (const double time_s : {0.1, 0.3}) {
    measurement.rounds.push_back({.runs = {{run(time_s), run(0.2)}, {run(0.4), run(0.4)}}});
  }
  return measurement;
}

TEST(RunFiguresTest, AreMediansOverAllRunsOfAVariant) {
  const RunFigures before = FiguresOf(TwoVariants(), 0, 4), after = FiguresOf(TwoVariants(), 1, 4);
  EXPECT_DOUBLE_EQ(before.samples_per_s.value(), 80);
  EXPECT_DOUBLE_EQ(before.max_memory_bytes.value(), 1e6);
  EXPECT_DOUBLE_EQ(before.epoch_time_s.value(), 0.2 * 24);
  EXPECT_DOUBLE_EQ(before.utilization.value(), 0.75);
  EXPECT_FALSE(before.of_gpu);
  EXPECT_DOUBLE_EQ(after.samples_per_s.value(), 40);
  EXPECT_DOUBLE_EQ(after.epoch_time_s.value(), 9.6);
}

TEST(RunFiguresTest, AGpusUseCountsWhereItIsTold) {
  Measurement measurement = TwoVariants();
  for (Round& round : measurement.rounds) {
    for (Sample& run : round.runs[0]) run["gpu_util"] = 0.9;
  }
  const RunFigures figures = FiguresOf(measurement, 0, 4);
  EXPECT_DOUBLE_EQ(figures.utilization.value(), 0.9);
  EXPECT_TRUE(figures.of_gpu);
  EXPECT_EQ(ToJson(figures).at("utilization_of"), "gpu");
}

TEST(RunFiguresTest, WhatARunDoesNotTellIsNull) {
  Measurement measurement = TwoVariants();
  measurement.rounds[1].runs[0][1].erase("final:epoch");
  measurement.rounds[0].runs[0][0].erase("cpu_cores");
  const nlohmann::ordered_json json = ToJson(FiguresOf(measurement, 0, 4));
  EXPECT_TRUE(json.at("epoch_time_s").is_null());
  EXPECT_TRUE(json.at("utilization").is_null());
  EXPECT_DOUBLE_EQ(json.at("samples_per_s").get<double>(), 80);
}

}  // namespace
}  // namespace trainwright

#include "lib/bench/measurement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/support.h"

namespace trainwright {
namespace {

MeasurementOptions Quick(int64_t rounds) {
  return {.warmup_rounds = 0, .min_rounds = rounds, .max_rounds = rounds, .compare_output = false};
}

const EnoughRounds kNever = [](const Measurement&) { return false; };

TEST(ReadMetricTest, ThePercentileIsTheSmallestValueThat99PerCentDoNotExceed) {
  for (const int count : {1, 2, 99, 100, 101, 250}) {
    std::string lines;
    // In another order than by size; the two that are skipped are the largest.
    lines += "{\"x\":9000}\n{\"x\":8000}\n";
    for (int i = 0; i < count; ++i) lines += "{\"x\":" + std::to_string((i * 37) % count) + "}\n";
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back((i * 37) % count);
    double expected = 1e9;
    for (const double candidate : values) {
      const auto exceeding =
          std::count_if(values.begin(), values.end(), [&](double x) { return x > candidate; });
      if (100 * exceeding <= count) expected = std::min(expected, candidate);
    }
    EXPECT_EQ(ReadMetric(lines, "p99:x", 2, "it"), expected) << count;
  }
}

TEST(ReadMetricTest, TakesTheMedianOfLinesBehindThoseSkipped) {
  const std::string lines = "{\"type\":\"begin\"}\n{\"x\":9}\n{\"x\":1}\n{\"x\":3}\nnoise\n{\"x\":2}\n";
  EXPECT_EQ(ReadMetric(lines, "x", 1, "it"), 2);
  EXPECT_EQ(ReadMetric(lines, "final:x", 0, "it"), 2);
  EXPECT_EQ(ReadMetric(lines, "mean:x", 0, "it"), 3.75);
  EXPECT_EQ(ReadMetric(lines, "mean:x", 1, "it"), 2);
  EXPECT_EQ(ReadMetric("{\n \"x\": 4\n}", "x", 0, "it"), 4);
}

TEST(ReadMetricTest, WhereItMayBeLackingATextWithoutTheNumberHasNone) {
  EXPECT_EQ(FindMetric("{\"x\": 4}", "x", 0), 4);
  EXPECT_EQ(FindMetric("{\"x\": 4}", "y", 0), std::nullopt);
  EXPECT_EQ(FindMetric("{\"x\": 4}", "x", 1), std::nullopt);
}

TEST(ReadMetricTest, ATextWithoutTheNumberIsRefused) {
  for (const char* text : {"", "{\"x\":\"fast\"}", "{\"y\":1}", "not json"}) {
    EXPECT_EQ(test::CodeOf([&] { ReadMetric(text, "x", 0, "it"); }), ErrorCode::kBadInput) << text;
  }
  EXPECT_EQ(test::CodeOf([] { ReadMetric("{\"x\":1}", "x", 1, "it"); }), ErrorCode::kBadInput);
}

TEST(ReadMetricTest, AValueThatIsNotFiniteIsNotLeftOut) {
  for (const char* value : {"null", "NaN", "-nan", "Infinity", "-inf", "1e999"}) {
    const std::string lines = std::string("{\"x\":1}\n{\"x\":2}\n{\"x\": ") + value + ", \"y\": \"NaN\"}\n";
    for (const char* name : {"x", "mean:x", "p99:x", "final:x"}) {
      EXPECT_TRUE(std::isnan(ReadMetric(lines, name, 0, "it"))) << name << " of " << value;
    }
    EXPECT_EQ(ReadMetric(lines + "{\"x\":7}\n", "final:x", 0, "it"), 7) << value;
    EXPECT_EQ(ReadMetric(lines + "{\"x\":7}\n", "x", 3, "it"), 7) << value;
    EXPECT_EQ(FindMetric(lines, "final:x", 0), 2) << value;
  }
  EXPECT_TRUE(std::isnan(ReadMetric("{\n \"x\": NaN\n}", "x", 0, "it")));
}

TEST(MeasurementTest, ARoundRunsEachVariantAndTheControlTwiceInMirroredOrder) {
  test::TemporaryFolder folder;
  const std::string log = folder.path("log");
  const auto variant = [&](const std::string& name) {
    return Variant{name, "echo " + name + " >> " + log, ""};
  };
  MeasurementOptions options = Quick(6);
  const Measurement measurement = Measure({variant("a"), variant("b"), variant("c")}, options, kNever);
  EXPECT_EQ(measurement.names, (std::vector<std::string>{"a", "b", "c", "control"}));
  ASSERT_EQ(measurement.rounds.size(), 6u);
  const std::string text = test::ReadFile(log);
  ASSERT_EQ(text.size(), 6u * 8 * 2);
  std::set<std::string> orders;
  for (size_t round = 0; round < 6; ++round) {
    std::string order;
    for (size_t i = 0; i < 8; ++i) order += text[round * 16 + 2 * i];
    EXPECT_EQ(order, std::string(order.rbegin(), order.rend()));
    EXPECT_EQ(std::count(order.begin(), order.end(), 'a'), 4);  // and the control, the same command
    EXPECT_EQ(std::count(order.begin(), order.end(), 'c'), 2);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 1u);
}

TEST(MeasurementTest, EachRunHasAnEmptyFolderThatIsDeletedAfterIt) {
  test::TemporaryFolder folder;
  const std::string log = folder.path("log");
  Measure({{"a", "echo {dir} >> " + log + "; ls -A {dir} | wc -l >> " + log + "; touch {dir}/x", ""}},
          Quick(2), kNever);
  std::istringstream lines(test::ReadFile(log));
  std::set<std::string> folders;
  std::string path, files;
  while (std::getline(lines, path) && std::getline(lines, files)) {
    EXPECT_EQ(files, "0");
    EXPECT_TRUE(folders.insert(path).second);
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_EQ(folders.size(), 8u);
}

TEST(MeasurementTest, PreparationRunsBeforeEachRunAndIsNotMeasured) {
  test::TemporaryFolder folder;
  const std::string log = folder.path("log");
  const Measurement measurement =
      Measure({{"a", "echo run >> " + log, "sleep 0.1; echo prepare >> " + log}}, Quick(2), kNever);
  EXPECT_LT(measurement.rounds[0].runs[0][0].at("wall_s"), 0.1);
  std::string expected;
  for (int i = 0; i < 8; ++i) expected += "prepare\nrun\n";
  EXPECT_EQ(test::ReadFile(log), expected);
}

TEST(MeasurementTest, LooksAtTheResultMoreSeldomTheMoreRoundsThereAre) {
  std::vector<size_t> looks;
  MeasurementOptions options = Quick(40);
  options.min_rounds = 2;
  const Measurement measurement = Measure({{"a", "true", ""}}, options, [&](const Measurement& so_far) {
    looks.push_back(so_far.rounds.size());
    return false;
  });
  EXPECT_EQ(measurement.rounds.size(), 40u);
  ASSERT_GE(looks.size(), 10u);
  for (size_t i = 1; i < looks.size(); ++i) {
    EXPECT_EQ(looks[i] - looks[i - 1], std::max<size_t>(1, looks[i - 1] / 8)) << "look " << i;
  }
}

TEST(MeasurementTest, MetricsComeFromTheCommandsFile) {
  MeasurementOptions options = Quick(2);
  options.metrics = {{"speed"}, "{dir}/m.jsonl", 0};
  const Measurement measurement =
      Measure({{"a", "echo '{\"speed\": 12.5}' > {dir}/m.jsonl", ""}}, options, kNever);
  EXPECT_EQ(measurement.rounds[1].runs[0][1].at("speed"), 12.5);
}

/// The refusal of a variant whose metric is "x" of that file; empty: none.
std::string RefusalOf(const Variant& variant, const std::string& path) {
  MeasurementOptions options = Quick(2);
  options.metrics = {{"x"}, path, 0};
  return test::MessageOf([&] { Measure({variant}, options, kNever); });
}

TEST(MeasurementTest, AMetricFileThatARunLeavesAsItWasIsNotTakenForItsOwn) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("m"), "{\"x\": 5}\n");
  const std::string message = RefusalOf({"a", "true", ""}, folder.path("m"));
  EXPECT_NE(message.find("was not written by the command"), std::string::npos) << message;
}

TEST(MeasurementTest, AMetricFileThatRunsAddToIsRefused) {
  const test::TemporaryFolder folder;
  const std::string message =
      RefusalOf({"a", "echo '{\"x\": 5}' >> " + folder.path("m"), ""}, folder.path("m"));
  EXPECT_NE(message.find("{dir} in --metric-file"), std::string::npos) << message;
}

TEST(MeasurementTest, RunsMayWriteTheSameMetricFileWhole) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("m");
  EXPECT_EQ(RefusalOf({"a", "echo '{\"x\": 5}' > " + path, ""}, path), "");
  EXPECT_EQ(RefusalOf({"a", "echo '{\"x\": 5}' >> " + path, "echo '{\"x\": 4}' > " + path}, path), "");
}

TEST(MeasurementTest, APreparationThatFailsIsNoFailureToIgnore) {
  MeasurementOptions options = Quick(2);
  options.ignore_failure = true;
  const std::string message = test::MessageOf([&] { Measure({{"a", "true", "exit 9"}}, options, kNever); });
  EXPECT_NE(message.find("its preparation ended with exit status 9"), std::string::npos) << message;
  EXPECT_EQ(message.find("--ignore-failure"), std::string::npos) << message;
}

TEST(MeasurementTest, AFailingCommandIsAnErrorWithItsWords) {
  const std::string message = test::MessageOf([] {
    Measure({{"a", "echo broken pipe dream >&2; exit 9", ""}}, Quick(2), kNever);
  });
  EXPECT_NE(message.find("exit status 9"), std::string::npos) << message;
  EXPECT_NE(message.find("broken pipe dream"), std::string::npos) << message;
  MeasurementOptions options = Quick(2);
  options.ignore_failure = true;
  EXPECT_EQ(Measure({{"a", "exit 9", ""}}, options, kNever).rounds[0].runs[0][0].at("exit_status"), 9);
}

TEST(MeasurementTest, OutputsAreHashedOnceBeforeMeasuring) {
  MeasurementOptions options = Quick(2);
  options.compare_output = true;
  options.warmup_rounds = 1;
  const Measurement measurement = Measure({{"a", "echo 1", ""}, {"b", "echo 2", ""}}, options, kNever);
  ASSERT_EQ(measurement.outputs.size(), 3u);
  EXPECT_EQ(measurement.outputs[0].sha256, measurement.outputs[2].sha256);
  EXPECT_NE(measurement.outputs[0].sha256, measurement.outputs[1].sha256);
  // sha256sum of "1\n"
  EXPECT_EQ(measurement.outputs[0].sha256,
            "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865");
}

TEST(MeasurementTest, WithoutAWarmUpTheFirstRunOfEachIsHashed) {
  MeasurementOptions options = Quick(2);
  options.compare_output = true;
  const Measurement measurement = Measure({{"a", "echo 1", ""}, {"b", "echo 2", ""}}, options, kNever);
  ASSERT_EQ(measurement.outputs.size(), 3u);
  // sha256sum of "1\n"
  EXPECT_EQ(measurement.outputs[2].sha256,
            "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865");
  EXPECT_NE(measurement.outputs[1].sha256, measurement.outputs[2].sha256);
}

TEST(MeasurementTest, OutputsOfAnyLengthAreHashed) {
  MeasurementOptions options = Quick(2);
  options.compare_output = true;
  options.warmup_rounds = 1;
  const Measurement measurement = Measure({{"a", "head -c 300000000 /dev/zero", ""}}, options, kNever);
  ASSERT_EQ(measurement.outputs.size(), 2u);
  EXPECT_EQ(measurement.outputs[0].size_bytes, 300'000'000u);
  EXPECT_EQ(measurement.outputs[0].sha256, measurement.outputs[1].sha256);
}

TEST(MeasurementTest, TheBudgetEndsItAndEnoughEndsItEarlier) {
  MeasurementOptions options = Quick(2);
  options.max_rounds = 1000;
  options.budget_s = 0.3;
  const Measurement spent = Measure({{"a", "sleep 0.01", ""}}, options, kNever);
  EXPECT_TRUE(spent.budget_spent);
  EXPECT_LT(spent.measured_s, 5);
  options.budget_s = 60;
  EXPECT_EQ(Measure({{"a", "true", ""}}, options, [](const Measurement& m) { return m.rounds.size() >= 3; })
                .rounds.size(),
            3u);
}

}  // namespace
}  // namespace trainwright

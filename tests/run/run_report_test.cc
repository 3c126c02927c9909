#include "lib/run/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

ordered_json Begin(int64_t step, int64_t total_steps) {
  return {{"type", "run_begin"},
          {"time_unix_s", 1000.0 + static_cast<double>(step)},
          {"step", step},
          {"run", "/somewhere/runs/llama-1m-001"},
          {"parameters", 1510000},
          {"device", "cpu"},
          {"threads", 1},
          {"plan", {{"total_steps", total_steps}, {"precision", "bf16"}}},
          {"model",
           {{"model_type", "llama"}, {"num_hidden_layers", 5}, {"hidden_size", 128}, {"vocab_size", 4096}}}};
}

/// Makes the record of a step that of another: a new one takes far longer.
void SetStep(int64_t step, double loss_nats, ordered_json* record) {
  (*record)["time_unix_s"] = 1000.0 + static_cast<double>(step);
  (*record)["step"] = step;
  (*record)["tokens_seen"] = step * 2048;
  (*record)["loss_nats"] = loss_nats;
}

ordered_json Step(int64_t step, double loss_nats) {
  ordered_json record = {{"type", "step"},
                         {"time_unix_s", 0},
                         {"step", 0},
                         {"tokens_seen", 0},
                         {"tokens", 2048},
                         {"loss_nats", 0},
                         {"lr", 1e-3},
                         {"step_time_s", 0.5},
                         {"data_wait_s", 0.01},
                         {"tokens_per_s", 4096.0},
                         {"resident_bytes", 300000000},
                         {"max_memory_bytes", 400000000}};
  SetStep(step, loss_nats, &record);
  return record;
}

ordered_json Warning(int64_t step, const std::string& message) {
  return {{"type", "warning"}, {"time_unix_s", 1001.0}, {"step", step}, {"message", message}};
}

ordered_json End(int64_t step, double time_unix_s, int exit_status, const std::string& reason) {
  return {{"type", "run_end"},
          {"time_unix_s", time_unix_s},
          {"step", step},
          {"exit_status", exit_status},
          {"reason", reason}};
}

test::ProcessResult Check(const std::string& svg) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("report.svg");
  test::WriteFile(path, svg);
  return test::RunShell("python3 '" + test::Fixture("report/check_svg.py") + "' '" + path + "'");
}

TEST(RunReport, TellsUtilisationWhereItIsKnown) {
  RunReport report;
  report.Add(Begin(0, 10));
  for (const auto& [step, mfu] :
       std::vector<std::pair<int64_t, ordered_json>>{{1, nullptr}, {2, 0.3}, {3, 0.4}}) {
    EXPECT_EQ(report.Svg().find("MFU") != std::string::npos, step > 2);
    ordered_json record = Step(step, 3);
    record["mfu"] = mfu;
    report.Add(record);
  }
  EXPECT_THAT(report.Svg(), HasSubstr("35.0 % MFU"));
}

TEST(RunReport, TellsWhichOfSeveralRanksTheOthersWaitFor) {
  RunReport alone, report;
  alone.Add(Begin(0, 10));
  alone.Add(Step(1, 3));
  EXPECT_THAT(alone.Svg(), Not(HasSubstr("rank")));
  report.Add(Begin(0, 10));
  for (const auto& [step, rank, share] :
       std::vector<std::tuple<int64_t, int64_t, double>>{{1, 0, 0.1}, {2, 3, 0.2}, {3, 3, 0.6}}) {
    ordered_json record = Step(step, 3);
    record["slowest_rank"] = rank;
    record["rank_wait_share"] = share;
    report.Add(record);
  }
  EXPECT_THAT(report.Svg(), HasSubstr("30.0 % waiting for rank 3"));
  EXPECT_THAT(report.Svg(), HasSubstr("Waiting for other ranks"));
}

TEST(RunReport, TheLossHasAScaleOfEpochsUnderThatOfSteps) {
  RunReport report, without;
  for (RunReport* each : {&report, &without}) each->Add(Begin(0, 10));
  for (int step = 1; step <= 10; ++step) {
    ordered_json record = Step(step, 5);
    without.Add(record);
    record["epoch"] = 0.2 * step;
    report.Add(record);
  }
  EXPECT_THAT(without.Svg(), Not(HasSubstr("epoch")));
  const std::string svg = report.Svg();
  EXPECT_EQ(Check(svg).exit_status, 0) << Check(svg).standard_error;
  EXPECT_THAT(svg, HasSubstr(">epoch<"));
  // In the middle of the panel, which reaches from 78 to 932 px: at step 5.
  EXPECT_THAT(svg, ContainsRegex("\"tick x2\" x=\"505\" [^>]*>1.0<"));
}

TEST(RunReport, IsAReadablePageFromNoRecordToManySteps) {
  RunReport report;
  EXPECT_EQ(Check(report.Svg()).exit_status, 0) << Check(report.Svg()).standard_error;
  report.Add(Begin(0, 100000));
  ordered_json record = Step(0, 0);
  int64_t step = 0;
  for (const int64_t until : {1, 2, 19, 20, 500, 4001, 100000}) {
    while (step < until) {
      ++step;
      const double x = static_cast<double>(step);
      SetStep(step, 3 + 100 / x + 0.3 * std::sin(x * x), &record);
      report.Add(record);
    }
    const std::string svg = report.Svg();
    const test::ProcessResult checked = Check(svg);
    EXPECT_EQ(checked.exit_status, 0) << until << ": " << checked.standard_error;
    EXPECT_LT(svg.size(), 300000u) << until;
  }
}

TEST(RunReport, SaysWhatWasTrainedAndWhatCameOut) {
  RunReport report;
  report.Add(Begin(0, 10));
  for (int step = 1; step <= 10; ++step) {
    ordered_json record = Step(step, 5);
    // Half of the steps take three times as long: 20480 tokens in 10 s, whatever the mean of the rates.
    if (step % 2 == 0) record["step_time_s"] = 1.5, record["tokens_per_s"] = 2048 / 1.5;
    report.Add(record);
  }
  report.Add({{"type", "eval"},
              {"time_unix_s", 1010.0},
              {"step", 10},
              {"loss_nats", 4.5},
              {"perplexity", 90.02},
              {"bits_per_byte", 1.25}});
  report.Add(End(10, 1065, 0, "complete"));
  const std::string svg = report.Svg();
  EXPECT_THAT(svg, HasSubstr(">llama-1m-001<"));
  EXPECT_THAT(svg, Not(HasSubstr("somewhere"))) << "the machine's paths stay out of the picture";
  for (const char* line :
       {">llama, 5 layers of 128, vocabulary of 4,096, 1.51 M parameters; bf16 on cpu with 1 thread<",
        ">10 of 10 steps, 20.5 k tokens in 1 m 05 s, 2,048 tokens/s; complete<",
        ">evaluation at step 10: 4.5000 nats a token, perplexity 90.02, 1.2500 bits per byte<"}) {
    EXPECT_THAT(svg, HasSubstr(line));
  }
}

TEST(RunReport, SaysTheShapeOfAModelByTheNamesOfItsFamily) {
  RunReport report;
  ordered_json begin = Begin(0, 10);
  begin["model"] = {{"model_type", "gpt2"}, {"n_layer", 12}, {"n_embd", 768}, {"vocab_size", 50257}};
  report.Add(begin);
  EXPECT_THAT(report.Svg(), HasSubstr(">gpt2, 12 layers of 768, vocabulary of 50,257, 1.51 M parameters; "));
}

TEST(RunReport, LeavesOutWhatARecordDoesNotSayOfTheModel) {
  RunReport report;
  ordered_json begin = Begin(0, 10);
  begin["model"] = {{"model_type", "odd"}};
  report.Add(begin);
  EXPECT_THAT(report.Svg(), HasSubstr(">odd, 1.51 M parameters; "));
}

TEST(RunReport, TheCostIsThatOfEachProcessAtItsOwnPrice) {
  RunReport report;
  double now_s = 1000;
  int64_t step = 0;
  const auto run_for = [&](double hours, const ordered_json& cost_per_hour) {
    ordered_json begin = Begin(step, 10);
    begin["time_unix_s"] = now_s;
    begin["cost_per_hour"] = cost_per_hour;
    report.Add(begin);
    now_s += 3600 * hours;
    report.Add(End(++step, now_s, 0, "time"));
    now_s += 500;  // until it is resumed
  };
  run_for(5, nullptr);
  EXPECT_FALSE(report.cost()) << "not at the price of a later process either";
  run_for(10, 36);
  EXPECT_DOUBLE_EQ(report.cost().value_or(0), 360);
  run_for(1, 2);
  EXPECT_DOUBLE_EQ(report.cost().value_or(0), 362);
  run_for(3, nullptr);
  EXPECT_DOUBLE_EQ(report.cost().value_or(0), 362);
}

TEST(RunReport, TheCostIsWhatAProcessSaysWhereItSaysIt) {
  RunReport report;
  ordered_json begin = Begin(0, 10);
  begin["cost_per_hour"] = 36;
  report.Add(begin);  // 100 s after the process was started
  ordered_json step = Step(1, 5);
  step["time_unix_s"] = 1200;
  step["cost"] = 3;
  report.Add(step);
  EXPECT_DOUBLE_EQ(report.cost().value_or(0), 3);
  ordered_json warning = Warning(1, "the clock was set back");
  warning["time_unix_s"] = 500;
  report.Add(warning);
  EXPECT_DOUBLE_EQ(report.cost().value_or(0), 3);
  warning["time_unix_s"] = 1300;
  report.Add(warning);
  EXPECT_DOUBLE_EQ(report.cost().value_or(0), 4);
  report.Add({{"type", "checkpoint"}, {"step", 1}, {"time_unix_s", 90000}});  // by who takes the run up
  EXPECT_DOUBLE_EQ(report.cost().value_or(0), 4);
  ordered_json end = End(10, 90000, 0, "complete");  // written again when copies were made, a day later
  end["cost"] = 5;
  report.Add(end);
  EXPECT_DOUBLE_EQ(report.cost().value_or(0), 5);
}

TEST(RunReport, MarksResumptionsWarningsAndErrors) {
  RunReport report;
  report.Add(Begin(0, 10));
  report.Add(Step(1, 5));
  report.Add(Warning(1, "loss is high"));
  report.Add(Begin(1, 10));
  report.Add(Step(2, NAN));
  report.Add(End(2, 1002, 6, "loss is nan"));
  const std::string svg = report.Svg();
  EXPECT_THAT(svg, HasSubstr("<title>step 1: loss is high</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>step 1: resumed</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>step 2: loss is nan</title>"));
  EXPECT_EQ(Check(svg).exit_status, 0) << Check(svg).standard_error;
}

TEST(RunReport, ManyWarningsDoNotFillThePicture) {
  RunReport report;
  report.Add(Begin(0, 100000));
  ordered_json warning = Warning(1, std::string(200, 'w'));
  for (int64_t step = 1; step <= 100000; ++step) {
    warning["step"] = step;
    report.Add(warning);
  }
  EXPECT_LT(report.Svg().size(), 300000u);
}

}  // namespace
}  // namespace trainwright

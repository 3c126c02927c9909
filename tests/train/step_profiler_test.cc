#include "lib/train/step_profiler.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "lib/spec/model_flops.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/support/support.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using test::TemporaryFolder;

/// A device whose kernels are a list, with times from when it was waited for; it says what it was asked.
class ListedSource final : public ActivitySource {
 public:
  ListedSource(std::string* calls, std::vector<DeviceActivity> activities)
      : calls_(calls), activities_(std::move(activities)) {}
  void Start() override { *calls_ += "start "; }
  /// Takes a microsecond, in which its activities can lie.
  void Wait() override {
    *calls_ += "wait ";
    waited_from_ns_ = SteadyNanoseconds();
    while (SteadyNanoseconds() <= waited_from_ns_ + kWaitNs) {
    }
  }
  std::vector<DeviceActivity> Stop() override {
    *calls_ += "stop ";
    for (DeviceActivity& activity : activities_) {
      activity.start_ns += waited_from_ns_;
      activity.end_ns += waited_from_ns_;
    }
    return activities_;
  }
  static constexpr int64_t kWaitNs = 1000;

 private:
  int64_t waited_from_ns_ = 0;
  std::string* calls_;
  std::vector<DeviceActivity> activities_;
};

/// \returns the numbers of the steps that are timed
std::pair<int64_t, int64_t> Timed(int64_t steps, int64_t first_step, int64_t total_steps) {
  const StepProfiler profiler(steps, first_step, total_steps, nullptr);
  return {profiler.begin(), profiler.end() - 1};
}

TEST(StepProfilerTest, TimesTheStepsAfterTheFirstTwoOfTheProcess) {
  EXPECT_EQ(Timed(5, 0, 100), std::pair(3L, 7L));
  EXPECT_EQ(Timed(5, 40, 100), std::pair(43L, 47L));
  EXPECT_EQ(Timed(5, 0, 7), std::pair(3L, 7L));
}

TEST(StepProfilerTest, OfAShortRunTimesTheLastStepsThatThereAre) {
  EXPECT_EQ(Timed(5, 0, 6), std::pair(2L, 6L));
  EXPECT_EQ(Timed(5, 0, 5), std::pair(1L, 5L));
  EXPECT_EQ(Timed(5, 0, 2), std::pair(1L, 2L));
  EXPECT_EQ(Timed(5, 9, 10), std::pair(10L, 10L));
  const StepProfiler none(5, 10, 10, nullptr);
  EXPECT_EQ(none.begin(), none.end());
}

TEST(StepProfilerTest, RecordsADeviceFromTheFirstTimedStepToTheLast) {
  std::string calls;
  StepProfiler profiler(2, 0, 10, std::make_unique<ListedSource>(&calls, std::vector<DeviceActivity>()));
  for (int64_t step = 1; step <= 5; ++step) {
    profiler.BeginStep(step);
    calls += std::to_string(step) + " ";
    EXPECT_EQ(profiler.EndStep(/*last=*/false), step == 4) << step;
  }
  EXPECT_EQ(calls, "1 2 start 3 4 wait stop 5 ");
}

TEST(StepProfilerTest, AStopEndsTheRecordingInTheMiddle) {
  const TemporaryFolder folder;
  std::string calls, problem;
  StepProfiler profiler(5, 0, 10, std::make_unique<ListedSource>(&calls, std::vector<DeviceActivity>()));
  for (int64_t step = 1; step <= 4; ++step) {
    profiler.BeginStep(step);
    EXPECT_EQ(profiler.EndStep(/*last=*/step == 4), step == 4);
  }
  EXPECT_EQ(calls, "start wait stop ");
  const StepProfile profile = profiler.Finish(folder.path("profile/trace.json"), &problem);
  EXPECT_EQ(problem, "");
  EXPECT_EQ(profile.first_step, 3);
  EXPECT_EQ(profile.last_step, 4);
}

TEST(StepProfilerTest, AStopBetweenStepsEndsTheRecordingWithWhatWasTimed) {
  const TemporaryFolder folder;
  std::string calls, problem;
  StepProfiler profiler(5, 0, 10, std::make_unique<ListedSource>(&calls, std::vector<DeviceActivity>()));
  for (int64_t step = 1; step <= 3; ++step) {
    profiler.BeginStep(step);
    EXPECT_FALSE(profiler.EndStep(/*last=*/false));
  }
  EXPECT_TRUE(profiler.timed());
  EXPECT_EQ(profiler.Finish(folder.path("trace.json"), &problem).last_step, 3);
  EXPECT_EQ(calls, "start stop ");
}

TEST(StepProfilerTest, ATraceThatCannotBeWrittenLeavesTheSumsAndNoFile) {
  const TemporaryFolder folder;
  test::WriteFile(folder.path("profile"), "a file where the folder would be");
  StepProfiler profiler(1, 0, 1, nullptr);
  profiler.BeginStep(1);
  EXPECT_TRUE(profiler.EndStep(/*last=*/true));
  std::string problem;
  const StepProfile profile = profiler.Finish(folder.path("profile/trace.json"), &problem);
  EXPECT_THAT(problem, testing::HasSubstr("trace.json"));
  EXPECT_GT(profile.wall_ns, 0);
}

/// Steps of a family's model, of which some are timed.
class ProfiledRun {
 public:
  ProfiledRun(ModelConfig config, int64_t steps, std::unique_ptr<ActivitySource> source = nullptr)
      : config_(std::move(config)),
        set_(test::CountingDocuments()),
        plan_(test::TinyPlan()),
        model_(MakeModel(test::Families(), config_, plan_.precision, at::Device(at::kCPU), plan_.seed)),
        stream_(&set_, plan_.stream_options()),
        trainer_(test::PartsOf(model_.get(), &stream_, plan_), plan_, at::Device(at::kCPU)),
        profiler_(steps, 0, kSteps, std::move(source)) {}

  /// \param profiled whether the profiler is told of the steps
  void Train(bool profiled = true) {
    while (trainer_.step() < kSteps) {
      const int64_t step = trainer_.step() + 1;
      if (profiled) profiler_.BeginStep(step);
      const StepReport report = trainer_.Step();
      if (profiled) profiler_.EndStep(step == kSteps);
      if (step < profiler_.begin() || step >= profiler_.end()) continue;
      counts_.tokens += report.tokens;
      counts_.labels += report.labels;
    }
  }
  StepProfile Finish(const std::string& path) {
    std::string problem;
    StepProfile profile = profiler_.Finish(path, &problem);
    EXPECT_EQ(problem, "");
    return profile;
  }
  const TokenCounts& counts() const { return counts_; }  ///< of the timed steps; without pairs
  const ModelConfig& config() const { return config_; }
  at::Tensor weights() { return model_->parameters().values(); }

 private:
  static constexpr int64_t kSteps = 5;
  ModelConfig config_;
  test::MemoryShardSet set_;
  TrainPlan plan_;
  std::unique_ptr<LanguageModel> model_;
  SampleStream stream_;
  Trainer trainer_;
  StepProfiler profiler_;
  TokenCounts counts_;
};

std::set<std::string> PartsWithTime(const StepProfile& profile) {
  std::set<std::string> parts;
  for (size_t part = 0; part < kProfileParts; ++part) {
    if (profile.part_ns[part] > 0) parts.insert(kProfilePartNames[part]);
  }
  return parts;
}

int64_t OperationsOf(const StepProfile& profile, ProfilePart part) {
  int64_t operations = 0;
  for (const OperatorTime& each : profile.operators) operations += each.part == part ? each.operations : 0;
  return operations;
}

int64_t CallsOf(const StepProfile& profile, const std::string& name) {
  const auto found = std::find_if(profile.operators.begin(), profile.operators.end(),
                                  [&](const OperatorTime& each) { return each.name == name; });
  return found == profile.operators.end() ? 0 : found->calls;
}

ModelConfig SmallTen() {
  TenFields fields;
  fields.eigenstates = 16;
  fields.scan_chunk = 8;
  return test::TenOf(fields);
}

struct Family {
  const char* name;
  ModelConfig config;
  std::set<std::string> also;  ///< parts beside those that all have
};

std::vector<Family> Families() {
  return {{"llama", test::SmallLlama(), {"attention", "position"}},
          {"gpt2", test::SmallGpt2(), {"attention"}},
          {"ten", SmallTen(), {"scan"}}};
}

class ProfiledFamilyTest : public testing::TestWithParam<size_t> {
 protected:
  const Family family_ = Families()[GetParam()];
  TemporaryFolder folder_;
};

TEST_P(ProfiledFamilyTest, AllPartsOfAStepTakeTimeAndAddUpToIt) {
  ProfiledRun run(family_.config, 2);
  run.Train();
  const StepProfile profile = run.Finish(folder_.path("trace.json"));
  std::set<std::string> parts = {"gemm", "norm",  "activation", "embedding", "head", "optimizer",
                                 "clip", "input", "upload",     "exchange",  "other"};
  parts.insert(family_.also.begin(), family_.also.end());
  EXPECT_EQ(PartsWithTime(profile), parts);
  EXPECT_EQ(std::accumulate(profile.part_ns.begin(), profile.part_ns.end(), int64_t{0}), profile.wall_ns);
  EXPECT_EQ(CallsOf(profile, "step"), 2);
  EXPECT_EQ(profile.first_step, 3);
  EXPECT_EQ(profile.last_step, 4);
}

TEST_P(ProfiledFamilyTest, EventsOfTheTraceNestInTheirStep) {
  ProfiledRun run(family_.config, 2);
  run.Train();
  run.Finish(folder_.path("profile/trace.json"));
  const auto trace = nlohmann::json::parse(test::ReadFile(folder_.path("profile/trace.json")));
  struct Span {
    double start_us, end_us;
  };
  std::vector<Span> open;
  int64_t steps = 0, events = 0;
  double before_us = 0;
  constexpr double kRounding = 1e-3;  // times have nanoseconds
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double start_us = event["ts"], end_us = start_us + event["dur"].get<double>();
    EXPECT_GE(start_us, before_us) << "in the order in which they began";
    before_us = start_us;
    while (!open.empty() && open.back().end_us <= start_us + kRounding / 2 && end_us > open.back().end_us) {
      open.pop_back();
    }
    if (open.empty()) {
      EXPECT_EQ(event["name"], "step");
      EXPECT_EQ(event["args"]["step"], 3 + steps);
      ++steps;
    } else {
      EXPECT_LE(end_us, open.back().end_us + kRounding) << event;
    }
    open.push_back({start_us, end_us});
    ++events;
  }
  EXPECT_EQ(steps, 2);
  EXPECT_GT(events, 100);
}

TEST_P(ProfiledFamilyTest, WeightsAreTheSameBitsWithAndWithoutAProfile) {
  ProfiledRun profiled(family_.config, 3), plain(family_.config, 3);
  profiled.Train();
  plain.Train(/*profiled=*/false);
  EXPECT_TRUE(at::equal(profiled.weights(), plain.weights()));
}

INSTANTIATE_TEST_SUITE_P(Families, ProfiledFamilyTest, testing::Range(size_t{0}, Families().size()),
                         [](const auto& each) { return Families()[each.param].name; });

// The operations are those of the formula by which mfu is told, which counts by shapes.
TEST(StepProfilerTest, CountsTheOperationsOfAllMatrixProductsOfALlamaStep) {
  const TemporaryFolder folder;
  ProfiledRun run(test::SmallLlama(), 2);
  run.Train();
  const StepProfile profile = run.Finish(folder.path("trace.json"));
  const StepFlops flops = CountStepFlops(run.config(), {});
  EXPECT_EQ(static_cast<double>(OperationsOf(profile, ProfilePart::kGemm)), flops.Of(run.counts()));
}

// Counts, not times: of a model with wide layers products do by far most of the work.
TEST(StepProfilerTest, OfAModelWithWideLayersProductsHaveMostOperations) {
  const TemporaryFolder folder;
  ModelConfig wide = test::SmallLlama();
  wide.intermediate_size = 4096;
  ProfiledRun run(wide, 1);
  run.Train();
  const StepProfile profile = run.Finish(folder.path("trace.json"));
  const double elements_of_other_work =
      // Norms, activations and residuals read and write each activation a few dozen times at most.
      64.0 * static_cast<double>(run.counts().tokens * wide.num_layers * (wide.hidden_size + 4096));
  EXPECT_GT(static_cast<double>(OperationsOf(profile, ProfilePart::kGemm)), 5 * elements_of_other_work);
  // Of each micro-batch and layer: qkv, out, gate and up, down.
  EXPECT_EQ(CallsOf(profile, "linear"), 2 * 3 * 4);
  EXPECT_EQ(CallsOf(profile, "linear_backward"), 2 * 3 * 4);
}

TEST(StepProfilerTest, JoinsTheDevicesKernelsIntoTheSameTrace) {
  const TemporaryFolder folder;
  std::string calls;
  const std::vector<DeviceActivity> activities = {
      {.name = "fmha_cutlassF", .stream = 7, .start_ns = 600, .end_ns = 800},
      {.name = "ampere_sgemm_128x64_nn", .stream = 7, .start_ns = 0, .end_ns = 600},
      // Behind the steps.
      {.name = "ncclDevKernel", .stream = 7, .start_ns = 1'000'000'000'000, .end_ns = 1'000'000'000'100}};
  ProfiledRun run(test::SmallLlama(), 2, std::make_unique<ListedSource>(&calls, activities));
  run.Train();
  const StepProfile profile = run.Finish(folder.path("trace.json"));
  ASSERT_TRUE(profile.device.has_value());
  EXPECT_EQ(profile.device->kernels.size(), 2u);
  EXPECT_EQ(profile.device->part_ns[static_cast<size_t>(ProfilePart::kGemm)], 600);
  EXPECT_EQ(profile.device->part_ns[static_cast<size_t>(ProfilePart::kAttention)], 200);
  EXPECT_EQ(profile.device->busy_ns, 800);
  const auto trace = nlohmann::json::parse(test::ReadFile(folder.path("trace.json")));
  std::map<int, int64_t> events;
  for (const nlohmann::json& event : trace["traceEvents"]) events[event["pid"]] += event["ph"] == "X" ? 1 : 0;
  EXPECT_GT(events[1], 100);
  EXPECT_EQ(events[1001], 2);
}

}  // namespace
}  // namespace trainwright

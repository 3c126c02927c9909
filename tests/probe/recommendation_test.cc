#include "lib/probe/recommendation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/device/gpu_limits.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/nn/precision_limits.h"
#include "lib/nn/precision_option.h"
#include "tests/machine/fixture_devices.h"

namespace trainwright {
namespace {

using test::FixtureHost;
using test::Gemm;
using test::SteadyRate;
using test::Working;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

RecommendationEvidence On(const GpuInfo& gpu) {
  RecommendationEvidence evidence{.host = FixtureHost({"avx2", "avx512_bf16"}),
                                  .verdict = JudgeGpus(Working({gpu})),
                                  .gpu = gpu,
                                  .measured = {Gemm("cuda:0", "bf16", 700e12)},
                                  .batch = {},
                                  .model = {.name = "llama-125m", .head_dim = 64, .sequence_tokens = 1024}};
  return evidence;
}

/// Usual for a processor with such instructions.
CpuGemms KernelsWith(const std::vector<std::string>& isa) {
  const auto has = [&](const char* name) { return std::find(isa.begin(), isa.end(), name) != isa.end(); };
  if (has("avx512_bf16")) return {CpuGemms::Fp32::kBlocks, CpuGemms::Bf16::kInstructions};
  if (has("avx512f")) return {CpuGemms::Fp32::kBlocks, CpuGemms::Bf16::kWidened};
  return {};
}

RecommendationEvidence OnCpu(std::vector<std::string> isa, std::optional<double> bf16_gain = 2) {
  const CpuGemms gemms = KernelsWith(isa);
  return {.host = FixtureHost(std::move(isa)),
          .verdict = JudgeGpus({}),
          .gpu = {},
          .measured = {Gemm("cpu", "fp32", 200e9), Gemm("cpu", "bf16", bf16_gain.value_or(1) * 200e9)},
          .batch = {},
          .model = {.name = "llama-1m", .head_dim = 32, .sequence_tokens = 256},
          .gemms = gemms,
          .bf16_gain = bf16_gain};
}

BatchSearch Searched(std::vector<std::pair<int64_t, double>> speeds, BatchStop stop, double spread = 0.02) {
  BatchSearch search{.points = {}, .stop = stop, .chosen = {}};
  for (const auto& [batch, speed] : speeds) {
    search.points.push_back(
        {.batch = batch, .tokens = SteadyRate(speed, spread), .activation_bytes = batch << 20});
  }
  search.chosen = SmallestFastBatch(search.points, stop);
  return search;
}

/// The options as text; what is undecided is "?".
std::map<std::string, std::string> Table(const Recommendation& recommendation) {
  std::map<std::string, std::string> table;
  for (const Choice& choice : recommendation.choices) {
    EXPECT_NE(choice.reason, "") << choice.option;
    table[choice.option] = choice.value.is_string() ? choice.value.get<std::string>() : choice.value.dump();
  }
  for (const Undecided& open : recommendation.undecided) {
    EXPECT_NE(open.reason, "") << open.option;
    EXPECT_EQ(table.count(open.option), 0u) << open.option << " is decided and undecided";
    table[open.option] = "?";
  }
  return table;
}

// The decision table of the guides: what a GPU's generation can do.
TEST(AdviseGpuTest, DecidesByCapability) {
  const auto advice = [](int major, int minor) {
    const GpuAdvice given = AdviseGpu({major, minor});
    return PrecisionName(given.precision) + " " + AttentionBackendName(given.attention);
  };
  EXPECT_EQ(advice(6, 0), "fp32 math");
  EXPECT_EQ(advice(6, 1), "fp32 math");
  EXPECT_EQ(advice(7, 0), "fp16 efficient");
  EXPECT_EQ(advice(7, 5), "fp16 efficient");
  EXPECT_EQ(advice(8, 0), "bf16 flash");
  EXPECT_EQ(advice(8, 6), "bf16 flash");
  EXPECT_EQ(advice(8, 9), "bf16 flash");
  EXPECT_EQ(advice(9, 0), "bf16 flash");
}

TEST(RecommendTest, GpusWithBf16) {
  for (const GpuInfo& gpu : {test::A100(), test::H100(), test::H200()}) {
    const auto table = Table(Recommend(On(gpu)));
    const std::map<std::string, std::string> expected = {
        {"device", "cuda"},       {"mixed-precision", "bf16"}, {"batch", "16"},  {"accum", "1"},
        {"attn-backend", "auto"}, {"threads", "16"},           {"workers", "4"}, {"pin", "on"}};
    EXPECT_EQ(table, expected) << *gpu.name;
  }
}

TEST(RecommendTest, GpusOlderThanTheKernelsAreAdvisedInANoteAndTheCpuIsUsed) {
  RecommendationEvidence evidence = On(test::V100());
  evidence.measured = OnCpu({}).measured;
  const Recommendation recommendation = Recommend(evidence);
  const auto table = Table(recommendation);
  EXPECT_EQ(table.at("device"), "cpu");
  EXPECT_EQ(table.at("attn-backend"), "auto");
  EXPECT_THAT(recommendation.notes,
              Contains(AllOf(HasSubstr("mixed-precision fp16"), HasSubstr("attn-backend efficient"),
                             HasSubstr("no kernels"))));
}

TEST(RecommendTest, TuringTrainsInFp16WithMemoryEfficientAttention) {
  const auto table = Table(Recommend(On(test::Rtx2080Ti())));
  EXPECT_EQ(table.at("device"), "cuda");
  EXPECT_EQ(table.at("mixed-precision"), "fp16");
  EXPECT_EQ(table.at("attn-backend"), "efficient");
}

TEST(RecommendTest, NamesDecideNothing) {
  GpuInfo disguised = test::H200();
  disguised.name = "Tesla V100-SXM2-16GB";
  const auto table = Table(Recommend(On(disguised)));
  EXPECT_EQ(table.at("mixed-precision"), "bf16");
  EXPECT_EQ(table.at("attn-backend"), "auto");
  disguised = test::V100();
  disguised.name = "NVIDIA H200";
  EXPECT_EQ(Table(Recommend(On(disguised))).at("device"), "cpu");
}

TEST(RecommendTest, HeadsThatFlashRefusesGetTheNextBackend) {
  RecommendationEvidence evidence = On(test::H100());
  evidence.model.head_dim = 320;  // flash takes up to 256
  EXPECT_EQ(Table(Recommend(evidence)).at("attn-backend"), "efficient");
  evidence.model.head_dim = 36;  // not a multiple of 8
  EXPECT_EQ(Table(Recommend(evidence)).at("attn-backend"), "math");
}

TEST(RecommendTest, CpuPrecisionFollowsInstructionsAndMeasuredGain) {
  const auto precision = [](std::vector<std::string> isa, double gain) {
    return Table(Recommend(OnCpu(std::move(isa), gain))).at("mixed-precision");
  };
  EXPECT_EQ(precision({"avx2", "f16c"}, 2), "no");  // no instruction, whatever was measured
  EXPECT_EQ(precision({"avx2", "avx512f"}, 1), "no");
  EXPECT_EQ(precision({"avx2", "avx512f"}, 2), "bf16");  // as train takes it, which computes by it as fast
  EXPECT_EQ(precision({"avx512f", "avx512_bf16"}, 2), "bf16");
  EXPECT_EQ(precision({"avx512f", "avx512_bf16"}, 1.05), "no");  // not worth the rounding
  EXPECT_EQ(precision({"avx512f", "avx512_bf16", "amx_tile", "amx_bf16"}, 6), "bf16");
  EXPECT_THAT(Recommend(OnCpu({"avx512_bf16", "amx_bf16"})).Find("mixed-precision")->reason,
              HasSubstr("amx_bf16"));
}

TEST(RecommendTest, ThePrecisionOfACpuIsThatOfAutoWhateverWasMeasured) {
  const CpuGemms before = ChosenCpuGemms();
  for (const char* isa : {"avx2", "avx512f", "avx512_bf16"}) {
    RecommendationEvidence evidence = OnCpu({isa});
    if (!WhyNotCpuGemms(evidence.gemms).empty()) continue;  // of another processor
    for (const std::optional<double> gain :
         std::vector<std::optional<double>>{{}, 0.5, 0.89, 0.95, 1, 1.05, 1.1, 1.72, 6}) {
      evidence.bf16_gain = gain;
      ApplyCpuGemms(evidence.gemms, gain);
      const Precision taken = ParsePrecision("auto", at::Device(at::kCPU));
      EXPECT_EQ(RecommendPrecision(evidence), taken) << isa << " " << gain.value_or(0);
      EXPECT_EQ(Table(Recommend(evidence)).at("mixed-precision"),
                taken == Precision::kFp32 ? "no" : PrecisionName(taken));
      EXPECT_TRUE(taken == Precision::kFp32 || gain.value_or(2) >= 1) << "bf16 is never slower";
    }
  }
  ApplyCpuGemms(before);
}

TEST(RecommendTest, ThePrecisionOfAGpuIsThatOfAuto) {
  for (const GpuInfo& gpu : {test::Rtx2080Ti(), test::A100(), test::H100(), test::H200()}) {
    const GpuLimits limits =
        LimitsOf({.capability_major = gpu.capability->major, .capability_minor = gpu.capability->minor});
    EXPECT_EQ(RecommendPrecision(On(gpu)), ParsePrecision("auto", HasFastProducts(Precision::kBf16, limits),
                                                          HasFastProducts(Precision::kFp16, limits)))
        << *gpu.name;
  }
}

TEST(RecommendTest, WhatTrainTimesIsLeftToIt) {
  RecommendationEvidence evidence = On(test::H100());
  const Recommendation timed = Recommend(evidence);
  EXPECT_EQ(Table(timed).at("attn-backend"), "auto");
  EXPECT_THAT(timed.Find("attn-backend")->reason,
              AllOf(HasSubstr("flash and cudnn"), HasSubstr("train times both")));
  evidence.model.head_dim = 192;  // cudnn takes up to 128
  EXPECT_EQ(Table(Recommend(evidence)).at("attn-backend"), "flash");
}

TEST(RecommendTest, ACpuGetsNoOptionsOfAGpu) {
  const auto table = Table(Recommend(OnCpu({"avx512_bf16"})));
  const std::map<std::string, std::string> expected = {
      {"device", "cpu"},        {"mixed-precision", "bf16"}, {"batch", "8"},   {"accum", "1"},
      {"attn-backend", "auto"}, {"threads", "16"},           {"workers", "1"}, {"pin", "off"},
      {"peak-tflops", "0.408"}};
  EXPECT_EQ(table, expected);
}

TEST(RecommendTest, RefusesWhatHangsOnAMeasurementThatSpreads) {
  RecommendationEvidence evidence = OnCpu({"avx512_bf16"});
  evidence.measured[1].rate.spread = 0.21;
  evidence.batch = Searched({{1, 100}, {2, 200}, {4, 200}, {8, 200}}, BatchStop::kLevelled, 0.3);
  const Recommendation recommendation = Recommend(evidence);
  const auto table = Table(recommendation);
  EXPECT_EQ(table.at("mixed-precision"), "?");
  EXPECT_EQ(table.at("batch"), "?");
  EXPECT_EQ(table.at("accum"), "?");
  EXPECT_EQ(table.at("threads"), "16");  // hangs on none
  const std::string yaml = FormatRecommendationYaml(recommendation);
  EXPECT_THAT(yaml, HasSubstr("# mixed-precision is left to train: the rate of bf16 GEMMs spreads by 21 %"));
  EXPECT_THAT(yaml, Not(HasSubstr("\nbatch:")));
}

TEST(RecommendTest, ASpreadThatIsUnknownIsNoGround) {
  RecommendationEvidence evidence = OnCpu({"avx512_bf16"});
  evidence.measured[0].rate.spread.reset();
  EXPECT_EQ(Table(Recommend(evidence)).at("mixed-precision"), "?");
}

TEST(RecommendTest, TheSpreadOfBf16DoesNotMatterToACpuWithoutIt) {
  RecommendationEvidence evidence = OnCpu({"avx2"});
  evidence.measured[1].rate.spread = 0.9;
  EXPECT_EQ(Table(Recommend(evidence)).at("mixed-precision"), "no");
}

TEST(RecommendTest, TakesTheMeasuredBatchAndFillsAStepToSixteenSamples) {
  RecommendationEvidence evidence = On(test::A100());
  evidence.batch =
      Searched({{1, 100}, {2, 190}, {4, 350}, {8, 480}, {16, 490}, {32, 492}}, BatchStop::kLevelled);
  auto table = Table(Recommend(evidence));
  EXPECT_EQ(table.at("batch"), "8");  // 480 is within 3 % of 492
  EXPECT_EQ(table.at("accum"), "2");
  evidence.batch = Searched({{1, 100}, {2, 190}, {4, 350}}, BatchStop::kMemory);
  table = Table(Recommend(evidence));
  EXPECT_EQ(table.at("batch"), "4");  // memory ended the search: nothing larger can be had
  EXPECT_EQ(table.at("accum"), "4");
}

TEST(RecommendTest, WhatWasNotMeasuredIsOneMicroBatchOfTheTokensThatSuitTheDevice) {
  const auto advised = [](RecommendationEvidence evidence, int64_t sequence_tokens) {
    evidence.model.sequence_tokens = sequence_tokens;
    const auto table = Table(Recommend(evidence));
    return table.at("batch") + " x " + table.at("accum");
  };
  EXPECT_EQ(advised(OnCpu({"avx2"}), 64), "32 x 1");
  EXPECT_EQ(advised(OnCpu({"avx2"}), 768), "2 x 1");
  EXPECT_EQ(advised(OnCpu({"avx2"}), 2048), "1 x 1");
  EXPECT_EQ(advised(OnCpu({"avx2"}), 8192), "1 x 1");
  EXPECT_EQ(advised(On(test::H100()), 2048), "8 x 1");
  EXPECT_EQ(advised(On(test::H100()), 32768), "1 x 1");
}

TEST(RecommendTest, WhatWasNotMeasuredAndDoesNotFitAGpuIsDividedAsTrainDividesIt) {
  RecommendationEvidence evidence = On(test::A100());
  evidence.model.fitting_step = {.batch = 4, .accum = 4};
  auto table = Table(Recommend(evidence));
  EXPECT_EQ(table.at("batch"), "4");
  EXPECT_EQ(table.at("accum"), "4");
  evidence.batch = Searched({{1, 100}, {2, 190}, {4, 191}, {8, 192}}, BatchStop::kLevelled);
  table = Table(Recommend(evidence));
  EXPECT_EQ(table.at("batch"), "2") << "what was measured counts";
  EXPECT_EQ(table.at("accum"), "8");
}

TEST(RecommendTest, SaysThatOffloadAndDivisionAreNotNeededWhereTheModelFits) {
  const auto says_so = [](const RecommendationEvidence& evidence) {
    const Recommendation recommendation = Recommend(evidence);
    return std::any_of(recommendation.notes.begin(), recommendation.notes.end(), [](const std::string& note) {
      return note.starts_with("not needed for ") && note.find("offload, and zero") != std::string::npos;
    });
  };
  RecommendationEvidence evidence = On(test::A100());
  EXPECT_FALSE(says_so(evidence)) << "nothing was measured";
  evidence.batch = Searched({{1, 100}, {2, 190}, {4, 191}, {8, 192}}, BatchStop::kLevelled);
  EXPECT_TRUE(says_so(evidence));
  evidence.batch = Searched({}, BatchStop::kMemory);
  EXPECT_FALSE(says_so(evidence)) << "not one sample fits";
}

TEST(RecommendTest, ASearchThatTimeEndedOnTheRiseCountsOnceItReachesTheRuleOfThumb) {
  RecommendationEvidence evidence = OnCpu({"avx2"});  // 2048 tokens are a batch of 8
  evidence.batch = Searched({{1, 100}, {2, 190}, {4, 300}}, BatchStop::kTime);
  EXPECT_THAT(Recommend(evidence).Find("batch")->reason, HasSubstr("not measured far enough"));
  evidence.batch = Searched({{1, 100}, {2, 190}, {4, 300}, {8, 400}, {16, 450}}, BatchStop::kTime);
  const Recommendation recommendation = Recommend(evidence);
  EXPECT_EQ(Table(recommendation).at("batch"), "16");
  EXPECT_THAT(recommendation.Find("batch")->reason, HasSubstr("the largest in the time that was given"));
}

TEST(RecommendTest, ASearchThatTimeEndedWhileItRoseTellsNoBatch) {
  RecommendationEvidence evidence = On(test::A100());
  evidence.batch = Searched({{1, 100}, {2, 190}}, BatchStop::kTime);
  const Recommendation recommendation = Recommend(evidence);
  EXPECT_EQ(Table(recommendation).at("batch"), "16");  // the rule of thumb
  EXPECT_THAT(recommendation.Find("batch")->reason, HasSubstr("not measured far enough"));
}

TEST(RecommendTest, AModelThatDoesNotFitIsSaidSoWithoutAFlagThatTrainLacks) {
  RecommendationEvidence evidence = On(test::A100());
  evidence.batch = Searched({}, BatchStop::kMemory);
  evidence.model.memory_advice = "activations, 3.1 GB: --checkpoint-activations full";
  const Recommendation recommendation = Recommend(evidence);
  EXPECT_EQ(Table(recommendation).at("batch"), "?");
  EXPECT_THAT(recommendation.notes,
              Contains("memory, in this order: activations, 3.1 GB: --checkpoint-activations full"));
}

TEST(RecommendTest, MeasuresThePeakOnlyWhereNobodyPublishesIt) {
  RecommendationEvidence evidence = On(test::H200());
  EXPECT_EQ(Recommend(evidence).Find("peak-tflops"), nullptr);
  evidence.gpu->name = "NVIDIA Unheard Of";
  EXPECT_EQ(Table(Recommend(evidence)).at("peak-tflops"), "714.0");  // best of 700, 2 % above
}

TEST(RecommendTest, AControlGroupsTimeBoundsThreadsAndWorkers) {
  RecommendationEvidence evidence = On(test::A100());
  evidence.host.cgroup.cpus = 4.5;
  const auto table = Table(Recommend(evidence));
  EXPECT_EQ(table.at("threads"), "4");
  EXPECT_EQ(table.at("workers"), "2");
}

TEST(RecommendTest, NotesThrottlingAndForeignProcesses) {
  RecommendationEvidence evidence = On(test::A100());
  evidence.gpu->throttle_reasons = {{"idle", "hw_thermal"}};
  evidence.gpu->processes = {{GpuProcess{.pid = 4242, .name = "python3", .memory_bytes = 1 << 30}}};
  const std::vector<std::string> notes = Recommend(evidence).notes;
  EXPECT_THAT(notes, Contains(HasSubstr("hw_thermal")));
  EXPECT_THAT(notes, Not(Contains(HasSubstr("idle"))));
  EXPECT_THAT(notes, Contains("process 4242 (python3) is on the GPU with 1.00 GiB"));
}

TEST(RecommendTest, TheModelIsPartOfTheFragmentWhenTheUserNamedIt) {
  RecommendationEvidence evidence = On(test::A100());
  EXPECT_EQ(Table(Recommend(evidence)).count("model"), 0u);
  evidence.model.named_by_user = true;
  EXPECT_EQ(Table(Recommend(evidence)).at("model"), "llama-125m");
  EXPECT_EQ(Table(Recommend(evidence)).at("seq"), "1024");
}

TEST(RecommendTest, TheLengthIsPartOfTheFragmentWhenTheUserNamedIt) {
  RecommendationEvidence evidence = On(test::A100());
  EXPECT_EQ(Table(Recommend(evidence)).count("seq"), 0u);
  evidence.model.sequence_named_by_user = true;
  EXPECT_EQ(Table(Recommend(evidence)).at("seq"), "1024");
  EXPECT_EQ(Table(Recommend(evidence)).count("model"), 0u);
}

TEST(FormatRecommendationYamlTest, AReasonOfSeveralLinesStaysAComment) {
  Recommendation recommendation;
  recommendation.choices.push_back({"batch", 4, "first\nlr: 9"});
  EXPECT_EQ(FormatRecommendationYaml(recommendation),
            "# For train --config, by gpu-probe.\n# first lr: 9\nbatch: 4\n");
}

TEST(FormatRecommendationYamlTest, TextThatIsNotUtf8IsReplaced) {
  Recommendation recommendation;
  recommendation.choices.push_back({"model",
                                    "a\xff"
                                    "b.json",
                                    "as asked"});
  EXPECT_EQ(FormatRecommendationYaml(recommendation),
            "# For train --config, by gpu-probe.\n# as asked\nmodel: \"a\xEF\xBF\xBD"
            "b.json\"\n");
}

}  // namespace
}  // namespace trainwright

#include "lib/probe/cpu_gemm_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/version.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/probe/kernel_sources.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using Fp32 = CpuGemms::Fp32;
using Bf16 = CpuGemms::Bf16;
using testing::HasSubstr;

CpuGemmRates Rates(double blocks, double library, double instructions, double widened) {
  return {{"fp32=blocks", blocks},
          {"fp32=library", library},
          {"bf16=instructions", instructions},
          {"bf16=widened", widened}};
}

TEST(FastestCpuGemmsTest, AreTheUsualOnesUnlessOthersAreFasterByMoreThanNoise) {
  const CpuGemms usual = {Fp32::kBlocks, Bf16::kInstructions};
  EXPECT_EQ(FastestCpuGemms(usual, Rates(100, 114, 200, 229)), usual);
  EXPECT_EQ(FastestCpuGemms(usual, Rates(100, 116, 200, 231)), (CpuGemms{Fp32::kLibrary, Bf16::kWidened}));
  EXPECT_EQ(FastestCpuGemms({Fp32::kLibrary, Bf16::kWidened}, Rates(100, 50, 55, 98)),
            (CpuGemms{Fp32::kBlocks, Bf16::kWidened}));
}

TEST(FastestCpuGemmsTest, EmulateBf16WhereItsOwnKernelsAreSlowerThanFp32) {
  const CpuGemms usual = {Fp32::kBlocks, Bf16::kWidened};
  EXPECT_EQ(FastestCpuGemms(usual, Rates(100, 50, 55, 89)).bf16, Bf16::kEmulated);
  EXPECT_EQ(FastestCpuGemms(usual, Rates(100, 50, 55, 91)).bf16, Bf16::kWidened);
  EXPECT_EQ(FastestCpuGemms(usual, Rates(100, 50, 150, 91)).bf16, Bf16::kInstructions);
  EXPECT_EQ(FastestCpuGemms({Fp32::kBlocks, Bf16::kInstructions}, Rates(100, 50, 92, 105)).bf16,
            Bf16::kWidened);
}

TEST(FastestCpuGemmsTest, DoNotTakeWhatWasNotMeasured) {
  EXPECT_EQ(FastestCpuGemms({}, {{"fp32=library", 50}}), CpuGemms{});
  EXPECT_EQ(FastestCpuGemms({Fp32::kBlocks, Bf16::kWidened}, {}), (CpuGemms{Fp32::kBlocks, Bf16::kWidened}));
}

TEST(GainOfBf16Test, IsThatOfTheKernelsWhichCompute) {
  const CpuGemmRates rates = Rates(100, 50, 200, 101);
  EXPECT_EQ(GainOfBf16({Fp32::kBlocks, Bf16::kInstructions}, rates), 2);
  EXPECT_EQ(GainOfBf16({Fp32::kBlocks, Bf16::kWidened}, rates), 1.01);
  EXPECT_EQ(GainOfBf16({Fp32::kLibrary, Bf16::kInstructions}, rates), 4);
  EXPECT_EQ(GainOfBf16({Fp32::kBlocks, Bf16::kEmulated}, rates), std::nullopt) << "it has no rate";
  EXPECT_EQ(GainOfBf16({Fp32::kBlocks, Bf16::kInstructions}, {}), std::nullopt);
}

TEST(MeasureCpuGemmsTest, MeasuresWhatTheProcessorHas) {
  const CpuGemmRates rates = MeasureCpuGemms({.time_s = 0, .least_rounds = 1});
  EXPECT_TRUE(rates.contains("fp32=library"));
  EXPECT_EQ(rates.contains("fp32=blocks"), WhyNotCpuGemms({.fp32 = Fp32::kBlocks}).empty());
  EXPECT_EQ(rates.contains("bf16=instructions"), WhyNotCpuGemms({.bf16 = Bf16::kInstructions}).empty());
  for (const auto& [name, rate] : rates) {
    EXPECT_GT(rate, 1e7) << name;
    EXPECT_LT(rate, 1e14) << name;
    EXPECT_NO_THROW(ParseCpuGemms(name, "", {})) << name;
  }
}

// Programs of one build share what was measured; other kernels are measured anew, whatever the version.
TEST(ThisCpuGemmMachineTest, IsNamedByTheSourcesOfItsKernels) {
  EXPECT_EQ(ThisCpuGemmMachine(1).build, TRAINWRIGHT_BUILD " kernels " + std::string(kKernelSources));
  EXPECT_EQ(kKernelSources.size(), 16u);
  EXPECT_EQ(kKernelSources.find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

class CpuGemmChoiceTest : public testing::Test {
 protected:
  static CpuGemmMachine Machine() {
    return {.cpu = "a processor", .capability = "AVX9", .threads = 2, .build = "1", .torch = "2"};
  }
  /// On a machine that was measured to have other kernels fastest than the usual.
  CpuGemmRequest Request(const std::string& kernels = "auto") {
    return {.kernels = kernels,
            .machine = [] { return Machine(); },
            .cache_path = path_,
            .measure =
                [this] {
                  ++measured_;
                  return Rates(1, 10, 1, 1);
                }};
  }
  /// Of a processor with a choice; else every choice is the usual one.
  static bool HasChoice() { return WhyNotCpuGemms({.fp32 = Fp32::kBlocks}).empty(); }

  test::TemporaryFolder folder_;
  std::string path_ = folder_.path("new/kernels.json");
  int measured_ = 0;
};

TEST_F(CpuGemmChoiceTest, AutoMeasuresOnceAMachine) {
  if (!HasChoice()) GTEST_SKIP() << "no AVX-512";
  const CpuGemms wanted = {Fp32::kLibrary, Bf16::kEmulated};
  testing::internal::CaptureStderr();
  EXPECT_EQ(ChooseCpuGemms(Request()), wanted);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("kernels: measured GEMMs of 2 threads, once for this machine"));
  EXPECT_EQ(ChooseCpuGemms(Request()), wanted);
  EXPECT_EQ(measured_, 1);
}

TEST_F(CpuGemmChoiceTest, AnotherProcessorBuildTorchOrNumberOfThreadsIsAnotherMachine) {
  if (!HasChoice()) GTEST_SKIP() << "no AVX-512";
  ChooseCpuGemms(Request());
  const auto with = [&](auto change) {
    CpuGemmMachine machine = Machine();
    change(&machine);
    CpuGemmRequest request = Request();
    request.machine = [&] { return machine; };
    ChooseCpuGemms(request);
  };
  with([](CpuGemmMachine* machine) { machine->cpu = "another"; });
  with([](CpuGemmMachine* machine) { machine->capability = "AVX10"; });
  with([](CpuGemmMachine* machine) { machine->threads = 1; });
  with([](CpuGemmMachine* machine) { machine->build = "1.1"; });
  with([](CpuGemmMachine* machine) { machine->torch = "2.1"; });
  EXPECT_EQ(measured_, 6);
  ChooseCpuGemms(Request());
  EXPECT_EQ(measured_, 6) << "the first is still known";
}

TEST_F(CpuGemmChoiceTest, AFileThatCannotBeReadIsReplaced) {
  if (!HasChoice()) GTEST_SKIP() << "no AVX-512";
  std::filesystem::create_directories(folder_.path("new"));
  for (const char* text : {"", "{", "[]", R"({"schema": "trainwright.kernels/1"})", "\x80\xff",
                           R"({"schema": "trainwright.kernels/1", "machines": [1, {"cpu": 1}]})"}) {
    test::WriteFile(path_, text);
    measured_ = 0;
    ChooseCpuGemms(Request());
    ChooseCpuGemms(Request());
    EXPECT_EQ(measured_, 1) << text;
  }
}

TEST_F(CpuGemmChoiceTest, WhatCannotBeStoredIsMeasuredAgainWithAWarning) {
  if (!HasChoice()) GTEST_SKIP() << "no AVX-512";
  test::WriteFile(folder_.path("new"), "a file where the folder would be");
  testing::internal::CaptureStderr();
  ChooseCpuGemms(Request());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("warning: what was measured of the kernels is not remembered"));
  ChooseCpuGemms(Request());
  EXPECT_EQ(measured_, 2);
}

TEST_F(CpuGemmChoiceTest, UsualAndWhatMayNotDependOnAClockMeasureNothing) {
  EXPECT_EQ(ChooseCpuGemms(Request("usual")), UsualCpuGemms());
  CpuGemmRequest without_clock = Request();
  without_clock.measures = false;
  EXPECT_EQ(ChooseCpuGemms(without_clock), UsualCpuGemms());
  EXPECT_EQ(measured_, 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(CpuGemmChoiceTest, TheGainOfBf16IsThatOfWhatWasMeasuredNowOrBefore) {
  if (!HasChoice()) GTEST_SKIP() << "no AVX-512";
  CpuGemmRequest request = Request();
  request.measure = [this] {
    ++measured_;
    return Rates(100, 50, 0, 150);
  };
  for (int time = 0; time < 2; ++time) {
    std::optional<double> gain;
    EXPECT_EQ(ChooseCpuGemms(request, &gain), (CpuGemms{Fp32::kBlocks, Bf16::kWidened}));
    EXPECT_EQ(gain, 1.5);
  }
  EXPECT_EQ(measured_, 1);
  std::optional<double> unmeasured;
  ChooseCpuGemms(Request("usual"), &unmeasured);
  EXPECT_EQ(unmeasured, std::nullopt);
}

TEST_F(CpuGemmChoiceTest, NamedKernelsAreTaken) {
  EXPECT_EQ(ChooseCpuGemms(Request("fp32=library,bf16=emulated")),
            (CpuGemms{Fp32::kLibrary, Bf16::kEmulated}));
  EXPECT_EQ(ChooseCpuGemms(Request("fp32=library")), (CpuGemms{Fp32::kLibrary, UsualCpuGemms().bf16}));
  EXPECT_EQ(measured_, 0);
}

TEST_F(CpuGemmChoiceTest, OtherNamesAndKernelsThatTheProcessorLacksAreRefused) {
  EXPECT_EQ(test::CodeOf([] { CheckKernelsOption("fastest"); }), ErrorCode::kUsage);
  EXPECT_EQ(test::CodeOf([&] { ChooseCpuGemms(Request("fp32=mkl")); }), ErrorCode::kUsage);
  if (HasChoice()) return;
  EXPECT_EQ(test::CodeOf([&] { ChooseCpuGemms(Request("fp32=blocks")); }), ErrorCode::kUsage);
}

TEST_F(CpuGemmChoiceTest, TheFileKeepsTheLastMachines) {
  const CpuGemmMachine first = {.cpu = "0", .capability = "", .threads = 1, .build = "", .torch = ""};
  for (int i = 0; i < 70; ++i) {
    CpuGemmMachine machine = first;
    machine.cpu = std::to_string(i);
    StoreCpuGemms(path_, machine, {.gemms = {}, .rates = {{"fp32=library", 1}}, .measured = "now"});
  }
  CpuGemmMachine last = first;
  last.cpu = "69";
  EXPECT_FALSE(FindCpuGemms(path_, first).has_value());
  ASSERT_TRUE(FindCpuGemms(path_, last).has_value());
  EXPECT_EQ(FindCpuGemms(path_, last)->rates, (CpuGemmRates{{"fp32=library", 1}}));
}

}  // namespace
}  // namespace trainwright

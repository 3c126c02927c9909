#include "lib/device/gpu_choices.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/device/process_setup.h"
#include "tests/device/process_state.h"

namespace trainwright {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Each in a process of its own: what is set holds for the life of the process.

TEST(SetUpGpuTest, WithoutChoicesProductsOfFp32AreFp32AndNoVariableIsSet) {
  PrepareGpuChoices({});
  ApplyGpuChoices({});
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
  EXPECT_EQ(Variable("PYTORCH_CUDA_ALLOC_CONF"), "");
  EXPECT_EQ(Variable("CUBLAS_WORKSPACE_CONFIG"), "");
}

TEST(SetUpGpuTest, SumsOfReducedPrecisionThatAreDividedAreCombinedInFp32) {
  ApplyGpuChoices({});
  constexpr auto kInFp32 = at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK;
  EXPECT_EQ(at::globalContext().allowBF16ReductionCuBLAS(), kInFp32);
  EXPECT_EQ(at::globalContext().allowFP16ReductionCuBLAS(), kInFp32);
}

TEST(SetUpGpuTest, Tf32LetsProductsOfFp32Round) {
  ApplyGpuChoices({.tf32 = true});
  EXPECT_TRUE(at::globalContext().allowTF32CuBLAS());
  EXPECT_EQ(at::globalContext().float32MatmulPrecision(), at::Float32MatmulPrecision::HIGH);
  ApplyGpuChoices({.tf32 = false});
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
}

TEST(SetUpGpuTest, DeterministicRefusesOtherAlgorithmsAndFillsNoMemory) {
  PrepareGpuChoices({.deterministic = true});
  ApplyGpuChoices({.deterministic = true});
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithmsWarnOnly());
  EXPECT_FALSE(at::globalContext().deterministicFillUninitializedMemory());
  EXPECT_EQ(Variable("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
}

TEST(SetUpGpuTest, DeterministicKeepsAWorkspaceThatTheUserSet) {
  setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
  PrepareGpuChoices({.deterministic = true});
  EXPECT_EQ(Variable("CUBLAS_WORKSPACE_CONFIG"), ":16:8");
}

TEST(SetUpGpuTest, OfVariablesThatHaveTheirValuesNoneIsWrittenAgainWhileThreadsMayReadThem) {
  static char of_cuda[] = "PYTORCH_CUDA_ALLOC_CONF=backend:native";
  static char of_any[] = "PYTORCH_ALLOC_CONF=backend:native";
  static char workspace[] = "CUBLAS_WORKSPACE_CONFIG=:4096:8";
  for (char* const text : {of_cuda, of_any, workspace}) ASSERT_EQ(putenv(text), 0);
  SetUpBackend({.gpu = {.deterministic = true, .allocator_conf = "backend:native"}});
  // What is set anew has other memory than putenv gave it.
  for (char* const text : {of_cuda, of_any, workspace}) {
    char* const value = std::strchr(text, '=') + 1;
    EXPECT_EQ(static_cast<const void*>(std::getenv(std::string(text, value - 1).c_str())), value);
  }
}

TEST(SetUpGpuTest, TheAllocatorsSettingsReplaceThoseOfTheEnvironmentBeforeCudaIsLoaded) {
  setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", 1);
  SetUpProcess({.gpu = {.allocator_conf = "expandable_segments:True"}});  // loads CUDA where there is one
  EXPECT_EQ(Variable("PYTORCH_CUDA_ALLOC_CONF"), "expandable_segments:True");
  EXPECT_EQ(Variable("PYTORCH_ALLOC_CONF"), "expandable_segments:True");
}

TEST(SetUpGpuTest, OnACpuNothingOfTorchIsSetAndEachChoiceIsToldToHaveNoEffect) {
  const GpuChoices all = {.tf32 = true, .deterministic = true, .allocator_conf = "backend:native"};
  SetUpProcess({.device = "cpu", .gpu = all});
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
  EXPECT_THAT(ChoicesWithoutGpu(all),
              testing::ElementsAre(testing::HasSubstr("--tf32 on has no effect on a CPU"),
                                   testing::HasSubstr("--deterministic has no effect on a CPU"),
                                   testing::HasSubstr("--alloc-conf has no effect on a CPU")));
  EXPECT_TRUE(ChoicesWithoutGpu({}).empty());
}

}  // namespace
}  // namespace trainwright

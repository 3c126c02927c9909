// That no function of the headers lib/nn/cuda/*kernels.h is without a test on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "tests/support/support.h"

namespace trainwright::cuda {
namespace {

TEST(CudaKernelsHeaderTest, EveryFunctionHasASuiteOfItsName) {
  std::set<std::string> suites;
  for (int i = 0; i < testing::UnitTest::GetInstance()->total_test_suite_count(); ++i) {
    const std::string name = testing::UnitTest::GetInstance()->GetTestSuite(i)->name();
    suites.insert(name.substr(name.rfind('/') + 1));
  }
  std::string headers;
  for (const auto& file : std::filesystem::directory_iterator(TRAINWRIGHT_CUDA_HEADERS)) {
    if (file.path().filename().string().ends_with("kernels.h")) headers += test::ReadFile(file.path());
  }
  const std::regex function("\ncudaError_t (\\w+)\\(");
  int functions = 0;
  for (std::sregex_iterator at(headers.begin(), headers.end(), function), end; at != end; ++at, ++functions) {
    const std::string suite = "Cuda" + (*at)[1].str() + "Test";
    EXPECT_TRUE(suites.contains(suite)) << "tests/cuda has no suite " << suite;
  }
  EXPECT_GE(functions, 22);
}

}  // namespace
}  // namespace trainwright::cuda

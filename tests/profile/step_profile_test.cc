#include "lib/profile/step_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profile/sample_timeline.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

StepProfile SampleProfile(bool with_device) {
  const std::vector<DeviceActivity> activities = test::SampleActivities();
  StepProfile profile = SummarizeSteps(test::SampleTimeline(), with_device ? &activities : nullptr);
  profile.first_step = 3;
  profile.last_step = 4;
  profile.trace = "profile/trace.json";
  return profile;
}

TEST(StepProfileTest, SharesOfTheHostAreOfTheStepsAndSumToOne) {
  const nlohmann::ordered_json record = EncodeStepProfile(SampleProfile(false));
  EXPECT_DOUBLE_EQ(record["wall_time_s"].get<double>(), 2e-6);
  double shares = 0, times_s = 0;
  for (const auto& [name, part] : record["parts"].items()) {
    shares += part["share"].get<double>();
    times_s += part["time_s"].get<double>();
  }
  EXPECT_EQ(record["parts"].size(), kProfileParts);
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_NEAR(times_s, 2e-6, 1e-18);
  EXPECT_DOUBLE_EQ(record["parts"]["gemm"]["share"].get<double>(), 0.6);
  EXPECT_DOUBLE_EQ(record["parts"]["head"]["share"].get<double>(), 0.1);
  EXPECT_DOUBLE_EQ(record["parts"]["optimizer"]["share"].get<double>(), 0.15);
  EXPECT_DOUBLE_EQ(record["parts"]["other"]["share"].get<double>(), 0.15);
  EXPECT_TRUE(record["device"].is_null());
}

TEST(StepProfileTest, NamesOperatorsByTheTimeThatIsTheirOwn) {
  const StepProfile profile = SampleProfile(false);
  ASSERT_EQ(profile.operators.size(), 4u);
  EXPECT_EQ(profile.operators[0].name, "matmul");
  EXPECT_EQ(profile.operators[0].calls, 2);
  EXPECT_EQ(profile.operators[0].operations, 6000);
  EXPECT_EQ(profile.operators[3].name, "linear_cross_entropy");
  EXPECT_EQ(profile.operators[3].self_ns, 200);
  EXPECT_EQ(profile.operators[3].total_ns, 1400);
}

TEST(StepProfileTest, OfADeviceOnlyWhatLiesWithinTheStepsCounts) {
  const nlohmann::ordered_json device = EncodeStepProfile(SampleProfile(true))["device"];
  EXPECT_DOUBLE_EQ(device["busy_time_s"].get<double>(), 900e-9);  // 700 on two streams together, and 200
  EXPECT_DOUBLE_EQ(device["idle_share"].get<double>(), 1 - 900.0 / 2000);
  EXPECT_DOUBLE_EQ(device["parts"]["gemm"]["share"].get<double>(), 0.8);
  EXPECT_DOUBLE_EQ(device["parts"]["upload"]["share"].get<double>(), 0.2);
  EXPECT_DOUBLE_EQ(device["parts"]["attention"]["share"].get<double>(), 0);
  ASSERT_EQ(device["kernels"].size(), 2u);
  EXPECT_EQ(device["kernels"][0]["name"], "ampere_sgemm_128x64_nn");
  EXPECT_EQ(device["kernels"][0]["calls"], 2);
}

TEST(StepProfileTest, TheTableHasPartsAndOperatorsAndTheRateOfProducts) {
  const std::string table = FormatStepProfile(SampleProfile(false));
  EXPECT_THAT(table, HasSubstr("gemm"));
  EXPECT_THAT(table, HasSubstr("60.0"));
  EXPECT_THAT(table, testing::ContainsRegex("matmul +gemm +2 +0.001 +0.001 +5.0"));  // 6,000 in 1,200 ns
  EXPECT_THAT(table, testing::Not(HasSubstr("attention"))) << "takes no time";
  EXPECT_THAT(FormatStepProfile(SampleProfile(true)), HasSubstr("busy for 45.0 % of the time"));
}

// 6,000 operations: of the host in 1,200 ns, of the device in 800.
TEST(StepProfileTest, TheRateOfGemmsIsThatOfWhoeverComputesThem) {
  const nlohmann::ordered_json host = EncodeStepProfile(SampleProfile(false))["gemm"],
                               device = EncodeStepProfile(SampleProfile(true))["gemm"];
  EXPECT_EQ(host["operations"], 6000);
  EXPECT_DOUBLE_EQ(host["operations_per_s"].get<double>(), 5e9);
  EXPECT_EQ(device["operations"], 6000);
  EXPECT_DOUBLE_EQ(device["operations_per_s"].get<double>(), 7.5e9);
  EXPECT_THAT(FormatStepProfile(SampleProfile(false)), HasSubstr("0.000 GFLOP a step, 5.0 GFLOP/s\n"));
  const std::string table = FormatStepProfile(SampleProfile(true));
  EXPECT_THAT(table, HasSubstr("7.5 GFLOP/s in their time on the device"));
  EXPECT_THAT(table, testing::Not(testing::ContainsRegex("matmul +gemm +2 +0.001 +0.001 +5.0")))
      << "the host only launches there";
}

TEST(StepProfileTest, ASentenceHasTheLongestPartsOfTheDeviceIfThereIsOne) {
  EXPECT_EQ(DescribeProfileRecord(EncodeStepProfile(SampleProfile(false))),
            "gemm 60.0 %, optimizer 15.0 %, other 15.0 %, head 10.0 %");
  EXPECT_EQ(DescribeProfileRecord(EncodeStepProfile(SampleProfile(true))), "gemm 80.0 %, upload 20.0 %");
  EXPECT_EQ(DescribeProfileRecord({{"parts", 7}}), "");
}

}  // namespace
}  // namespace trainwright

#include "lib/device/gpu_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// What the fake plugin was asked, a letter a call.
std::string calls;
const char* start_problem = nullptr;

const char* Start(int32_t device) {
  calls += "start" + std::to_string(device) + " ";
  return start_problem;
}

void Wait(int32_t) {
  calls += "wait ";
}

int64_t Stop(int32_t, void (*visit)(void*, const GpuActivityRecord*), void* context) {
  calls += "stop ";
  const GpuActivityRecord records[] = {
      {.kind = 0,
       .name = "_ZN11trainwright4cuda10RopeKernelIfEEvv",
       .device = 2,
       .stream = 7,
       .start_ns = 5,
       .end_ns = 9,
       .bytes = 0},
      {.kind = 0,
       .name = "ampere_sgemm_128x64_nn",
       .device = 2,
       .stream = 7,
       .start_ns = 10,
       .end_ns = 12,
       .bytes = 0},
      {.kind = 1, .name = nullptr, .device = 2, .stream = 8, .start_ns = 1, .end_ns = 2, .bytes = 4096}};
  for (const GpuActivityRecord& record : records) visit(context, &record);
  return 0;
}

constexpr GpuActivityPlugin kFake = {.start = &Start, .wait = &Wait, .stop = &Stop};

class GpuActivityTest : public testing::Test {
 protected:
  GpuActivityTest() {
    calls.clear();
    start_problem = nullptr;
  }
};

TEST_F(GpuActivityTest, GivesThePluginsRecordsWithReadableNames) {
  const auto source = MakeActivitySource(&kFake, 2);
  source->Start();
  source->Wait();
  const std::vector<DeviceActivity> activities = source->Stop();
  EXPECT_EQ(calls, "start2 wait stop ");
  ASSERT_EQ(activities.size(), 3u);
  EXPECT_EQ(activities[0].name, "void trainwright::cuda::RopeKernel<float>()");
  EXPECT_EQ(PartOfActivity(activities[0]), ProfilePart::kPosition);
  EXPECT_EQ(activities[0].device, 2);
  EXPECT_EQ(activities[0].stream, 7);
  EXPECT_EQ(activities[0].start_ns, 5);
  EXPECT_EQ(activities[0].end_ns, 9);
  EXPECT_EQ(activities[1].name, "ampere_sgemm_128x64_nn");
  EXPECT_EQ(activities[2].kind, ActivityKind::kCopyToDevice);
  EXPECT_EQ(activities[2].bytes, 4096);
}

TEST_F(GpuActivityTest, ARunThatEndsInTheMiddleEndsTheRecordingToo) {
  MakeActivitySource(&kFake, 0)->Start();
  EXPECT_EQ(calls, "start0 stop ");
}

TEST_F(GpuActivityTest, SaysWhyItCannotRecord) {
  start_problem = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
  const auto source = MakeActivitySource(&kFake, 0);
  EXPECT_EQ(test::CodeOf([&] { source->Start(); }), ErrorCode::kDevice);
  EXPECT_THAT(test::MessageOf([&] { source->Start(); }), testing::HasSubstr("MULTIPLE_SUBSCRIBERS"));
}

TEST_F(GpuActivityTest, ACpuHasNoSource) {
  EXPECT_EQ(MakeActivitySource(c10::Device(c10::DeviceType::CPU)), nullptr);
}

}  // namespace
}  // namespace trainwright

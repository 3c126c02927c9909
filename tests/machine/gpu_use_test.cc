#include "lib/machine/gpu_use.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/machine/fixture_devices.h"

namespace trainwright {
namespace {

/// Two GPUs, of which the second is twice as busy; counts how often it is asked.
class TwoBusyGpus final : public GpuManagement {
 public:
  explicit TwoBusyGpus(int* asked) : asked_(asked) {}
  DriverInfo Driver() override { return {}; }
  std::vector<GpuInfo> Gpus() override {
    std::vector<GpuInfo> gpus = {test::H200(), test::H200()};
    for (int i = 0; i < 2; ++i) {
      gpus[static_cast<size_t>(i)].index = i;
      gpus[static_cast<size_t>(i)].utilization_percent = 40 * (i + 1);
    }
    ++*asked_;
    return gpus;
  }

 private:
  int* asked_;
};

TEST(GpuUseTest, IsThatOfTheGpuThatCudaCountsSo) {
  int asked = 0;
  EXPECT_EQ(GpuUse(std::make_unique<TwoBusyGpus>(&asked), std::nullopt, 0).Read(0), 0.4);
  EXPECT_EQ(GpuUse(std::make_unique<TwoBusyGpus>(&asked), std::nullopt, 1).Read(0), 0.8);
  EXPECT_EQ(GpuUse(std::make_unique<TwoBusyGpus>(&asked), "1", 0).Read(0), 0.8);
  EXPECT_EQ(GpuUse(std::make_unique<TwoBusyGpus>(&asked), "1", 1).Read(0), std::nullopt);
}

TEST(GpuUseTest, AsksTheDriverAtMostOnceASecond) {
  int asked = 0;
  GpuUse use(std::make_unique<TwoBusyGpus>(&asked), std::nullopt, 0);
  for (const double time_s : {5.0, 5.2, 5.9}) EXPECT_EQ(use.Read(time_s), 0.4);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(use.Read(6.1), 0.4);
  EXPECT_EQ(asked, 2);
}

TEST(GpuUseTest, WithoutADriverThereIsNone) {
  EXPECT_EQ(GpuUse(nullptr, std::nullopt, 0).Read(0), std::nullopt);
}

}  // namespace
}  // namespace trainwright

#include "lib/device/device_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <optional>

namespace trainwright {
namespace {

/// Gives no memory; counts how often its cache is emptied.
class CountingAllocator final : public c10::DeviceAllocator {
 public:
  int emptied = 0;

  c10::DataPtr allocate(size_t) override { return {}; }
  void copy_data(void*, const void*, size_t) const override {}
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { ++emptied; }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
};

TEST(DeviceMemoryTest, EmptiesTheCacheOfTheDevicesAllocatorAndNoneOfACpu) {
  static CountingAllocator allocator;  // torch keeps it
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &allocator);
  EmptyDeviceCache(c10::Device(c10::DeviceType::PrivateUse1, 0));
  EXPECT_EQ(allocator.emptied, 1);
  EmptyDeviceCache(c10::Device(c10::DeviceType::CPU));
  EXPECT_EQ(allocator.emptied, 1);
}

TEST(DeviceMemoryTest, TellsHowLongTheCacheTookAndNothingOfACpu) {
  static CountingAllocator allocator;  // torch keeps it
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &allocator);
  const std::optional<double> took_s = EmptyDeviceCache(c10::Device(c10::DeviceType::PrivateUse1, 0));
  ASSERT_TRUE(took_s.has_value());
  EXPECT_GE(*took_s, 0);
  EXPECT_EQ(EmptyDeviceCache(c10::Device(c10::DeviceType::CPU)), std::nullopt);
}

}  // namespace
}  // namespace trainwright

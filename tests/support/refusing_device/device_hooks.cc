// What torch asks of a kind of device: guards, streams and events, which have nothing to order here, and
// pinned memory.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <utility>

#include "tests/support/refusing_device/device_clock.h"
#include "tests/support/refusing_device/device_memory.h"
#include "tests/support/refusing_device/pinned_memory.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright::test {
namespace {

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device) const override { return kRefusingDevice; }
  c10::Device getDevice() const override { return kRefusingDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return stream_; }
  c10::Stream getDefaultStream(c10::Device) const override { return Stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return Stream(++streams_); }
  c10::Stream getNewStream(c10::Device, int) const override { return Stream(++streams_); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return std::exchange(stream_, stream); }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { Wait("a stream"); }
  void synchronizeDevice(c10::DeviceIndex) const override { Wait("the device"); }

  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    static int recorded;
    *event = &recorded;
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override { Wait("an event"); }
  double elapsedTime(void*, void*, c10::DeviceIndex) const override { return 0; }

 private:
  static c10::Stream Stream(int64_t id) { return c10::Stream(c10::Stream::UNSAFE, kRefusingDevice, id); }
  static thread_local c10::Stream stream_;
  static thread_local int64_t streams_;
};
thread_local c10::Stream Guard::stream_ = Guard::Stream(0);
thread_local int64_t Guard::streams_ = 0;

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  bool isPinnedPtr(const void* data) const override { return IsPinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return PinnedAllocator(); }
  c10::Device getDeviceFromPtr(void*) const override { return kRefusingDevice; }
};

struct Registered {
  Registered() {
    c10::register_privateuse1_backend("refusing");
    at::RegisterPrivateUse1HooksInterface(new Hooks);
  }
};
const Registered kRegistered;

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace trainwright::test

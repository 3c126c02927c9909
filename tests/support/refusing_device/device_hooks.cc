// What torch asks of a kind of device: guards, streams and events, and pinned memory.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "tests/support/refusing_device/device_clock.h"
#include "tests/support/refusing_device/device_memory.h"
#include "tests/support/refusing_device/pinned_memory.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/refusing_device/side_streams.h"

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

  c10::Stream getStream(c10::Device) const override { return Stream(PresentStream()); }
  c10::Stream getDefaultStream(c10::Device) const override { return Stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return Stream(NewStream()); }
  c10::Stream getNewStream(c10::Device, int) const override { return Stream(NewStream()); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return Stream(ExchangeStream(stream.id()));
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { Wait("a stream"); }
  void synchronizeDevice(c10::DeviceIndex) const override { Wait("the device"); }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new StreamEvent;
    *static_cast<StreamEvent*>(*event) = RecordOn(stream.id());
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<StreamEvent*>(event);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) BlockOn(*static_cast<StreamEvent*>(event), stream.id());
  }
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override { Wait("an event"); }
  double elapsedTime(void*, void*, c10::DeviceIndex) const override { return 0; }

 private:
  static c10::Stream Stream(int64_t id) { return c10::Stream(c10::Stream::UNSAFE, kRefusingDevice, id); }
};

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

#include "lib/device/copy_lanes.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>

#include "lib/base/error.h"
#include "lib/device/accelerator.h"

namespace trainwright {
namespace {

c10::Stream NewStream(c10::Device device) {
  TRAINWRIGHT_CHECK(IsAccelerator(device));
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

}  // namespace

CopyLanes::CopyLanes(c10::Device device, int64_t lanes)
    : device_(device), stream_(NewStream(device)), ready_(device.type()) {
  for (int64_t i = 0; i < lanes; ++i) done_.push_back({.done = c10::Event(device.type())});
}

c10::Stream CopyLanes::PresentStream() const {
  return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
}

void CopyLanes::Queue(int64_t lane, const std::vector<at::Tensor>& tensors,
                      const std::function<void()>& copies) {
  Lane& own = done_.at(static_cast<size_t>(lane));
  ready_.record(PresentStream());
  ready_.block(stream_);
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() > 0) tensor.record_stream(stream_);
  }
  {
    const c10::StreamGuard guard(stream_);
    copies();
  }
  own.done.record(stream_);
  own.copies = true;
}

void CopyLanes::Await(int64_t lane) {
  Lane& own = done_.at(static_cast<size_t>(lane));
  if (own.copies) own.done.block(PresentStream());
  own.copies = false;
}

void CopyLanes::AwaitAll() {
  for (int64_t lane = 0; lane < lanes(); ++lane) Await(lane);
}

c10::Stream UploadStream(c10::Device device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, c10::Stream> streams;
  const std::lock_guard lock(mutex);
  const auto found = streams.find(device.index());
  return found != streams.end() ? found->second
                                : streams.emplace(device.index(), NewStream(device)).first->second;
}

}  // namespace trainwright

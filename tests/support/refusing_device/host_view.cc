#include "tests/support/refusing_device/host_view.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/support/refusing_device/device_memory.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright::test {
namespace {

/// A storage of the host over a device's memory, which outlives it.
c10::Storage HostStorage(const c10::Storage& device) {
  void* const memory = KernelAddress(device.data());
  if (memory == nullptr) return {c10::Storage::use_byte_size_t(), 0, c10::GetCPUAllocator(), true};
  return {c10::Storage::use_byte_size_t(), device.nbytes(),
          c10::DataPtr(memory, c10::Device(c10::DeviceType::CPU))};
}

}  // namespace

at::Tensor HostViews::Of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_privateuseone()) return tensor;
  if (const auto known = of_device_.find(tensor.unsafeGetTensorImpl()); known != of_device_.end()) {
    return pairs_[known->second].host;
  }
  const c10::Storage& storage = tensor.storage();
  auto host_storage = storages_.find(storage.unsafeGetStorageImpl());
  if (host_storage == storages_.end()) {
    host_storage = storages_.emplace(storage.unsafeGetStorageImpl(), HostStorage(storage)).first;
  }
  at::Tensor host = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(host_storage->second), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  host.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  host.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  host._set_conj(tensor.is_conj());
  host._set_neg(tensor.is_neg());
  of_device_[tensor.unsafeGetTensorImpl()] = of_host_[host.unsafeGetTensorImpl()] = pairs_.size();
  pairs_.push_back({tensor, host});
  return host;
}

at::Tensor HostViews::OnDevice(const at::Tensor& result) const {
  if (!result.defined()) return result;
  if (const auto known = of_host_.find(result.unsafeGetTensorImpl()); known != of_host_.end()) {
    return pairs_[known->second].device;
  }
  const auto of = std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) {
    return pair.host.storage().unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl();
  });
  if (of != pairs_.end()) {
    return of->device.as_strided(result.sizes(), result.strides(), result.storage_offset());
  }
  const at::Tensor device =
      at::empty_strided(result.sizes(), result.strides(), result.options().device(kRefusingDevice));
  HostViews views;
  views.Of(device).copy_(result);
  return device;
}

void HostViews::TakeSizes() {
  for (Pair& pair : pairs_) {
    if (pair.device.sizes() == pair.host.sizes()) continue;
    c10::TensorImpl* const impl = pair.device.unsafeGetTensorImpl();
    const size_t size = pair.host.storage().nbytes();
    if (pair.device.storage().nbytes() < size) {
      ResizeDeviceStorage(pair.device.storage(), size);
      std::memcpy(KernelAddress(pair.device.storage().data()), pair.host.storage().data(), size);
    }
    impl->set_sizes_and_strides(pair.host.sizes(), pair.host.strides());
  }
}

void ResizeDeviceStorage(const c10::Storage& storage, size_t size) {
  c10::DataPtr memory = DeviceAllocator()->allocate(size);
  if (const size_t kept = std::min(size, storage.nbytes()); kept > 0) {
    std::memcpy(KernelAddress(memory.get()), KernelAddress(storage.data()), kept);
  }
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(size);
}

}  // namespace trainwright::test

/// Tensors of the refusing device as its kernels have them: CPU tensors that show the same memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

namespace trainwright::test {

/// Those of one kernel. A tensor has one view, however often it is asked for.
class HostViews {
 public:
  /// Of a tensor of the device; others are their own.
  at::Tensor Of(const at::Tensor& tensor);
  std::optional<at::Tensor> Of(const std::optional<at::Tensor>& tensor) {
    return tensor ? std::optional(Of(*tensor)) : std::nullopt;
  }
  /// The tensor of the device for one that a kernel returned: that of which it is the view, a view like it,
  /// or a copy of what is new.
  at::Tensor OnDevice(const at::Tensor& result) const;
  /// Gives tensors the sizes that their views got: of results that were empty.
  void TakeSizes();

 private:
  struct Pair {
    at::Tensor device, host;
  };
  std::vector<Pair> pairs_;
  std::unordered_map<const c10::TensorImpl*, size_t> of_device_, of_host_;
  std::unordered_map<const c10::StorageImpl*, c10::Storage> storages_;  // of the host, by the device's
};

/// Makes room for so many bytes; what was there stays.
void ResizeDeviceStorage(const c10::Storage& storage, size_t size);

}  // namespace trainwright::test

// Operators of torch that make, view and copy tensors of the refusing device, and products with a result
// wider than their operands, which torch has for GPUs alone.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <optional>

#include "tests/support/refusing_device/device_clock.h"
#include "tests/support/refusing_device/device_memory.h"
#include "tests/support/refusing_device/host_view.h"
#include "tests/support/refusing_device/pinned_memory.h"
#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/refusing_device/side_streams.h"

namespace trainwright::test {
namespace {

const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor Empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, DeviceAllocator(), kKeys, dtype.value_or(at::kFloat), format);
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, DeviceAllocator(), kKeys,
                                           dtype.value_or(at::kFloat));
}

const at::Tensor& Resize(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat>) {
  const size_t bytes = at::detail::computeStorageNbytesContiguous(size, self.dtype().itemsize(),
                                                                  static_cast<size_t>(self.storage_offset()));
  if (self.storage().nbytes() < bytes) ResizeDeviceStorage(self.storage(), bytes);
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

/// Whether bytes alone go from one to the other.
bool AreAlike(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.is_conj() == b.is_conj() &&
         a.is_neg() == b.is_neg() && a.is_contiguous() && b.is_contiguous();
}

/// From the host, as a GPU does it: what is pinned and goes as it is asks for no wait.
void CopyToDevice(const at::Tensor& host, const at::Tensor& device, bool non_blocking) {
  HostViews views;
  const at::Tensor to = views.Of(device);
  if (non_blocking && AreAlike(host, to) && (host.numel() == 0 || IsPinned(host.const_data_ptr()))) {
    CopyFromPinned(to.mutable_data_ptr(), host.const_data_ptr(), host.nbytes());
    return;
  }
  Wait(non_blocking ? "a copy to the device of what is not pinned" : "a copy to the device");
  to.copy_(host);
}

void CopyToHost(const at::Tensor& device, const at::Tensor& host, bool non_blocking) {
  HostViews views;
  const at::Tensor from = views.Of(device);
  if (non_blocking && AreAlike(host, from) && (host.numel() == 0 || IsPinned(host.const_data_ptr()))) {
    CopyToPinned(host.mutable_data_ptr(), from.const_data_ptr(), host.nbytes());
    return;
  }
  Wait(non_blocking ? "a copy to host memory that is not pinned" : "a copy to the host");
  host.copy_(from);
}

at::Tensor CopyFrom(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  if (!self.is_privateuseone()) {
    CopyToDevice(self, to, non_blocking);
  } else if (!to.is_privateuseone()) {
    CopyToHost(self, to, non_blocking);
  } else {
    RunAndKeep([self, to] {
      CountKernel();
      HostViews views;
      views.Of(to).copy_(views.Of(self));
    });
  }
  return to;
}

at::Tensor CopyFromAndResize(const at::Tensor& self, const at::Tensor& to) {
  to.resize_(self.sizes());
  return CopyFrom(self, to, /*non_blocking=*/false);
}

void RecordStream(at::Tensor& self, c10::Stream stream) {
  if (self.numel() > 0) NoteUse(KernelAddress(self.const_data_ptr()), stream.id());
}

at::Scalar Item(const at::Tensor& self) {
  Wait("item");
  HostViews views;
  return views.Of(self).item();
}

at::Tensor& ProductInWiderType(const at::Tensor& a, const at::Tensor& b, at::ScalarType type,
                               at::Tensor& out) {
  TORCH_CHECK(type == at::kFloat && out.scalar_type() == type);
  TORCH_CHECK(a.scalar_type() == b.scalar_type() && at::isReducedFloatingType(a.scalar_type()));
  CountKernel();
  HostViews views;
  views.Of(out).copy_(at::mm(views.Of(a).to(type), views.Of(b).to(type)));
  return out;
}

at::Tensor& AddProductInWiderType(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                                  at::ScalarType type, const at::Scalar& beta, const at::Scalar& alpha,
                                  at::Tensor& out) {
  TORCH_CHECK(type == at::kFloat && out.scalar_type() == type && self.scalar_type() == type);
  TORCH_CHECK(a.scalar_type() == b.scalar_type() && at::isReducedFloatingType(a.scalar_type()));
  CountKernel();
  HostViews views;
  const at::Tensor product = at::mm(views.Of(a).to(type), views.Of(b).to(type)).mul_(alpha);
  views.Of(out).copy_(views.Of(self).mul(beta).add_(product));
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &Empty);
  library.impl("empty_strided", &EmptyStrided);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  library.impl("view_as_real", &at::native::view_as_real);
  library.impl("view_as_complex", &at::native::view_as_complex);
  library.impl("resize_", &Resize);
  library.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  library.impl("_copy_from", &CopyFrom);
  library.impl("_copy_from_and_resize", &CopyFromAndResize);
  library.impl("_local_scalar_dense", &Item);
  library.impl("record_stream", &RecordStream);
  library.impl("mm.dtype_out", &Kept<&ProductInWiderType>::Call);
  library.impl("addmm.dtype_out", &Kept<&AddProductInWiderType>::Call);
}

// Copies see to conjugates and negatives themselves; torch's way would be a copy again.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace
}  // namespace trainwright::test

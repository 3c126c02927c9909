/// From host memory to a device without waiting for either.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainwright {

/// \param host a CPU tensor, which may change or go at once
/// \param pin whether a copy to a GPU goes through pinned memory; else the host waits for it
/// \returns the same values on `device`: the tensor itself on the CPU; on a GPU a copy in the order of its
/// present stream
at::Tensor Upload(const at::Tensor& host, at::Device device, bool pin = true);

}  // namespace trainwright

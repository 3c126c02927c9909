/// From host memory to a device without waiting for either; ids travel in as few bytes as they need.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainwright {

/// \param host a CPU tensor, which may change or go at once
/// \param pin whether a copy to a GPU goes through pinned memory; else the host waits for it
/// \returns the same values on `device`: the tensor itself on the CPU; on a GPU a copy that passes beside
/// what it computes, on a stream of its own (copy_lanes.h), and is there for what is queued on the present
/// stream from now on
at::Tensor Upload(const at::Tensor& host, at::Device device, bool pin = true);

/// Likewise, of int64 ids, which go to a GPU narrowed and are widened there.
/// \param bound all lie in [0, bound)
at::Tensor UploadIds(const at::Tensor& host, int64_t bound, at::Device device, bool pin = true);

/// Ids in [0, bound) in 2 bytes each up to a bound of 2^16, in 4 up to 2^31, else as they are.
at::Tensor NarrowIds(const at::Tensor& ids, int64_t bound);
/// The int64 ids again, computed where they are.
at::Tensor WidenIds(const at::Tensor& narrow);

}  // namespace trainwright

/// The memory of a GPU. 0 for a CPU and where there is no CUDA backend.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace trainwright {

/// What the driver has free for this process now, in bytes; makes the process's context on the GPU.
int64_t FreeDeviceBytes(c10::Device device);
/// All that the GPU has.
int64_t WholeDeviceBytes(c10::Device device);
/// Makes tensors take at most a share of the GPU's whole memory; what is above fails as without memory.
/// \param fraction in (0, 1]
/// \returns the limit in bytes
/// \throws Error{kUsage} on another fraction, Error{kDevice} where there is no CUDA backend
int64_t CapDeviceMemory(c10::Device device, double fraction);
/// The most that tensors have taken at a time, in bytes.
int64_t PeakDeviceBytes(c10::Device device);
/// Gives the driver what torch's allocator of the device keeps free, so that others can have it; the next
/// tensors take it again.
/// \returns the seconds that it took; nullopt on a CPU, where there is nothing to do
std::optional<double> EmptyDeviceCache(c10::Device device);

}  // namespace trainwright

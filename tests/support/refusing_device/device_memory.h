/// The memory of the refusing device.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>

namespace trainwright::test {

/// Of the device's tensors. Thread-safe.
c10::Allocator* DeviceAllocator();
/// Where a kernel reaches what tensors have at `device_address`, which may be null.
void* KernelAddress(const void* device_address);
/// Whether it is one of the device's addresses.
bool IsDeviceAddress(const void* address);

}  // namespace trainwright::test

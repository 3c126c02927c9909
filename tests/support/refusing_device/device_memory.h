/// The memory of the refusing device.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainwright::test {

/// Of the device's tensors. Thread-safe.
c10::Allocator* DeviceAllocator();
/// Where a kernel reaches what tensors have at `device_address`, which may be null.
void* KernelAddress(const void* device_address);
/// Whether it is one of the device's addresses.
bool IsDeviceAddress(const void* address);

/// What all tensors held at some time.
struct DeviceMemoryContents {
  struct Block {
    size_t offset;
    int64_t number;  ///< of the allocation
    std::vector<char> bytes;
  };
  std::vector<Block> blocks;

  static DeviceMemoryContents Now();
  /// Of those that are still there; others stay as they are.
  void PutBack() const;
};

}  // namespace trainwright::test

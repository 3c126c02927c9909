/// What the host has done with the refusing device and what it may know of its work. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace trainwright::test {

void CountKernel();
void CountGraph();
void CountDeviceBytes(int64_t more);
void NoteViolation(const std::string& what);
/// The host waits for all that was queued: what copies brought shows.
/// \throws c10::Error under WaitsRefused
void Wait(const std::string& cause);

/// A copy from the device to pinned memory, for which nobody waits.
void CopyToPinned(void* pinned, const void* kernel_memory, size_t size);
/// A copy from pinned memory to the device, likewise.
void CopyFromPinned(void* kernel_memory, const void* pinned, size_t size);
/// Copies to this memory need not arrive, and those from it have been done: torch keeps a block until then.
void ForgetPinned(const void* pinned, size_t size);

}  // namespace trainwright::test

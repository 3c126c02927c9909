/// The memory of this process and of the machine it runs on.
#pragma once

#include <cstdint>

namespace trainwright {

/// Resident size of this process now (VmRSS), in bytes; 0 where the system does not say.
int64_t ResidentBytes();
/// The largest it has been (VmHWM), in bytes; 0 where the system does not say.
int64_t PeakResidentBytes();

/// Of what is resident, what no file backs (RssAnon), and what files and shared memory do; 0 likewise.
int64_t ResidentAnonymousBytes();
int64_t ResidentFileBytes();
/// What the C library's heap holds and has given to nobody: pieces between others and what was freed, kept
/// for the next allocation instead of being given back, in bytes.
int64_t FreeHeapBytes();
/// Gives what the heap keeps of freed memory back to the system, where it is not between blocks in use.
void ReturnFreeHeap();
/// Private writable memory of this process, touched or not (VmData), in bytes; 0 where the system does not
/// say.
int64_t PrivateWritableBytes();

/// What could still be allocated without swapping: the machine's MemAvailable, or what a cgroup's limit
/// leaves where that is less; 0 where the system does not say.
int64_t AvailableMemoryBytes();

}  // namespace trainwright

/// A cap on the memory that this process may take, so that what is above it fails instead of pressing others
/// out.
///
/// On a host it is the kernel's limit on private writable memory (RLIMIT_DATA), which counts what is
/// allocated whether or not it was touched: heap, tensors, threads' stacks; not the data set's mapped files.
/// What is above it fails as any allocation without memory does (memory_error.h). It holds for the life of
/// the process.
///
/// Libraries do not all survive a failed allocation: oneDNN's generator of GEMM kernels, for one, crashes
/// on it. So tensors, which fail with an exception, meet a limit before the libraries do: the last part of
/// what there is stays theirs.
#pragma once

#include <cstdint>

namespace trainwright {

/// Limits what is allocated from now on to a share of AvailableMemoryBytes().
/// \param fraction in (0, 1]
/// \returns the limit in bytes, what the process has already not counted
/// \throws Error{kUsage} on another fraction, Error{kIo} where the system refuses or does not report it
int64_t CapHostMemory(double fraction);

/// Under a limit on this process's memory, from here or from its parent (ulimit -d, ulimit -v): refuses
/// tensors of 1 MiB and more that would leave libraries less than 32 MiB, or an eighth of a lower limit.
/// Without a limit it does nothing. To be called once, before other threads make tensors; holds for the life
/// of the process.
void KeepRoomForLibraries();

}  // namespace trainwright

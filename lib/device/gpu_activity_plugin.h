/// What libtrainwright_cuda.so offers for profiles beside cuda_plugin.h, whose check of versions covers it,
/// too. Torch-free and plain C.
#pragma once

#include <cstdint>

namespace trainwright {

/// One record of CUPTI's.
struct GpuActivityRecord {
  int32_t kind;      ///< a value of ActivityKind
  const char* name;  ///< of a kernel, mangled; valid during the call
  int32_t device;
  int64_t stream;
  int64_t start_ns, end_ns;  ///< of CLOCK_MONOTONIC
  int64_t bytes;
};

struct GpuActivityPlugin {
  /// Waits for the device and begins to record.
  /// \returns null, or CUPTI's words
  const char* (*start)(int32_t device);
  /// Waits for the device.
  void (*wait)(int32_t device);
  /// Ends recording and calls `visit` with each record.
  /// \returns how many records CUPTI dropped for lack of memory
  int64_t (*stop)(int32_t device, void (*visit)(void* context, const GpuActivityRecord* record),
                  void* context);
};

/// The symbol of the plugin's that gives it.
inline constexpr char kGpuActivitySymbol[] = "trainwright_gpu_activity";
using GpuActivityFunction = const GpuActivityPlugin*();

}  // namespace trainwright

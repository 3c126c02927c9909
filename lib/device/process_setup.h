/// What an engine changes of its own process before its job: once, called by its main.
///
/// Threads, limits and allocators belong to the whole process, so no library changes them for its own ends:
/// a main asks for them here, and the job gets what was set as a value (tests/layers_test.py). What must be
/// done before any work of torch is PrepareDeterminism's (determinism.h); signals are RunTool's.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lib/device/gpu_choices.h"

namespace trainwright {

struct ProcessRequest {
  int threads = 0;                       ///< that compute; 0: the physical cores usable
  std::string device = "cpu";            ///< as ChooseDevice takes it
  std::optional<double> mem_fraction;    ///< of the device's memory that is taken at most; absent: no cap
  bool keep_room_for_libraries = false;  ///< as KeepRoomForLibraries does (memory_cap.h)
  GpuChoices gpu = {};  ///< where the device is one; else it is reported that they have no effect
};

/// What was set: where a job computes.
struct ProcessSetup {
  int threads = 1;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  std::optional<int64_t> memory_cap_bytes;  ///< of the device's memory
};

/// The first part of SetUpProcess: sets what the libraries of a GPU read when they are loaded, and loads them
/// unless the device is "cpu". For mains that need torch before SetUpProcess, with the same request.
void SetUpBackend(const ProcessRequest& request);

/// To be called once, by main, before other threads make tensors. What it sets holds for the life of the
/// process.
/// \throws Error: kUsage (device, mem_fraction), kDevice (no such GPU, or no memory left on it), kIo (no
///     memory for the threads, no limit available)
ProcessSetup SetUpProcess(const ProcessRequest& request);

}  // namespace trainwright

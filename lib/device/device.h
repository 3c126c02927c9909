/// Which device a run uses.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace trainwright {

/// Loads the CUDA backend unless `name` is "cpu"; a problem is ChooseDevice's to report. Call before any work
/// of torch: what makes it look for a GPU (pinned memory, an accelerator's stream, a process group) keeps its
/// first answer.
void LoadBackendFor(const std::string& name);

/// Chooses among what LoadBackendFor loaded, or loads it.
/// \param name "auto" (a GPU that can be used, else the CPU), "cpu" or "cuda" (with ":0" and so on)
/// \throws Error{kDevice} when a GPU is asked for and cannot be used, naming what is missing; Error{kUsage}
/// on another name
c10::Device ChooseDevice(const std::string& name);

/// What tells a GPU from all others, the same in all processes that see it; empty for a CPU.
std::string GpuIdentity(c10::Device device);

}  // namespace trainwright

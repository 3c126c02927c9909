/// Which device a run uses, and how much memory it took.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace trainwright {

/// \param name "auto", "cpu" or "cuda" (with ":0" and so on)
/// \throws Error{kDevice} when a GPU is asked for and this build or machine has none, Error{kUsage} on
/// another name
c10::Device ChooseDevice(const std::string& name);

/// Largest resident size of this process so far (VmHWM), in bytes; 0 where the system does not say.
int64_t PeakResidentBytes();
/// Resident size of this process now (VmRSS), in bytes; 0 where the system does not say.
int64_t ResidentBytes();

}  // namespace trainwright

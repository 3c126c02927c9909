/// Which device a run uses.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace trainwright {

/// \param name "auto", "cpu" or "cuda" (with ":0" and so on)
/// \throws Error{kDevice} when a GPU is asked for and this build or machine has none, Error{kUsage} on
/// another name
c10::Device ChooseDevice(const std::string& name);

}  // namespace trainwright

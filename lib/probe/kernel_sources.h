/// Of which sources the kernels for GEMMs of this build are.
#pragma once

#include <string_view>

namespace trainwright {

/// A hash of the sources of the kernels, of what measures them and of what chooses, in hexadecimal: the same
/// in all programs of a build. The build writes it (cmake/Layers.cmake).
extern const std::string_view kKernelSources;

}  // namespace trainwright

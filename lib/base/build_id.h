/// Which build of the program runs here.
#pragma once

#include <string>

namespace trainwright {

/// What the linker called this program (the GNU build ID), in hexadecimal: the same for every copy of one
/// build, different where code, flags or compiler were. Of a program without one, a hash of its file. Shared
/// libraries are no part of it.
std::string ProgramBuildId();

}  // namespace trainwright

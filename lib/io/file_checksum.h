/// Checksums of whole files.
#pragma once

#include <string>

namespace trainwright {

/// Reads in pieces: the pages of a mapped file would count as this process's memory.
/// \returns hexadecimal
/// \throws Error{kIo}
std::string Sha256OfFile(const std::string& path);

}  // namespace trainwright

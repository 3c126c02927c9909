/// Files that are cut while they are mapped.
///
/// Reading a page of a mapping that its file no longer has raises SIGBUS. A program that calls the function
/// below ends with the status of Error{kBadInput} and a message that names the file instead. It ends at once,
/// as by kill -9: nothing is sealed, and what is left is cleared away by the next writer. Every other SIGBUS
/// stays what it was.
#pragma once

namespace trainwright {

/// What a user can do about such a file.
inline constexpr char kCutMappingHint[] =
    "restore the file; do not write to files in use, but put new ones in their place";

/// To be called once, after whatever else sees to SIGBUS.
void TellCutMappings();

}  // namespace trainwright

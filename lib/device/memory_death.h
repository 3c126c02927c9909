/// Deaths for lack of memory, told apart from other crashes.
///
/// Where memory runs out inside a library that cannot say so, the process gets SIGSEGV or SIGABRT: oneDNN
/// destroys a kernel that it could not make, static initialisers and threads end in std::terminate. A
/// program that calls the function below ends with the status of Error{kIo} and its message instead, if at
/// the time of the signal it can get no more memory: less than 64 MiB, in practice under a limit. What
/// crashed there for another reason counts, too; its signal is named. Every other crash stays what it is.
#pragma once

namespace trainwright {

/// Sees to the signals of crashes. To be called before anything else, at best before the static initialisers
/// of libraries (tools/before_libraries.cc): it needs nothing of them.
void TellDeathsForMemory();

}  // namespace trainwright

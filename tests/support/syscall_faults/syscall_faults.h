/// Makes a chosen system call of a program under test fail, or end or interrupt the program.
///
/// Counts the calls that change files (open with O_CREAT, write, fsync, rename, symlink, mkdir) whose path
/// contains a given text; of open files the path is that of the descriptor. Interposed by symbol: link the
/// object library trainwright_syscall_faults into a test, or preload the module of the same source into a
/// process and describe the fault in its environment. Not thread-safe while calls are under way.
#pragma once

#include <string>
#include <vector>

namespace trainwright::test {

/// \param fault "CALL PATH NUMBER ACTION": the NUMBERth (from 1) CALL ("any", its name, "mmap" or
///     "unlinkat") on a path that contains PATH. ACTION is an error ("EIO" or "ENOSPC"), with which every
///     later such call fails, too, when it ends in "..."; or signals to raise before the call: "KILL",
///     "STOP", "INT", "TERM", "INT+INT", 1.2 s apart. Empty: none. A process takes it from the variable
///     SYSCALL_FAULT. Where SYSCALL_NO_RENAME_FLAGS is set, too, renameat2 knows no flags, as on network file
///     systems; such calls are not counted.
void SetSyscallFault(const std::string& fault);

/// Starts a new record of the calls on paths that contain `path`. fsync is recorded, but not made: what a
/// killed process leaves does not depend on it, and tests are faster without.
void RecordSyscalls(const std::string& path);
struct RecordedSyscall {
  std::string call, path;
  std::string from;  ///< of rename: the old name
};
/// The calls since; stops recording.
std::vector<RecordedSyscall> RecordedSyscalls();

}  // namespace trainwright::test

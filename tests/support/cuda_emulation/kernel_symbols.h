/// What the symbol table of the running program says of a kernel: its name and its shared memory.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace trainwright::cuda_emulation {

struct KernelSymbols {
  std::string name;                          ///< without namespace and template arguments
  std::vector<std::span<std::byte>> shared;  ///< its `__shared__` variables and those of other functions
};

/// Reads the table of the file that the kernel is in: of a program that is not stripped. Once a kernel;
/// thread-safe.
/// \throws Error{kInternal} without such a table, or a symbol in it
const KernelSymbols& SymbolsOf(const void* kernel);

}  // namespace trainwright::cuda_emulation

/// What makes two runs of the same work give the same bits, and the identity of the machine that decides
/// them.
///
/// On a CPU the bits of a run depend on the thread count, the instruction set and the torch build; nothing
/// else, once PrepareDeterminism ran. No autograd graph is ever built (no tensor requires gradients), so no
/// guard is needed.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// Call first thing in main, before any work of torch: makes MKL give results that do not depend on the
/// alignment of its operands (a value of MKL_CBWR that the user set is kept). How long idle threads spin is
/// read by libgomp before main, so the launcher of an engine says it (lib/cli/engine.h).
void PrepareDeterminism();

/// Threads of GEMMs and element-wise kernels.
/// \param threads >= 1, or 0 for the physical cores usable
/// \returns the number in effect
/// \throws std::system_error when the process cannot have this many
int SetComputeThreads(int threads);

/// Physical cores that this process may run on, each by the lowest number of its hyper-threads; at least 1.
std::vector<int> UsableCores();
/// How many they are.
int UsablePhysicalCores();

/// The instruction set that torch's, oneDNN's, MKL's and our kernels choose by: "AVX512+BF16 AMD" or
/// "AVX2 Intel", with "+BF16", "+FP16", "+AMX" where GEMMs of reduced precision are native, and "+BF16W"
/// where those of bf16 are usually computed in fp32, which is faster there (bf16_instructions.h). Part of a
/// checkpoint's state: other hardware gives other bits.
std::string CpuCapability();

/// Version and build of torch, as one line for the same purpose.
std::string TorchBuild();

}  // namespace trainwright

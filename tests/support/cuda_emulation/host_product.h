/// The seam of lib/nn/cuda/epilogue_product.h on the host: what cuBLASLt computes, by loops, with fp32 sums
/// in the order of the depth; candidate 1 adds them up in the other order. As that library it takes rows of
/// multiples of eight elements alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace trainwright::cuda_emulation {

/// Products that were computed since the last reset, by their epilogue: "none", "bias", "gelu", "gelu
/// gradient", "bias gradient"; "unsupported" counts those that were refused. Thread-safe.
std::map<std::string, int64_t> ProductCounts();
/// How often one was looked for, as cuBLASLt's heuristics look for an algorithm, since the last reset.
int64_t AlgorithmsAskedFor();
/// Forgets the algorithms, too.
void ResetProductCounts();

}  // namespace trainwright::cuda_emulation

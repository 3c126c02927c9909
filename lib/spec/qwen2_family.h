/// Qwen2: Llama with biases of the query, key and value projections. Yang et al. 2024, arXiv:2407.10671.
#pragma once

#include "lib/spec/family.h"

namespace trainwright {

const FamilyDescription& Qwen2Family();

}  // namespace trainwright

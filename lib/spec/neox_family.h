/// GPT-NeoX: LayerNorm, rotary positions of a part of each head, GELU, attention and MLP beside each other.
/// Black et al. 2022, arXiv:2204.06745. Trained without dropout.
#pragma once

#include "lib/spec/family.h"

namespace trainwright {

const FamilyDescription& NeoxFamily();

}  // namespace trainwright

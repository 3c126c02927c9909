/// GPT-2: LayerNorm before each block, learned positions, GELU. Radford et al. 2019, "Language Models are
/// Unsupervised Multitask Learners". Trained without dropout.
#pragma once

#include "lib/spec/family.h"

namespace trainwright {

const FamilyDescription& Gpt2Family();

}  // namespace trainwright

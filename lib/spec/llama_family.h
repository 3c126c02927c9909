/// Llama: RMSNorm, rotary positions, grouped-query attention, SwiGLU. Touvron et al. 2023, arXiv:2302.13971;
/// Ainslie et al. 2023, arXiv:2305.13245 (grouped queries).
#pragma once

#include "lib/spec/family.h"

namespace trainwright {

const FamilyDescription& LlamaFamily();

}  // namespace trainwright

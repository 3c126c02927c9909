/// Mistral: Llama with a sliding window. Jiang et al. 2023, arXiv:2310.06825.
#pragma once

#include "lib/spec/family.h"

namespace trainwright {

const FamilyDescription& MistralFamily();

}  // namespace trainwright

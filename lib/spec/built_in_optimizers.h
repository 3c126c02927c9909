/// What this library says about its optimizers. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/spec/optimizer_options.h"

namespace trainwright {

/// Takes every shared option and has none of its own.
OptimizerDescription AdamWDescription();

/// Plain gradients with momentum: lib/optim/sgd.h.
OptimizerDescription SgdDescription();
/// The sign of the momentum: lib/optim/lion.h.
OptimizerDescription LionDescription();
/// Orthogonal updates of the layers' matrices, AdamW for the rest: lib/optim/muon.h.
OptimizerDescription MuonDescription();
/// AdamW with moments in 8 bits of parameters of at least kLeast8BitElements: lib/optim/adamw_8bit.h.
OptimizerDescription AdamW8BitDescription();
/// bitsandbytes' min_8bit_size.
inline constexpr int64_t kLeast8BitElements = 4096;

/// Of all of them, in the order in which they are reported.
std::vector<OptimizerDescription> BuiltInOptimizerDescriptions();

}  // namespace trainwright

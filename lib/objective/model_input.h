/// A packed micro-batch as a model takes it.
#pragma once

#include "lib/loading/packed_batch.h"
#include "lib/model/language_model.h"

namespace trainwright {

/// The tensors of a batch on the CPU; they copy it.
ModelInput ToModelInput(const PackedBatch& batch);

}  // namespace trainwright

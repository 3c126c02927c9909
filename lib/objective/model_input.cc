#include "lib/objective/model_input.h"

#include <ATen/ops/tensor.h>

namespace trainwright {

ModelInput ToModelInput(const PackedBatch& batch) {
  const auto options = at::TensorOptions().dtype(at::kLong);
  return {{at::tensor(batch.tokens, options), at::tensor(batch.positions, options), batch.span_starts},
          at::tensor(batch.labels, options)};
}

}  // namespace trainwright

/// A micro-batch that is on the model's device before its pass begins: see BodyInput::staged.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/nn/attention/span_table.h"
#include "lib/nn/loss/head_labels.h"

namespace trainwright {

struct StagedInput {
  at::Tensor tokens_n;     ///< int64 [N]
  at::Tensor positions_n;  ///< int64 [N]
  SpanTable spans;
  HeadLabels labels;
};

}  // namespace trainwright

/// A micro-batch with the labels that its passes learn from.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "lib/model/body.h"

namespace trainwright {

/// What the head reads beside the body's results.
struct ModelInput : BodyInput {
  at::Tensor labels_n;  ///< int64 [N], negative where there is none
  /// fp32 [N]: what LossAndGradients multiplies the loss of each label by; undefined: 1.
  at::Tensor weights_n = {};
  /// What LossAndGradients calls before the last of its backward passes, of which there may be several:
  /// LanguageModel::set_tbptt. May be empty.
  std::function<void()> before_last_backward = {};
};

}  // namespace trainwright

/// What of a model is trained, and how the rest is kept. Free of torch.
#pragma once

#include <optional>

#include "lib/spec/lora_options.h"

namespace trainwright {

/// How frozen matrices of the layers are stored: in the type of the products, or in 4 bits
/// (lib/nn/linear/nf4.h).
enum class WeightFormat { kPlain, kNf4 };

/// Nothing said: all parameters are trained.
struct FineTuning {
  std::optional<LoraOptions> lora;                    ///< train adapters alone
  WeightFormat frozen_format = WeightFormat::kPlain;  ///< with adapters only
  bool operator==(const FineTuning&) const = default;
};

}  // namespace trainwright

/// What of a model is trained, and how the rest is kept. Free of torch.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/spec/lora_options.h"

namespace trainwright {

/// How frozen matrices of the layers are stored: in the type of the GEMMs, or in 4 bits
/// (lib/nn/linear/nf4.h).
enum class WeightFormat { kPlain, kNf4 };

/// What a model that embeds texts has beside its layers.
struct EmbeddingTuning {
  int64_t projection = 0;  ///< elements that a linear layer after the pooling makes of a vector; 0: no layer
  /// Whether a loss reads the logits. Else a head of its own is frozen: without a gradient the optimizer's
  /// decay would move it all the same.
  bool train_head = true;
  bool operator==(const EmbeddingTuning&) const = default;
};

/// Nothing said: all parameters are trained.
struct FineTuning {
  std::optional<LoraOptions> lora;                    ///< train adapters alone
  WeightFormat frozen_format = WeightFormat::kPlain;  ///< with adapters only
  std::optional<EmbeddingTuning> embedding = {};      ///< nothing: a model that embeds no texts
  bool operator==(const FineTuning&) const = default;
};

}  // namespace trainwright

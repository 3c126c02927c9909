/// What of a model is trained, and how the rest is kept. Free of torch.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/spec/lora_options.h"
#include "lib/spec/parameter_rules.h"
#include "lib/spec/weight_format.h"

namespace trainwright {

/// What a model that embeds texts has beside its layers.
struct EmbeddingTuning {
  int64_t projection = 0;  ///< elements that a linear layer after the pooling makes of a vector; 0: no layer
  /// Whether a loss reads the logits. Else a head of its own is frozen: without a gradient the optimizer's
  /// decay would move it all the same.
  bool train_head = true;
  /// Whether anything reads the logits at all; else the model's files may lack a head of its own.
  bool needs_head = true;
  bool operator==(const EmbeddingTuning&) const = default;
};

/// Nothing said: all parameters are trained.
struct FineTuning {
  std::optional<LoraOptions> lora;  ///< train adapters, and the modules that it names, alone
  /// Of the layers' matrices that can have an adapter, which are frozen then, and with kInt8 of a head of its
  /// own; without adapters for models that are only read.
  WeightFormat frozen_format = WeightFormat::kPlain;
  std::optional<EmbeddingTuning> embedding = {};  ///< nothing: a model that embeds no texts
  ParameterRules rules = {};                      ///< of parameters by their names
  bool operator==(const FineTuning&) const = default;
};

}  // namespace trainwright

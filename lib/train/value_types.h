/// The types that a model's values have: what a precision came to.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/model/language_model.h"

namespace trainwright {

/// Read off the model's tensors, "fp32", "bf16", "fp16" or "nf4".
struct ValueTypes {
  std::string masters;  ///< of what the optimizer updates
  std::string weights;  ///< of the matrices that GEMMs read; several are joined by "+"
  std::string logits;   ///< of hidden states, and of the logits that are computed from them
  std::string softmax;  ///< in which probabilities and losses are computed
  /// What fp32 values are rounded to, where the device has no fast GEMMs for it; empty: nothing.
  std::string rounded_to;

  /// "masters fp32, weights bf16, logits bf16, softmax fp32"
  std::string text() const;
};

ValueTypes ValueTypesOf(const LanguageModel& model);
nlohmann::ordered_json ToJson(const ValueTypes& types);

}  // namespace trainwright

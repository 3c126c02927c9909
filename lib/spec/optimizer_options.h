/// What a plan says of its optimizer, and what can be said of an optimizer without making one. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "lib/spec/optimizer_states.h"

namespace trainwright {

/// Of plans that name none: those of before there was a choice.
inline constexpr char kDefaultOptimizer[] = "adamw";

/// The knobs that most optimizers share, each taken by those that have it, and a place for the others.
struct OptimizerOptions {
  std::string name = kDefaultOptimizer;  ///< in the registry
  double beta1 = 0.9;                    ///< decay of the first moment, or of the momentum
  double beta2 = 0.95;                   ///< decay of the second moment
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  OptimizerStates states = OptimizerStates::kFp32;
  std::map<std::string, double> own = {};  ///< options that only this optimizer has, by name
};

/// What is trained, as far as sizes depend on it.
struct TrainedSizes {
  int64_t elements = 0;  ///< of the flat buffers, padding included
  int64_t segments = 1;  ///< see FlatParameters::StartSegment
};

struct OptimizerDescription {
  std::string name;           ///< of plans and files: "adamw"
  OptimizerOptions defaults;  ///< what a plan has where the user says nothing, `own` of all names included
  /// Bytes of all states together, for sizing memory before there is a model.
  std::function<int64_t(const OptimizerOptions&, const TrainedSizes&)> state_bytes;
};

}  // namespace trainwright

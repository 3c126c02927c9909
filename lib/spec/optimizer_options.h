/// What a plan says about its optimizer, and what can be said of an optimizer without making one. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lib/spec/optimizer_states.h"
#include "lib/spec/own_options.h"

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
  double average_decay = 0;  ///< of the moving average of the weights that any of them keeps; 0: none
  OwnOptions own = {};       ///< options that only this optimizer has
};

/// What is trained, as far as sizes depend on it.
struct TrainedSizes {
  int64_t elements = 0;  ///< of the flat buffers, padding included
  int64_t segments = 1;  ///< see FlatParameters::StartSegment
  /// Of them, those of the matrices of the layers (ProductMatrices), padding included.
  int64_t matrix_elements = 0;
  std::vector<int64_t> parameters = {};  ///< elements of each, without padding
};

struct OptimizerDescription {
  std::string name;  ///< of plans and files: "adamw"
  /// What a plan has where the user says nothing, `own` of all names included. An own option that comes later
  /// has the default that means what was done before it was there.
  OptimizerOptions defaults;
  /// The own options of `defaults` with what their values may be, checked when the optimizer is made; empty:
  /// any numbers.
  std::vector<OwnOption> own = {};
  /// Which options of a plan that not all optimizers take, by their names in a state; asking for others is
  /// refused.
  std::set<std::string> takes = {};
  /// Bytes of all states together, for sizing memory before there is a model.
  std::function<int64_t(const OptimizerOptions&, const TrainedSizes&)> state_bytes;
  /// Whether its rule treats each element by itself, with states of which each has one (by_element), found by
  /// FlatParameters::PlaceOf, and masters by Masters: then several ranks may update a part each.
  bool shardable = false;
  /// The peak learning rate of a run that is not given one, over AdamW's.
  double rate_over_adamw = 1;
  /// What is wrong with options together, where a run begins; empty: nothing. `beta1` is the lowest one of
  /// the run. Absent: all go together.
  std::function<std::string(const OptimizerOptions&)> problem = {};
};

}  // namespace trainwright

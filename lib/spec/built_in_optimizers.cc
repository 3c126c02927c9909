#include "lib/spec/built_in_optimizers.h"

#include <cstdint>
#include <string>

namespace trainwright {
namespace {

constexpr int64_t kFp32Bytes = 4;

/// An own option that is 0 or 1.
OwnOption Switch(const char* name, bool initial) {
  return {.name = name, .initial = initial ? 1 : 0, .least = 0, .most = 1, .whole = true};
}

void SetOwnDefaults(OptimizerDescription* description) {
  for (const OwnOption& option : description->own) {
    description->defaults.own[option.name] = option.initial;
  }
}

}  // namespace

OptimizerDescription AdamWDescription() {
  return {.name = kDefaultOptimizer,
          .defaults = {},
          .takes = {"beta1", "beta2", "epsilon", "weight_decay", "optimizer_states", "cycle_momentum"},
          .state_bytes =
              [](const OptimizerOptions& options, const TrainedSizes& sizes) {
                return OptimizerStateBytes(options.states, sizes.elements);
              },
          .shardable = true};
}

OptimizerDescription SgdDescription() {
  OptimizerDescription description = {
      .name = "sgd",
      .defaults = {.name = "sgd", .beta1 = 0.9, .weight_decay = 0},
      .own = {Switch("nesterov", false)},
      .takes = {"beta1", "weight_decay", "cycle_momentum"},
      .state_bytes = [](const OptimizerOptions&,
                        const TrainedSizes& sizes) { return kFp32Bytes * sizes.elements; },
      .shardable = true,
      .rate_over_adamw = 100,
      .problem = [](const OptimizerOptions& options) -> std::string {
        if (options.own.at("nesterov").number() == 0 || options.beta1 > 0) return "";
        return "nesterov=1 needs a momentum, which --beta1 0 leaves out: give a greater --beta1, or leave "
               "out nesterov";
      }};
  SetOwnDefaults(&description);
  return description;
}

OptimizerDescription LionDescription() {
  return {.name = "lion",
          .defaults = {.name = "lion", .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 1},
          .takes = {"beta1", "beta2", "weight_decay", "cycle_momentum"},
          .state_bytes = [](const OptimizerOptions&,
                            const TrainedSizes& sizes) { return kFp32Bytes * sizes.elements; },
          .shardable = true,
          .rate_over_adamw = 0.3};
}

OptimizerDescription MuonDescription() {
  OptimizerDescription description = {
      .name = "muon",
      .defaults = {.name = "muon"},
      .own = {{.name = "momentum", .initial = 0.95, .least = 0, .most = 0.9999},
              Switch("nesterov", true),
              {.name = "ns_steps", .initial = 5, .least = 1, .most = 99, .whole = true},
              Switch("match_rms_adamw", true),
              {.name = "adamw_factor", .initial = 1, .least = 0}},
      .takes = {"beta1", "beta2", "epsilon", "weight_decay"},
      .state_bytes = [](const OptimizerOptions&, const TrainedSizes& sizes) {
        return kFp32Bytes * (2 * sizes.elements - sizes.matrix_elements);
      }};
  SetOwnDefaults(&description);
  return description;
}

OptimizerDescription AdamW8BitDescription() {
  return {.name = "adamw8bit",
          .defaults = {.name = "adamw8bit"},
          .takes = {"beta1", "beta2", "epsilon", "weight_decay", "cycle_momentum"},
          .state_bytes = [](const OptimizerOptions&, const TrainedSizes& sizes) {
            int64_t bytes = 0;
            for (const int64_t elements : sizes.parameters) {
              constexpr int64_t kBlock = 256, kAlignment = 16;  // adamw_8bit.h, FlatParameters
              const int64_t blocks = (elements + kBlock - 1) / kBlock,
                            padded = (elements + kAlignment - 1) / kAlignment * kAlignment;
              bytes += elements < kLeast8BitElements ? 2 * kFp32Bytes * padded
                                                     : 2 * blocks * (kBlock + kFp32Bytes);
            }
            return bytes;
          }};
}

std::vector<OptimizerDescription> BuiltInOptimizerDescriptions() {
  return {AdamWDescription(), SgdDescription(), LionDescription(), MuonDescription(), AdamW8BitDescription()};
}

}  // namespace trainwright

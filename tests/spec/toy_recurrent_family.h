/// A family that exists in tests alone: a recurrence without attention. A layer holds W [D, D] and u [D], and
/// a norm [D] follows the last; tests/model/toy_family.h computes it.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "lib/spec/config_fields.h"
#include "lib/spec/family.h"
#include "lib/spec/shared_fields.h"

namespace trainwright::test {

/// What this family alone has.
struct ToyRecurrentFields {
  double recurrence_start = 0;  ///< what every element of u starts at
  bool operator==(const ToyRecurrentFields&) const = default;
};

class ToyRecurrentFamily final : public FamilyDescription {
 public:
  const char* model_type() const override { return "toy-recurrent"; }

  void Decode(const ConfigFields& fields, ModelConfig* config) const override {
    ReadShared(fields, config);
    config->hidden_size = fields.RequiredInteger("hidden_size");
    config->num_layers = ReadLayers(fields, "num_hidden_layers");
    config->max_positions = fields.RequiredInteger("trained_length");
    config->tie_embeddings = fields.Flag("tie_word_embeddings", true);
    const ToyRecurrentFields own{.recurrence_start = fields.Number("recurrence_start", 0.5)};
    if (!(own.recurrence_start >= 0 && own.recurrence_start <= 1)) {
      fields.Refuse("recurrence_start", "must be in [0, 1]");
    }
    config->own = FamilyFields::Of(own);
  }

  nlohmann::ordered_json Encode(const ModelConfig& config) const override {
    nlohmann::ordered_json out;
    WriteShared(config, "ToyRecurrentForCausalLM", &out);
    out["hidden_size"] = config.hidden_size;
    out["num_hidden_layers"] = config.num_layers;
    out["recurrence_start"] = config.own.As<ToyRecurrentFields>().recurrence_start;
    out["trained_length"] = config.max_positions;
    return out;
  }

  std::vector<ModelPreset> Presets() const override {
    ModelConfig config;
    config.preset = "toy-recurrent-tiny";
    config.family = this;
    config.hidden_size = 16;
    config.num_layers = 2;
    config.max_positions = 64;
    config.tie_embeddings = true;
    config.own = FamilyFields::Of(ToyRecurrentFields{.recurrence_start = 0.5});
    return {{config, "a toy"}};
  }

  int64_t CountParameters(const ModelConfig& config) const override {
    const int64_t width = config.hidden_size;
    return config.num_layers * (width * width + width) + width +
           (config.tie_embeddings ? 1 : 2) * config.vocab_size * width;
  }

  StepFlops CountStepFlops(const ModelConfig& config, const FineTuning& /*tuning*/) const override {
    const auto width = static_cast<double>(config.hidden_size);
    return {.per_token = 3 * 2 * static_cast<double>(config.num_layers) * width * width,
            .per_label = 3 * 2 * width * static_cast<double>(config.vocab_size)};
  }

  bool runs_on_gpu() const override { return false; }
};

inline const FamilyDescription& ToyRecurrent() {
  static const ToyRecurrentFamily family;
  return family;
}

}  // namespace trainwright::test

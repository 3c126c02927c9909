/// What the suite knows of a model family without computing it: its place in config.json, its presets and its
/// sizes. Free of torch; lib/model/model_family.h pairs a description with what makes the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lib/spec/fine_tuning.h"
#include "lib/spec/lora_targets.h"
#include "lib/spec/model_config.h"
#include "lib/spec/model_flops.h"
#include "lib/spec/own_options.h"
#include "lib/spec/saved_modules.h"

namespace trainwright {

class ConfigFields;

/// A shape with a name.
struct ModelPreset {
  ModelConfig config;  ///< its name is config.preset, and vocab_size 0
  /// For help: what the preset is. Neighbours with the same note are listed together.
  std::string note;
  /// The model of who names none, on a CPU or on a GPU: of all families one preset each.
  bool default_on_cpu = false, default_on_gpu = false;
};

/// A matrix of a layer, which can have an adapter.
struct LayerMatrix {
  std::string module;               ///< "model.layers.3.self_attn.q_proj"
  int64_t outputs = 0, inputs = 0;  ///< rows and columns
  int64_t layer = 0;
  double token_rows = 1;  ///< that it multiplies for a token
};

/// Without state: one constant serves the whole process, and configs point to it. Of any thread.
class FamilyDescription {
 public:
  FamilyDescription() = default;
  FamilyDescription(const FamilyDescription&) = delete;
  FamilyDescription& operator=(const FamilyDescription&) = delete;
  virtual ~FamilyDescription() = default;

  /// The family's name, as config.json spells it: "llama".
  virtual const char* model_type() const = 0;
  /// Reads the fields of a config.json of this family, all that change what its model computes. Those that it
  /// does not read are refused afterwards, but for what every family ignores.
  /// \param config of this family
  /// \throws Error{kBadInput} by ConfigFields
  virtual void Decode(const ConfigFields& fields, ModelConfig* config) const = 0;
  /// The fields that Decode reads, and what transformers wants beside them. model_type is added.
  virtual nlohmann::ordered_json Encode(const ModelConfig& config) const = 0;

  /// The smallest first.
  virtual std::vector<ModelPreset> Presets() const { return {}; }
  /// What of a preset can be chosen, by flags of its own: lib/spec/family_options.h. Names are the family's
  /// alone, or mean the same of all that have them.
  virtual std::vector<OwnOption> options() const { return {}; }
  /// \param chosen some of the options, with values that these can have
  virtual void Apply(const OwnOptions& /*chosen*/, ModelConfig* /*config*/) const {}
  /// All of the options, with their values in a config.
  virtual OwnOptions OptionsOf(const ModelConfig& /*config*/) const { return {}; }

  /// Exact, embeddings included (tied ones once).
  virtual int64_t CountParameters(const ModelConfig& config) const = 0;
  /// As the functions of lib/spec/model_flops.h.
  virtual StepFlops CountStepFlops(const ModelConfig& config, const FineTuning& tuning) const = 0;
  virtual int64_t CountAttentionPairs(const ModelConfig& /*config*/,
                                      const std::vector<int32_t>& /*starts*/) const {
    return 0;
  }

  /// Why transformers refuses a model of this config, which is sound; empty where it does not.
  virtual std::string ProblemInTransformers(const ModelConfig& /*config*/) const { return ""; }

  /// Tokens of a sequence at most.
  virtual int64_t LongestSequence(const ModelConfig& config) const { return config.max_positions; }
  /// Whether a token never depends on later ones: bidirectional attention is refused.
  virtual bool always_causal() const { return false; }
  /// Whether a recurrence is scanned, by the kind that --ten-scan says.
  virtual bool scans() const { return false; }
  /// Whether its residual stream can be stored in bf16: ComputeKinds::residual.
  virtual bool has_bf16_stream() const { return false; }
  /// Whether its model carries a state from token to token, so that a pass can go on from the one before it:
  /// Body::carries_state.
  virtual bool carries_state() const { return false; }

  /// Whether the model computes on a GPU. On shapes alone (torch's meta device) every family's does.
  virtual bool runs_on_gpu() const = 0;
  /// Whether the GEMMs of its layers' MLPs can be in fp8: ComputeKinds::fp8.
  virtual bool has_fp8_mlp() const { return false; }
  /// What can have adapters, in the order of the layers; none: the family takes no adapters.
  virtual std::vector<LayerMatrix> LayerMatrices(const ModelConfig& /*config*/) const { return {}; }
  virtual LoraBlocks lora_blocks() const { return {}; }
  /// What can be trained whole beside adapters.
  virtual OuterModules outer_modules() const { return {}; }
};

/// The family of a config, which has one.
const FamilyDescription& FamilyOf(const ModelConfig& config);

/// Those of its LayerMatrices that targets choose, as LoraOptions has these: indices, in order.
/// \throws Error{kUsage} listing the names there are
std::vector<size_t> ChooseLoraTargets(const std::string& targets, const ModelConfig& config);

/// What is wrong in models of a family with attention by a code of GRIT's, b for bidirectional and c for
/// causal; empty: nothing.
std::string ProblemOfAttention(const FamilyDescription& family, const std::string& code);

/// Refuses a model whose attention config.json asks for in both directions: tokens cannot be predicted by it.
/// \param is_causal ModelConfig::is_causal
/// \param path of the config.json, for the message
/// \throws Error{kBadInput}
void RequireCausal(bool is_causal, const std::string& path);

/// \throws Error{kDevice} where the family has no kernels for a GPU
void RequireGpuSupport(const ModelConfig& config);

}  // namespace trainwright

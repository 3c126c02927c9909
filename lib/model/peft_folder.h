/// An adapter in peft's layout: what peft opens, and what it wrote.
///
///   adapter_config.json  adapter_model.safetensors
///
/// The tensors are fp32, named base_model.model.<module>.lora_A.weight and .lora_B.weight, of DoRA
/// .lora_magnitude_vector, too, and of modules that are trained whole (peft's modules_to_save) as in the
/// model, by the names that transformers 5 gives them; a table of embeddings that is the head is there twice.
/// Of an adapter that was trained on a body alone (AutoModel, sentence-transformers) names are read without
/// their first part, too: layers.0 for model.layers.0.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "lib/model/language_model.h"
#include "lib/spec/lora_options.h"
#include "lib/spec/model_config.h"

namespace trainwright {

struct PeftConfig {
  LoraOptions lora;
  std::string base_model;  ///< a path or a name of the hub; empty: not said
  /// Names of target_modules that the folder's weights have no adapter of, with commas between; peft takes
  /// them where the model has no such module, either. They are not among lora.targets.
  std::string unused_targets = {};
  bool operator==(const PeftConfig&) const = default;
};

/// Whether a folder holds an adapter.
bool IsPeftFolder(const std::string& folder);

/// Reads adapter_config.json of LoRA. Fields that change the maths in a way that this build does not
/// compute (biases, ranks by module and so on) are refused by name.
/// \throws Error{kBadInput} naming `path` and the field
PeftConfig DecodePeftConfig(const std::string& text, const std::string& path);
/// The folder's, compared with its weights.
/// \throws Error{kBadInput, kIo}
PeftConfig ReadPeftConfig(const std::string& folder);

/// Requires that a model can have a folder's adapter: that its matrices and modules have the names that the
/// adapter was made for.
/// \param lora of the folder
/// \throws Error{kBadInput} naming adapter_config.json and the field
void RequireModulesOfModel(const std::string& folder, const LoraOptions& lora, const ModelConfig& model);
/// The same of a folder's configuration; and that the model lacks the modules of unused_targets, as a notice
/// says.
void RequireModelOfAdapter(const std::string& folder, const PeftConfig& config, const ModelConfig& model);

/// Writes the adapters of a model, and what is trained whole beside them, into an existing folder, each
/// file atomically.
/// \param values where defined, the trainable parameters as FlatParameters::values(): another thread may
///     train the model meanwhile
/// \throws Error{kIo}
void WritePeftFolder(const std::string& folder, const LanguageModel& model, const std::string& base_model,
                     const at::Tensor& values = {});

/// Fills the adapters of a model and what is trained whole beside them, and refreshes the compute copy.
/// F32, BF16 and F16 files.
/// \throws Error{kBadInput} naming the tensor that is missing, unexpected or of another shape or type, or
///     where the adapter unties embeddings that are the model's head; Error{kIo}
void LoadPeftWeights(const std::string& folder, FlatParameters* parameters);

/// Adds s B A of a folder's adapter to the weights of a model without adapters, scales the rows as DoRA
/// does, and takes over what was trained whole: fp32, computed in double.
/// \throws Error{kBadInput} as LoadPeftWeights; Error{kUsage} on targets that the model lacks
void MergePeftFolder(const std::string& folder, FlatParameters* parameters);

}  // namespace trainwright

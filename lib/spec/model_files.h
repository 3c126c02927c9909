/// Names of the files in a model's folder, as transformers and peft have them.
#pragma once

namespace trainwright {

inline constexpr char kConfigFileName[] = "config.json";
inline constexpr char kWeightsFileName[] = "model.safetensors";
inline constexpr char kWeightsIndexFileName[] = "model.safetensors.index.json";
inline constexpr char kAdapterConfigFileName[] = "adapter_config.json";
inline constexpr char kAdapterWeightsFileName[] = "adapter_model.safetensors";

}  // namespace trainwright

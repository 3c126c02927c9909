#include "lib/spec/family.h"

#include "lib/base/error.h"

namespace trainwright {

const FamilyDescription& FamilyOf(const ModelConfig& config) {
  TRAINWRIGHT_CHECK(config.family != nullptr);
  return *config.family;
}

std::vector<size_t> ChooseLoraTargets(const std::string& targets, const ModelConfig& config) {
  const FamilyDescription& family = FamilyOf(config);
  std::vector<std::string> modules;
  for (const LayerMatrix& matrix : family.LayerMatrices(config)) modules.push_back(matrix.module);
  return ChooseLoraTargets(targets, modules, family.lora_blocks());
}

std::string ProblemOfAttention(const FamilyDescription& family, const std::string& code) {
  if (!family.always_causal() || code.find('b') == std::string::npos) return "";
  return "--attn " + code + " lets tokens see later ones, and " + family.model_type() +
         " is always causal: use --attn " + std::string(code.size(), 'c');
}

void RequireCausal(bool is_causal, const std::string& path) {
  if (is_causal) return;
  throw Error(ErrorCode::kBadInput, path,
              "is_causal false is not supported here: bidirectional attention predicts no tokens", "",
              "make vectors by it, with embed or train --objective grit, or change the field to true for the "
              "attention of a language model");
}

void RequireGpuSupport(const ModelConfig& config) {
  const FamilyDescription& family = FamilyOf(config);
  if (family.runs_on_gpu()) return;
  throw Error(ErrorCode::kDevice, "model",
              std::string("models of the type ") + family.model_type() + " run on the CPU only so far", "",
              "use --device cpu");
}

}  // namespace trainwright

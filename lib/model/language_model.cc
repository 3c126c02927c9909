#include "lib/model/language_model.h"

#include "lib/model/gpt2.h"
#include "lib/model/llama.h"
#include "lib/model/neox.h"

namespace trainwright {

void LanguageModel::Offload(const OffloadChoice& choice, const std::string& folder) {
  FlatParameters& parameters = this->parameters();
  const at::Device device = parameters.values().device();
  if (choice.activations) {
    own_offload_ = MakeOffloadStack(device, folder);
    offload_ = own_offload_.get();
  }
  if (choice.gradients) {
    parameters.OffloadGradients(MakeOffloadStore(device, folder, parameters.gradient_buffer().size_bytes()));
  }
}

OffloadCounts LanguageModel::offload_counts() const {
  OffloadCounts counts;
  if (offload_ != nullptr) counts += offload_->counts();
  if (const OffloadStore* store = parameters().gradient_buffer().store()) counts += store->counts();
  return counts;
}

std::unique_ptr<LanguageModel> MakeModel(const ModelConfig& config, Precision precision, at::Device device,
                                         std::optional<uint64_t> seed, AttentionBackend attention,
                                         const FineTuning& tuning) {
  const Numerics numerics = ChooseNumerics(precision, device, attention);
  if (config.family == ModelFamily::kGpt2) {
    return std::make_unique<Gpt2>(config, numerics, device, seed, tuning);
  }
  if (config.family == ModelFamily::kNeox) {
    return std::make_unique<Neox>(config, numerics, device, seed, tuning);
  }
  return std::make_unique<Llama>(config, numerics, device, seed, tuning);
}

}  // namespace trainwright

#include "lib/model/language_model.h"

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

}  // namespace trainwright

#include "lib/model/language_model.h"

#include "lib/model/gpt2.h"
#include "lib/model/llama.h"
#include "lib/model/neox.h"

namespace trainwright {

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

#include "lib/model/built_in_families.h"

#include "lib/model/gpt2.h"
#include "lib/model/llama.h"
#include "lib/model/neox.h"
#include "lib/model/python_files.h"
#include "lib/model/ten.h"
#include "lib/spec/gpt2_family.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/mistral_family.h"
#include "lib/spec/neox_family.h"
#include "lib/spec/qwen2_family.h"
#include "lib/spec/ten_family.h"

namespace trainwright {
namespace {

template <typename Model>
std::shared_ptr<Body> Make(const ModelConfig& config, const Numerics& numerics, at::Device device,
                           std::optional<uint64_t> seed, const FineTuning& tuning) {
  return std::make_shared<Model>(config, numerics, device, seed, tuning);
}

}  // namespace

ModelFamilies BuiltInFamilies() {
  return ModelFamilies({
      {&LlamaFamily(), Make<Llama>},
      {&MistralFamily(), Make<Llama>},
      {&Qwen2Family(), Make<Llama>},
      {&Gpt2Family(), Make<Gpt2>},
      {&NeoxFamily(), Make<Neox>},
      {&TenFamily(), Make<Ten>,
       ModelCode{{"configuration_ten.py", kConfigurationTenText}, {"modeling_ten.py", kModelingTenText}}},
  });
}

}  // namespace trainwright

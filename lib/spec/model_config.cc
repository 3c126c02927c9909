#include "lib/spec/model_config.h"

#include "lib/spec/family.h"

namespace trainwright {

ModelConfig ComputedPart(ModelConfig config) {
  config.initializer_range = kUsualInitializerRange;
  config.dropouts.clear();
  return config;
}

int64_t CountParameters(const ModelConfig& config) {
  return FamilyOf(config).CountParameters(config);
}

}  // namespace trainwright

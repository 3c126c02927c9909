#include "lib/spec/model_config.h"

#include "lib/spec/family.h"

namespace trainwright {

int64_t CountParameters(const ModelConfig& config) {
  return FamilyOf(config).CountParameters(config);
}

}  // namespace trainwright

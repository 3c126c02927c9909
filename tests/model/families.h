/// The families of the tests: those that are built in.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>

#include "lib/model/built_in_families.h"

namespace trainwright::test {

inline const at::Device kCpu(at::kCPU);

inline const ModelFamilies& Families() {
  static const ModelFamilies families = BuiltInFamilies();
  return families;
}

/// The body of a model of a built-in family: as MakeModel, with the storage chosen.
inline std::shared_ptr<Body> MakeBody(const ModelConfig& config, const Numerics& numerics, at::Device device,
                                      std::optional<uint64_t> seed, const FineTuning& tuning = {}) {
  return Families().Of(config).make(config, numerics, device, seed, tuning);
}

}  // namespace trainwright::test

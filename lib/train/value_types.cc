#include "lib/train/value_types.h"

#include <c10/core/ScalarType.h>

#include <set>

#include "lib/spec/precision.h"

namespace trainwright {
namespace {

std::string NameOfValueType(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return PrecisionName(Precision::kFp32);
    case at::kBFloat16:
      return PrecisionName(Precision::kBf16);
    case at::kHalf:
      return PrecisionName(Precision::kFp16);
    default:
      return c10::toString(type);
  }
}

}  // namespace

std::string ValueTypes::text() const {
  return "masters " + masters + ", weights " + weights + ", logits " + logits + ", softmax " + softmax +
         (rounded_to.empty() ? "" : ", values rounded to " + rounded_to);
}

ValueTypes ValueTypesOf(const LanguageModel& model) {
  const FlatParameters& parameters = model.parameters();
  std::set<std::string> weights;
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.quantized()) {
      weights.insert(WeightFormatName(parameter.format));
    } else if (parameter.shape.size() == 2) {
      weights.insert(NameOfValueType(parameter.compute.scalar_type()));
    }
  }
  const Numerics& numerics = parameters.numerics();
  ValueTypes types = {.masters = NameOfValueType(parameters.values().scalar_type()),
                      .logits = NameOfValueType(numerics.storage),
                      .softmax = PrecisionName(Precision::kFp32)};
  for (const std::string& name : weights) types.weights += (types.weights.empty() ? "" : "+") + name;
  if (numerics.emulated()) types.rounded_to = PrecisionName(numerics.precision);
  return types;
}

nlohmann::ordered_json ToJson(const ValueTypes& types) {
  const auto rounded =
      types.rounded_to.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(types.rounded_to);
  return {{"masters", types.masters},
          {"weights", types.weights},
          {"logits", types.logits},
          {"softmax", types.softmax},
          {"rounded_to", rounded}};
}

}  // namespace trainwright

#include "lib/model/initialize.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <cmath>

#include "lib/base/rng.h"
#include "lib/nn/linear/lora.h"

namespace trainwright {

void InitializeWeights(uint64_t seed, int64_t num_layers,
                       const std::function<bool(const std::string& name)>& into_residual,
                       FlatParameters* parameters) {
  constexpr double kDeviation = 0.02;
  const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(num_layers));
  for (size_t i = 0; i < parameters->all().size(); ++i) {
    const Parameter& parameter = parameters->all()[i];
    if (IsAdapterParameter(parameter)) continue;
    if (parameter.shape.size() == 1) {
      at::Tensor vector = parameter.value;
      vector.fill_(parameter.name.ends_with(".bias") ? 0.0 : 1.0);
      continue;
    }
    const double deviation = into_residual(parameter.name) ? residual : kDeviation;
    const Rng rng(seed, "init/" + parameter.name);
    const bool in_place =
        !parameter.quantized && parameter.value.is_cpu() && parameter.value.scalar_type() == at::kFloat;
    at::Tensor host = in_place ? parameter.value : at::empty(parameter.shape, at::kFloat);
    auto* values = host.mutable_data_ptr<float>();
    at::parallel_for(0, parameter.size, 4096, [&](int64_t begin, int64_t end) {
      rng.FillNormal(begin, end - begin, deviation, values + begin);
    });
    parameters->Assign(i, host);
  }
  parameters->RefreshCompute();
  if (parameters->adapters() != nullptr) parameters->adapters()->Initialize(seed, parameters);
}

}  // namespace trainwright

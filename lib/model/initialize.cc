#include "lib/model/initialize.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/base/rng.h"
#include "lib/model/embedding_projection.h"
#include "lib/nn/linear/lora.h"

namespace trainwright {
namespace {

/// Sets the elements of a matrix from `begin` to `end`.
using FillRange = std::function<void(int64_t begin, int64_t end, float* values)>;

/// Vectors as InitializeWeights says.
/// \param filling of a matrix; it is called by several threads
/// \param chosen of all but the adapters
void Fill(const std::function<FillRange(const Parameter& matrix)>& filling, FlatParameters* parameters,
          const std::function<bool(const Parameter& parameter)>& chosen = {}) {
  for (size_t i = 0; i < parameters->all().size(); ++i) {
    const Parameter& parameter = parameters->all()[i];
    if (IsAdapterParameter(parameter) || (chosen && !chosen(parameter))) continue;
    if (parameter.shape.size() == 1) {
      at::Tensor vector = parameter.value;
      vector.fill_(parameter.name.ends_with(".bias") ? 0.0 : 1.0);
      continue;
    }
    const bool in_place =
        !parameter.quantized() && parameter.value.is_cpu() && parameter.value.scalar_type() == at::kFloat;
    at::Tensor host = in_place ? parameter.value : at::empty(parameter.shape, at::kFloat);
    auto* values = host.mutable_data_ptr<float>();
    const FillRange fill = filling(parameter);
    at::parallel_for(0, parameter.size, 4096,
                     [&](int64_t begin, int64_t end) { fill(begin, end, values + begin); });
    parameters->Assign(i, host);
  }
  parameters->RefreshCompute();
}

}  // namespace

void InitializeWeights(uint64_t seed, const ModelConfig& config,
                       const std::function<bool(const std::string& name)>& into_residual,
                       FlatParameters* parameters,
                       const std::function<bool(const Parameter& parameter)>& own) {
  const double usual = config.initializer_range;
  const double residual = usual / std::sqrt(2.0 * static_cast<double>(config.num_layers));
  const auto drawn = [&](const Parameter& matrix) -> FillRange {
    const double deviation = into_residual(matrix.name) ? residual : usual;
    return [rng = Rng(seed, "init/" + matrix.name), deviation](int64_t begin, int64_t end, float* values) {
      rng.FillNormal(begin, end - begin, deviation, values);
    };
  };
  Fill(drawn, parameters, [&](const Parameter& parameter) { return !own || !own(parameter); });
  if (parameters->adapters() != nullptr) parameters->adapters()->Initialize(seed, parameters);
}

void InitializeProjection(uint64_t seed, FlatParameters* parameters) {
  const auto drawn = [&](const Parameter& matrix) -> FillRange {
    return [rng = Rng(seed, "init/" + matrix.name)](int64_t begin, int64_t end, float* values) {
      rng.FillNormal(begin, end - begin, kUsualInitializerRange, values);
    };
  };
  Fill(drawn, parameters, &IsProjectionParameter);
}

void FillWithStandIns(FlatParameters* parameters) {
  std::vector<float> drawn(1 << 14);
  Rng(0, "stand-ins").FillNormal(0, drawn.size(), kUsualInitializerRange, drawn.data());
  const FillRange repeat = [&](int64_t begin, int64_t end, float* values) {
    for (auto at = static_cast<size_t>(begin); at < static_cast<size_t>(end);) {
      const size_t from = at % drawn.size(), count = std::min(drawn.size() - from, end - at);
      values = std::copy_n(drawn.data() + from, count, values);
      at += count;
    }
  };
  Fill([&](const Parameter&) { return repeat; }, parameters);
  if (parameters->adapters() != nullptr) parameters->adapters()->Initialize(/*seed=*/0, parameters);
}

}  // namespace trainwright

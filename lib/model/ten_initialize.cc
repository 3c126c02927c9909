#include "lib/model/ten_initialize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/nn/scan/eigen_decay.h"
#include "lib/spec/ten_family.h"

namespace trainwright {
namespace {

constexpr double kClosedMemory = -3, kGateBias = -2, kCouplingNoise = 0.01;

using Shape = std::vector<int64_t>;
/// The values of a parameter of that name and shape.
using Start = at::Tensor (*)(uint64_t seed, const std::string& name, const Shape& shape);

at::Tensor Identity(uint64_t /*seed*/, const std::string& /*name*/, const Shape& shape) {
  return at::eye(shape[0], at::kFloat);
}

at::Tensor Zeros(uint64_t /*seed*/, const std::string& /*name*/, const Shape& shape) {
  return at::zeros(shape, at::kFloat);
}

at::Tensor ClosedMemory(uint64_t /*seed*/, const std::string& /*name*/, const Shape& shape) {
  return at::full(shape, kClosedMemory, at::kFloat);
}

at::Tensor GateBias(uint64_t /*seed*/, const std::string& /*name*/, const Shape& shape) {
  return at::full(shape, kGateBias, at::kFloat);
}

at::Tensor Taps(uint64_t seed, const std::string& name, const Shape& shape) {
  const Rng rng(seed, "init/" + name);
  const double bound = 1 / std::sqrt(static_cast<double>(shape[1]));
  const at::Tensor taps = at::empty(shape, at::kFloat);
  auto* data = taps.mutable_data_ptr<float>();
  for (int64_t i = 0; i < taps.numel(); ++i) {
    data[i] = static_cast<float>((2 * rng.Uniform(static_cast<uint64_t>(i)) - 1) * bound);
  }
  return taps;
}

/// A block a head.
at::Tensor Coupling(uint64_t seed, const std::string& name, const Shape& shape) {
  const at::Tensor blocks = at::empty(shape, at::kFloat);
  Rng(seed, "init/" + name)
      .FillNormal(0, static_cast<uint64_t>(blocks.numel()),
                  kCouplingNoise / std::sqrt(static_cast<double>(shape[1])),
                  blocks.mutable_data_ptr<float>());
  return blocks.add_(at::eye(shape[1], at::kFloat));
}

/// By what a name ends with.
struct NamedStart {
  const char* name;
  Start start;
};
constexpr std::array<NamedStart, 6> kStarts = {{{".cell.conv.weight", Taps},
                                                {".cell.selective_proj.weight", Zeros},
                                                {".cell.memory.weight", Identity},
                                                {".cell.memory.gate", ClosedMemory},
                                                {".cell.coupling.weight", Coupling},
                                                {".cell.gate_proj.bias", GateBias}}};
constexpr char kLogDecay[] = ".cell.log_decay", kFrequency[] = ".cell.frequency";

const NamedStart* StartOf(const std::string& name) {
  const auto* found = std::find_if(kStarts.begin(), kStarts.end(),
                                   [&](const NamedStart& start) { return name.ends_with(start.name); });
  return found != kStarts.end() ? found : nullptr;
}

}  // namespace

bool StartsAsTen(const Parameter& parameter) {
  const std::string& name = parameter.name;
  return StartOf(name) != nullptr || name.ends_with(kLogDecay) || name.ends_with(kFrequency);
}

void InitializeTen(uint64_t seed, const ModelConfig& config, FlatParameters* parameters) {
  const TenFields& fields = TenFieldsOf(config);
  std::map<std::string, size_t> indices;
  for (size_t i = 0; i < parameters->all().size(); ++i) {
    const Parameter& parameter = parameters->all()[i];
    indices[parameter.name] = i;
    const NamedStart* start = StartOf(parameter.name);
    if (start != nullptr) parameters->Assign(i, start->start(seed, parameter.name, parameter.shape));
  }
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = "ten.layers." + std::to_string(layer), a_name = prefix + kLogDecay,
                      w_name = prefix + kFrequency;
    const DecayStart start =
        StartDecay(seed, a_name, w_name, fields, fields.eigenstates, layer, config.num_layers);
    parameters->Assign(indices.at(a_name), start.a_k);
    parameters->Assign(indices.at(w_name), start.w_k);
  }
  parameters->RefreshCompute();
}

}  // namespace trainwright

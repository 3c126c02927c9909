#include "lib/model/ten.h"

#include <ATen/ops/zeros.h>

#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/model/initialize.h"
#include "lib/model/ten_decoder.h"
#include "lib/model/ten_initialize.h"
#include "lib/model/ten_pass.h"
#include "lib/spec/ten_family.h"

namespace trainwright {
namespace {

/// The parameters of a layer, before they are allocated.
struct Indices {
  TenNorm cell_norm, mlp_norm;
  TenDynamics dynamics;
  size_t in = 0, gate = 0, gate_bias = 0, out = 0, coupling = 0, up = 0, down = 0;
  std::optional<size_t> convolution, selective, memory, memory_gate;
};

TenNorm AddNorm(const std::string& name, int64_t width, FlatParameters* parameters) {
  const size_t weight = parameters->Add(name + ".weight", {width}, false);
  return {weight, parameters->Add(name + ".bias", {width}, false)};
}

void AddCell(const ModelConfig& config, int64_t layer, const std::string& cell, FlatParameters* parameters,
             Indices* i) {
  const TenFields& fields = TenFieldsOf(config);
  const int64_t width = config.hidden_size, eigenstates = fields.eigenstates, channels = 2 * eigenstates,
                block = eigenstates / fields.heads;
  i->in = parameters->Add(cell + "in_proj.weight", {channels, width}, true);
  if (fields.convolution > 0) {
    i->convolution = parameters->Add(cell + "conv.weight", {channels, fields.convolution}, true);
    (*parameters)[*i->convolution].adaptable = false;  // no product reads it
  }
  i->dynamics.log_decay = parameters->Add(cell + "log_decay", {eigenstates}, false, fields.dynamics_rate);
  i->dynamics.frequency = parameters->Add(cell + "frequency", {eigenstates}, false, fields.dynamics_rate);
  if (fields.selective)
    i->selective = parameters->Add(cell + "selective_proj.weight", {channels, width}, true);
  if (fields.layer_memory && layer > 0) {
    i->memory = parameters->Add(cell + "memory.weight", {eigenstates, eigenstates}, true);
    i->memory_gate = parameters->Add(cell + "memory.gate", {1}, false);
  }
  i->coupling = parameters->Add(cell + "coupling.weight", {fields.heads, block, block}, true);
  (*parameters)[i->coupling].of_products = true;
  i->out = parameters->Add(cell + "out_proj.weight", {width, channels}, true);
  i->gate = parameters->Add(cell + "gate_proj.weight", {width, width}, true);
  i->gate_bias = parameters->Add(cell + "gate_proj.bias", {width}, false);
}

/// Adapters leave the block alone: its products have another number of rows.
void AddMultiScale(const std::string& prefix, FlatParameters* parameters, TenMultiScale* multi_scale) {
  const size_t first = parameters->all().size();
  multi_scale->AddLayer(prefix);
  for (size_t i = first; i < parameters->all().size(); ++i) {
    Parameter& parameter = (*parameters)[i];
    parameter.adaptable = false;
    parameter.of_products = parameter.shape.size() == 2;
  }
}

/// \param multi_scale null: none
Indices AddLayer(const ModelConfig& config, int64_t layer, FlatParameters* parameters,
                 TenMultiScale* multi_scale) {
  const std::string prefix = "ten.layers." + std::to_string(layer) + ".";
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  Indices i;
  i.cell_norm = AddNorm(prefix + "cell_norm", width, parameters);
  AddCell(config, layer, prefix + "cell.", parameters, &i);
  if (multi_scale != nullptr) AddMultiScale(prefix, parameters, multi_scale);
  i.mlp_norm = AddNorm(prefix + "mlp_norm", width, parameters);
  i.up = parameters->Add(prefix + "mlp.up_proj.weight", {wide, width}, true);
  i.down = parameters->Add(prefix + "mlp.down_proj.weight", {width, wide}, true);
  return i;
}

/// Of allocated parameters.
TenLayer LayerOf(const Indices& i, FlatParameters* parameters) {
  const auto linear = [&](size_t index) { return Linear(parameters, {index}); };
  TenLayer layer;
  layer.cell_norm = i.cell_norm;
  layer.mlp_norm = i.mlp_norm;
  layer.cell.in = linear(i.in);
  layer.cell.gate = Linear(parameters, {i.gate}, {i.gate_bias});
  layer.cell.out = linear(i.out);
  if (i.memory) layer.cell.memory = TenMemory{*i.memory, *i.memory_gate, linear(*i.memory)};
  layer.cell.convolution = i.convolution;
  if (i.selective) layer.cell.selective = linear(*i.selective);
  layer.cell.dynamics = i.dynamics;
  layer.cell.coupling = HeadCoupling(parameters, i.coupling);
  layer.up = linear(i.up);
  layer.down = linear(i.down);
  return layer;
}

/// The two numbers of an eigenstate have their gradients from one pass.
/// \throws Error{kUsage} where one is frozen and the other is not
void RequireDynamicsTogether(const FlatParameters& parameters) {
  const std::string end = ".log_decay";
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.name.ends_with(end)) continue;
    const std::string cell = parameter.name.substr(0, parameter.name.size() - end.size());
    if (parameters.Find(cell + ".frequency")->trainable == parameter.trainable) continue;
    throw Error(ErrorCode::kUsage, "--freeze", "takes only one of log_decay and frequency", cell,
                "freeze both or none");
  }
}

}  // namespace

const ModelConfig& Ten::CheckedConfig(const ModelConfig& config) {
  RequirePositive({{"vocab_size", config.vocab_size},
                   {"hidden_size", config.hidden_size},
                   {"intermediate_size", config.intermediate_size},
                   {"num_hidden_layers", config.num_layers}});
  const TenProblem problem = ProblemOfTen(config);
  if (!problem.field.empty()) RefuseConfig(problem.field, problem.problem);
  return config;
}

Ten::Ten(const ModelConfig& config, const Numerics& numerics, at::Device device, std::optional<uint64_t> seed,
         const FineTuning& tuning)
    : LayerStack(CheckedConfig(config), numerics, device, TenKeptTensors(config, numerics), tuning),
      fields_(TenFieldsOf(config)) {
  FlatParameters& parameters = this->parameters();
  if (fields_.multi_scale()) multi_scale_.emplace(config, numerics.scan, numerics, device, &parameters);
  tokens_ = parameters.Add("ten.embed_tokens.weight", {config.vocab_size, config.hidden_size}, true);
  std::vector<Indices> indices;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    parameters.StartSegment();
    indices.push_back(AddLayer(config, layer, &parameters, multi_scale_ ? &*multi_scale_ : nullptr));
  }
  parameters.StartSegment();
  final_norm_ = AddNorm("ten.norm", config.hidden_size, &parameters);
  AddHead("lm_head.weight", tokens_);
  AllocateParameters();
  RequireDynamicsTogether(parameters);
  for (const Indices& i : indices) layers_.push_back(LayerOf(i, &parameters));
  if (multi_scale_) multi_scale_->Bind();
  if (seed) Initialize(*seed);
}

void Ten::Initialize(uint64_t seed) {
  const auto into_residual = [](const std::string& name) {
    return name.ends_with(".out_proj.weight") || name.ends_with(".down_proj.weight");
  };
  const auto own = [this](const Parameter& parameter) {
    return StartsAsTen(parameter) || (multi_scale_ && TenMultiScale::Starts(parameter.name));
  };
  InitializeWeights(seed, config(), into_residual, &parameters(), own);
  if (multi_scale_) multi_scale_->Initialize(seed);
  InitializeTen(seed, config(), &parameters());  // and the compute copy of all
}

std::unique_ptr<LayerPass> Ten::NewPass(const DeviceInput& input) {
  if (input.mask != AttentionMask::kCausal) {
    throw Error(ErrorCode::kUsage, "model", "ten reads what comes before a token alone");
  }
  return std::make_unique<Pass>(this, input, std::vector<LayerStates*>());
}

at::Tensor Ten::ForwardFrom(const DeviceInput& input, const std::vector<LayerStates*>& states) {
  TRAINWRIGHT_CHECK(!states.empty() && states.size() < input.spans.starts.size());
  Pass pass(this, input, states);
  return RunForward(pass, input.spans, Keep::kNothing);
}

LayerStates Ten::NewState() const {
  const auto zeros = [&](const std::vector<int64_t>& shape) {
    return at::zeros(shape, at::TensorOptions().dtype(at::kFloat).device(device()));
  };
  const int64_t channels = 2 * fields_.eigenstates;
  LayerState layer;
  layer.scan_z = zeros({channels});
  if (fields_.convolution > 1) layer.conv_3z = zeros({fields_.convolution - 1, channels});
  for (size_t i = 0; i < fields_.windows.size(); ++i) {
    const std::vector<int64_t> shape = {2 * fields_.window_eigenstates()};
    layer.windows.push_back({.scan_z = zeros(shape), .sum_d = zeros(shape)});
  }
  return LayerStates(static_cast<size_t>(config().num_layers), layer);  // no state is written to
}

at::Tensor Ten::HiddenGradient(int64_t num_tokens) {
  return Get(Scratch::kDNormed, num_tokens, config().hidden_size);
}

std::unique_ptr<BodyDecoder> Ten::NewDecoder(int64_t /*max_tokens*/, int64_t sequences) {
  return std::make_unique<TenDecoder>(this, sequences);
}

int64_t Ten::activation_bytes() const {
  int64_t bytes = LayerStack::activation_bytes();
  for (const Buffer& buffer : scratch_) bytes += buffer.bytes();
  return bytes + (multi_scale_ ? multi_scale_->workspace_bytes() : 0);
}

void Ten::ReleaseActivations() {
  LayerStack::ReleaseActivations();
  scratch_.fill(Buffer());
  if (multi_scale_) multi_scale_->ReleaseWorkspace();
}

}  // namespace trainwright

#include "lib/nn/linear/lora.h"

#include <cmath>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/device/upload.h"
#include "lib/nn/activation/dropout.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/linear/matmul.h"

namespace trainwright {
namespace {

constexpr char kWeightSuffix[] = ".weight", kASuffix[] = ".lora_A.weight", kBSuffix[] = ".lora_B.weight",
               kMagnitudeSuffix[] = ".lora_magnitude_vector";

/// "model.layers.3.self_attn.q_proj" of "model.layers.3.self_attn.q_proj.weight".
std::string ModuleName(const std::string& weight) {
  return weight.ends_with(kWeightSuffix) ? weight.substr(0, weight.size() - sizeof(kWeightSuffix) + 1)
                                         : weight;
}

template <typename Takes>
std::vector<size_t> MatricesOfLayers(const FlatParameters& parameters, const Takes& takes) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const Parameter& parameter = parameters.all()[i];
    if (parameter.shape.size() != 2 || !takes(parameter)) continue;
    if (!NameInLayer(ModuleName(parameter.name)).empty()) indices.push_back(i);
  }
  return indices;
}

void Require(bool holds, const char* flag, double value, const std::string& problem) {
  if (holds) return;
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  throw Error(ErrorCode::kUsage, flag, text + " " + problem);
}

}  // namespace

bool IsAdapterParameter(const Parameter& parameter) {
  return parameter.name.ends_with(kASuffix) || parameter.name.ends_with(kBSuffix) ||
         parameter.name.ends_with(kMagnitudeSuffix);
}

std::vector<size_t> LayerMatrices(const FlatParameters& parameters) {
  return MatricesOfLayers(parameters, [](const Parameter& matrix) { return matrix.adaptable; });
}

std::vector<size_t> ProductMatrices(const FlatParameters& parameters) {
  return MatricesOfLayers(parameters,
                          [](const Parameter& matrix) { return matrix.adaptable || matrix.of_products; });
}

std::vector<size_t> LoraTargets(const std::string& targets, const FlatParameters& parameters,
                                const LoraBlocks& blocks) {
  const std::vector<size_t> matrices = LayerMatrices(parameters);
  std::vector<std::string> modules;
  for (const size_t index : matrices) modules.push_back(ModuleName(parameters.all()[index].name));
  std::vector<size_t> chosen = ChooseLoraTargets(targets, modules, blocks);
  for (size_t& index : chosen) index = matrices[index];
  return chosen;
}

LoraAdapters::LoraAdapters(const LoraOptions& options, const LoraBlocks& blocks, FlatParameters* parameters)
    : options_(options) {
  Require(options.rank >= 1 && options.rank <= kMostLoraRank, "--lora", static_cast<double>(options.rank),
          "is no rank: from 1 to " + std::to_string(kMostLoraRank));
  Require(options.alpha > 0 && std::isfinite(options.alpha), "--lora-alpha", options.alpha,
          "must be a number above 0");
  Require(options.dropout >= 0 && options.dropout < 1, "--lora-dropout", options.dropout,
          "must be at least 0 and below 1");
  const std::vector<size_t> targets = LoraTargets(options.targets, *parameters, blocks);
  for (size_t i = 0; i < parameters->all().size(); ++i) parameters->Freeze(i);
  // All A before all B: those that read one input lie side by side, and are one product.
  for (const size_t weight : targets) {
    const Parameter& base = parameters->all()[weight];
    LoraModule module{.name = ModuleName(base.name), .weight = weight};
    module.a = parameters->Add(module.name + kASuffix, {options.rank, base.shape[1]}, true);
    modules_.push_back(std::move(module));
  }
  for (LoraModule& module : modules_) {
    const Parameter base = parameters->all()[module.weight];
    module.b = parameters->Add(module.name + kBSuffix, {base.shape[0], options.rank}, true);
    if (base.file_order != FileOrder::kHeadsOutside) continue;
    (*parameters)[module.b].file_order = base.file_order;  // the rows of B are those of the weights
    (*parameters)[module.b].num_heads = base.num_heads;
  }
  if (!options.dora) return;
  for (LoraModule& module : modules_) {
    const Parameter base = parameters->all()[module.weight];
    module.magnitude = parameters->Add(module.name + kMagnitudeSuffix, {base.shape[0]}, false);
    if (base.file_order != FileOrder::kHeadsOutside) continue;
    (*parameters)[module.magnitude].file_order = base.file_order;
    (*parameters)[module.magnitude].num_heads = base.num_heads;
  }
}

void LoraAdapters::AllocateScales(const FlatParameters& parameters) {
  if (!options_.dora) return;
  std::vector<DoraMatrix> matrices;
  for (const LoraModule& module : modules_) {
    matrices.push_back({module.weight, module.a, module.b, module.magnitude});
  }
  dora_.emplace(parameters, std::move(matrices), options_.scaling());
}

void LoraAdapters::RefreshScales(FlatParameters& parameters) {
  if (dora_) dora_->Refresh(parameters);
}

std::optional<size_t> LoraAdapters::ModuleOf(size_t weight) const {
  for (size_t i = 0; i < modules_.size(); ++i) {
    if (modules_[i].weight == weight) return i;
  }
  return std::nullopt;
}

void LoraAdapters::Initialize(uint64_t seed, FlatParameters* parameters) const {
  for (const LoraModule& module : modules_) {
    const Parameter& a = (*parameters)[module.a];
    const Rng rng(seed, "lora/" + module.name);
    const double bound = 1.0 / std::sqrt(static_cast<double>(a.shape[1]));
    at::Tensor values = at::empty(a.shape, at::kFloat);
    auto* data = values.mutable_data_ptr<float>();
    for (int64_t i = 0; i < a.size; ++i) {
      data[i] = static_cast<float>((2 * rng.Uniform(static_cast<uint64_t>(i)) - 1) * bound);
    }
    parameters->Assign(module.a, values);
    at::Tensor b = (*parameters)[module.b].value;
    b.zero_();
  }
  parameters->RefreshCompute();
  if (!dora_) return;
  dora_->StartMagnitudes(parameters);
  parameters->RefreshCompute();
}

at::Tensor DropoutPosition::RowNumbers(int64_t num_tokens) const {
  constexpr int64_t kMostTokens = int64_t{1} << 26;  // of a sample
  TRAINWRIGHT_CHECK(!samples.empty() && samples[0].row == 0);
  const at::Tensor rows_n = at::empty({num_tokens}, at::kLong);
  auto* rows = rows_n.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < samples.size(); ++i) {
    const int64_t begin = samples[i].row, end = i + 1 < samples.size() ? samples[i + 1].row : num_tokens;
    const int64_t token = samples[i].token;
    TRAINWRIGHT_CHECK(begin <= end && end <= num_tokens && token + end - begin < kMostTokens);
    for (int64_t row = begin; row < end; ++row) {
      rows[row] = samples[i].index * kMostTokens + token + row - begin;
    }
  }
  return rows_n;
}

void LoraAdapters::StartDropout(const DropoutPosition& position, int64_t num_tokens, at::Device device,
                                bool pin) {
  dropout_.reset();
  if (options_.dropout == 0) return;
  dropout_ = {position.seed, position.step, Upload(position.RowNumbers(num_tokens), device, pin)};
}

std::vector<LoraAdapters::Group> LoraAdapters::GroupsOf(const FlatParameters& parameters,
                                                        const std::vector<LoraColumns>& columns) const {
  std::vector<Group> groups;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool joins = i > 0 && !drops() &&
                       parameters.Adjoin(modules_[columns[i - 1].module].a, modules_[columns[i].module].a);
    if (joins) {
      ++groups.back().count;
    } else {
      groups.push_back({i, 1});
    }
  }
  return groups;
}

void LoraAdapters::Drop(const FlatParameters& parameters, const LoraModule& module, const at::Tensor& x,
                        at::Tensor& out) const {
  const Rng rng(dropout_->seed, "lora/dropout/" + module.name, static_cast<uint64_t>(dropout_->step));
  // An input may be columns of a wider tensor.
  Dropout(parameters.numerics(), rng.key(), dropout_->rows_n, options_.dropout, x.contiguous(), out);
}

at::Tensor LoraAdapters::InputOf(const FlatParameters& parameters, const LoraModule& module,
                                 const at::Tensor& x) {
  if (!drops()) return x;
  at::Tensor dropped = dropped_.Get({x.size(0), x.size(1)}, x.scalar_type(), x.device());
  Drop(parameters, module, x, dropped);
  return dropped;
}

at::Tensor LoraAdapters::ForProduct(const FlatParameters& parameters, const at::Tensor& x, int64_t columns,
                                    Buffer& result) {
  const Numerics& numerics = parameters.numerics();
  const bool fp32 = x.is_cpu() || numerics.precision == Precision::kFp32;
  const bool in_place = !x.is_cpu() || numerics.precision == Precision::kFp32;
  return (in_place ? result : product_)
      .Get({x.size(0), columns}, fp32 ? at::kFloat : numerics.storage, x.device());
}

void LoraAdapters::Multiply(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) const {
  if (a.is_cpu()) {
    Matmul(a, b, out);
  } else {
    ScaledMatmul(a, b, options_.scaling(), out);
  }
}

at::Tensor LoraAdapters::Scaled(const FlatParameters& parameters, at::Tensor& product, Buffer& result) {
  if (!product.is_cpu()) return product;
  product.mul_(options_.scaling());
  if (parameters.numerics().precision == Precision::kFp32) return product;
  at::Tensor rounded =
      result.Get({product.size(0), product.size(1)}, parameters.numerics().storage, product.device());
  RoundInto(parameters.numerics(), product, rounded);
  return rounded;
}

void LoraAdapters::Forward(FlatParameters& parameters, const std::vector<LoraColumns>& columns,
                           const at::Tensor& x, at::Tensor& y) {
  const int64_t rank = options_.rank, in = x.size(1);
  for (const Group& group : GroupsOf(parameters, columns)) {
    const LoraModule& first = modules_[columns[group.first].module];
    const int64_t rows = rank * static_cast<int64_t>(group.count);
    at::Tensor product = ForProduct(parameters, x, rows, down_);
    Multiply(InputOf(parameters, first, x), parameters.ComputeMatrix(first.a, rows, in).t(), product);
    const at::Tensor down = Scaled(parameters, product, down_);
    for (size_t i = 0; i < group.count; ++i) {
      const LoraColumns& own = columns[group.first + i];
      at::Tensor out = y.narrow(1, own.begin, own.size);
      const at::Tensor up = parameters.ComputeMatrix(modules_[own.module].b, own.size, rank);
      Matmul(down.narrow(1, rank * static_cast<int64_t>(i), rank), up.t(), out, /*accumulate=*/true);
    }
  }
}

void LoraAdapters::Backward(FlatParameters& parameters, const std::vector<LoraColumns>& columns,
                            const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) {
  const int64_t rank = options_.rank, tokens = x.size(0), in = x.size(1);
  for (const Group& group : GroupsOf(parameters, columns)) {
    const LoraModule& first = modules_[columns[group.first].module];
    const int64_t rows = rank * static_cast<int64_t>(group.count);
    const at::Tensor input = InputOf(parameters, first, x);
    const at::Tensor a = parameters.ComputeMatrix(first.a, rows, in);
    at::Tensor product = ForProduct(parameters, x, rows, down_);
    Multiply(input, a.t(), product);
    const at::Tensor down = Scaled(parameters, product, down_);
    at::Tensor d_product = ForProduct(parameters, x, rows, d_down_);
    for (size_t i = 0; i < group.count; ++i) {
      const LoraColumns& own = columns[group.first + i];
      const LoraModule& module = modules_[own.module];
      const int64_t begin = rank * static_cast<int64_t>(i);
      const at::Tensor d_out = dy.narrow(1, own.begin, own.size);
      AccumulateWeightGradient(d_out, down.narrow(1, begin, rank),
                               parameters.NextGradient(module.b, own.size, rank));
      at::Tensor d_part = d_product.narrow(1, begin, rank);
      Multiply(d_out, parameters.ComputeMatrix(module.b, own.size, rank), d_part);
    }
    const at::Tensor d_down = Scaled(parameters, d_product, d_down_);
    AccumulateWeightGradient(d_down, input, parameters.NextGradient(first.a, rows, in));
    if (!d_x.defined()) continue;
    if (!drops()) {
      Matmul(d_down, a, d_x, /*accumulate=*/true);
      continue;
    }
    at::Tensor d_input = d_dropped_.Get({tokens, in}, x.scalar_type(), x.device());
    Matmul(d_down, a, d_input);
    Drop(parameters, first, d_input, d_input);
    d_x.add_(d_input);
  }
}

void LoraAdapters::Scale(const std::vector<LoraColumns>& columns, at::Tensor& y) const {
  if (!dora_) return;
  for (const LoraColumns& own : columns) {
    at::Tensor out = y.narrow(1, own.begin, own.size);
    ScaleColumns(dora_->scales(own.module), out);
  }
}

at::Tensor LoraAdapters::Unscaled(const at::Tensor& x, int64_t columns, at::ScalarType type) {
  return unscaled_.Get({x.size(0), columns}, type, x.device());
}

void LoraAdapters::ScaleBackward(FlatParameters& parameters, const std::vector<LoraColumns>& columns,
                                 const at::Tensor& dy, at::Tensor& outputs) {
  const Numerics& numerics = parameters.numerics();
  int64_t done = 0;
  const auto copy_to = [&](int64_t end) {
    if (end > done) outputs.narrow(1, done, end - done).copy_(dy.narrow(1, done, end - done));
    done = end;
  };
  for (const LoraColumns& own : columns) {
    copy_to(own.begin);
    at::Tensor out = outputs.narrow(1, own.begin, own.size);
    const at::Tensor d_out = dy.narrow(1, own.begin, own.size);
    at::Tensor d_magnitude = parameters.Gradient(modules_[own.module].magnitude);
    ScaleColumnsBackward(dora_->scales(own.module), dora_->norms(own.module), d_out, out, d_magnitude);
    done = own.begin + own.size;
  }
  copy_to(outputs.size(1));
  if (numerics.emulated()) RoundInto(numerics, outputs, outputs);
}

int64_t LoraAdapters::workspace_bytes() const {
  return product_.bytes() + down_.bytes() + d_down_.bytes() + dropped_.bytes() + d_dropped_.bytes() +
         unscaled_.bytes() + (dora_ ? dora_->bytes() : 0);
}

}  // namespace trainwright

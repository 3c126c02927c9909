#include "lib/optim/adamw_8bit.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <memory>
#include <tuple>

#include "lib/base/error.h"
#include "lib/nn/ops.h"
#include "lib/nn/update/adamw_8bit.h"
#include "lib/optim/fused_adamw.h"
#include "lib/spec/built_in_optimizers.h"

namespace trainwright {
namespace {

bool IsSmall(const Parameter& parameter) {
  return parameter.size < kLeast8BitElements;
}

}  // namespace

at::Tensor DynamicMap(bool is_signed) {
  constexpr double kScales[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
  std::vector<at::Tensor> values = {at::tensor({0.0f, 1.0f})};
  int64_t parts = is_signed ? 1 : 2;
  for (const double scale : kScales) {
    const at::Tensor bounds = at::linspace(0.1, 1, parts + 1, at::kFloat);
    const at::Tensor middles =
        bounds.narrow(0, 0, parts).add(bounds.narrow(0, 1, parts)).div_(2.0).mul_(scale);
    values.push_back(middles);
    if (is_signed) values.push_back(middles.neg());
    parts *= 2;
  }
  at::Tensor map = std::get<0>(at::cat(values).sort());
  TRAINWRIGHT_CHECK(map.numel() == kMapSize);
  return map;
}

AdamW8Bit::AdamW8Bit(FlatParameters* parameters, const OptimizerOptions& options)
    : Optimizer(parameters),
      options_(options),
      large_(LargeOf(*parameters)),
      small_(*parameters, IsSmall),
      signed_map_(DynamicMap(true).to(parameters->values().device())),
      unsigned_map_(DynamicMap(false).to(parameters->values().device())) {
  TRAINWRIGHT_CHECK(parameters->shard() == nullptr);
  const at::TensorOptions on_device = parameters->values().options();
  int64_t blocks = 0;
  for (const Large& large : large_) blocks += MomentBlocks(large.range.size);
  exp_avg_ = at::zeros({blocks * kMomentBlock}, on_device.dtype(at::kByte));
  exp_avg_sq_ = at::zeros_like(exp_avg_);
  exp_avg_largest_ = at::zeros({blocks}, on_device);
  exp_avg_sq_largest_ = at::zeros({blocks}, on_device);
  small_exp_avg_ = at::zeros({small_.elements()}, on_device);
  small_exp_avg_sq_ = at::zeros({small_.elements()}, on_device);
}

std::vector<AdamW8Bit::Large> AdamW8Bit::LargeOf(const FlatParameters& parameters) {
  std::vector<Large> all;
  int64_t block = 0;
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.trainable || IsSmall(parameter)) continue;
    all.push_back({{parameter.offset, parameter.size}, {parameter.decay, parameter.rate}, block});
    block += MomentBlocks(parameter.size);
  }
  return all;
}

std::vector<OptimizerState> AdamW8Bit::OwnStates() const {
  return {{.name = "exp_avg", .value = exp_avg_},
          {.name = "exp_avg_largest", .value = exp_avg_largest_},
          {.name = "exp_avg_sq", .value = exp_avg_sq_},
          {.name = "exp_avg_sq_largest", .value = exp_avg_sq_largest_},
          {.name = "small_exp_avg", .value = small_exp_avg_},
          {.name = "small_exp_avg_sq", .value = small_exp_avg_sq_}};
}

void AdamW8Bit::Step(const ParameterRange& range, at::Tensor& gradients, const OptimizerUpdate& update) {
  const int64_t end = range.begin + range.size;
  for (const Large& large : large_) {
    const int64_t first = large.range.begin, last = first + large.range.size;
    if (last <= range.begin || first >= end) continue;
    TRAINWRIGHT_CHECK(first >= range.begin && last <= end);
    UpdateLarge(large, gradients.narrow(0, first - range.begin, large.range.size), update);
  }
  small_.ForEach(range, [&](const Treatment& treatment, const std::vector<ParameterRange>& parts) {
    FusedAdamWTensors tensors;
    for (const ParameterRange& part : parts) {
      const int64_t place = small_.PlaceOf(part.begin);
      tensors.values.push_back(parameters()->Masters(part.begin, part.size));
      tensors.gradients.push_back(gradients.narrow(0, part.begin - range.begin, part.size));
      tensors.exp_avg.push_back(small_exp_avg_.narrow(0, place, part.size));
      tensors.exp_avg_sq.push_back(small_exp_avg_sq_.narrow(0, place, part.size));
    }
    FusedAdamW(options_, treatment, update, tensors);
  });
}

void AdamW8Bit::UpdateLarge(const Large& large, const at::Tensor& gradients, const OptimizerUpdate& update) {
  const DeviceInputs& inputs = update.inputs;
  const int64_t blocks = MomentBlocks(large.range.size);
  const auto codes = [&](const at::Tensor& all) {
    return all.narrow(0, large.block * kMomentBlock, blocks * kMomentBlock);
  };
  at::Tensor values = parameters()->Masters(large.range.begin, large.range.size), first = codes(exp_avg_),
             second = codes(exp_avg_sq_), first_largest = exp_avg_largest_.narrow(0, large.block, blocks),
             second_largest = exp_avg_sq_largest_.narrow(0, large.block, blocks);
  const double rate = large.treatment.rate;
  ops::AdamW8Bit(values, gradients, first, first_largest, second, second_largest, signed_map_, unsigned_map_,
                 inputs.learning_rate.defined() ? rate : update.learning_rate * rate, update.momentum,
                 options_.beta2, large.treatment.decay ? options_.weight_decay : 0.0, options_.epsilon,
                 inputs.step, IfDefined(inputs.divisor), IfDefined(inputs.found_inf),
                 IfDefined(inputs.learning_rate));
}

OptimizerKind AdamW8BitKind() {
  return {.description = AdamW8BitDescription(),
          .make = [](FlatParameters* parameters, const OptimizerOptions& options, uint64_t) {
            return std::make_unique<AdamW8Bit>(parameters, options);
          }};
}

}  // namespace trainwright

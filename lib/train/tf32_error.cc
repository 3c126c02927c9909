#include "lib/train/tf32_error.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <cstdio>

#include "lib/base/rng.h"
#include "lib/device/tf32_scope.h"

namespace trainwright {
namespace {

constexpr int64_t kRows = 256, kColumns = 256;  // the depth decides, so that the rest may be cheap

at::Tensor Normals(const char* stream, int64_t rows, int64_t columns, at::Device device) {
  at::Tensor values = at::empty({rows, columns}, at::kFloat);
  Rng(/*seed=*/0, stream)
      .FillNormal(0, static_cast<uint64_t>(values.numel()), /*deviation=*/1,
                  values.mutable_data_ptr<float>());
  return values.to(device);
}

}  // namespace

std::string Tf32Error::text() const {
  char number[32];
  std::snprintf(number, sizeof(number), "%.1e", relative);
  return std::string(number) + " of their size, of " + std::to_string(rows) + " x " + std::to_string(depth) +
         " x " + std::to_string(columns);
}

Tf32Error MeasureTf32Error(const ModelConfig& model, at::Device device) {
  Tf32Error error = {.rows = kRows, .depth = model.hidden_size, .columns = kColumns};
  const at::Tensor a = Normals("tf32 a", error.rows, error.depth, device),
                   b = Normals("tf32 b", error.depth, error.columns, device);
  const auto product = [&](bool tf32) {
    const Tf32Scope scope(tf32);
    return at::mm(a, b);
  };
  const at::Tensor exact = product(false), rounded = product(true);
  error.relative = rounded.sub(exact).norm().item<double>() / exact.norm().item<double>();
  return error;
}

}  // namespace trainwright

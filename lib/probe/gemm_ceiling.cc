#include "lib/probe/gemm_ceiling.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "lib/base/elapsed.h"
#include "lib/device/device_sync.h"
#include "lib/device/tf32_scope.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/peak_rate.h"

namespace trainwright {
namespace {

constexpr int64_t kSmallest = 256;
constexpr int kGpuWarmupRuns = 50;
/// Long enough on a CPU for the start of its threads not to count.
constexpr double kEnoughTimeS = 5e-3;

at::ScalarType DtypeOf(GemmType type) {
  switch (type) {
    case GemmType::kBf16:
      return at::kBFloat16;
    case GemmType::kFp16:
      return at::kHalf;
    case GemmType::kFp32:
    case GemmType::kTf32:
      return at::kFloat;
  }
  return at::kFloat;
}

/// Two matrices of small numbers (zeros would draw less power on a GPU) and their product.
class Product {
 public:
  Product(c10::Device device, GemmType type, GemmKernel kernel, int64_t size)
      : kernel_(kernel), device_(device) {
    const auto options = at::TensorOptions().dtype(DtypeOf(type)).device(device);
    a_ = at::empty({size, size}, options).uniform_(-1, 1);
    b_ = at::empty({size, size}, options).uniform_(-1, 1);
    out_ = at::zeros({size, size}, options);
  }
  void Run() {
    if (kernel_ == GemmKernel::kTrainwright) {
      Matmul(a_, b_, out_);
    } else {
      at::mm_out(out_, a_, b_);
    }
  }
  double TimeOfOne() {
    const auto start = std::chrono::steady_clock::now();
    Run();
    WaitFor(device_);
    return SecondsSince(start);
  }

 private:
  GemmKernel kernel_;
  c10::Device device_;
  at::Tensor a_, b_, out_;
};

}  // namespace

std::string GemmTypeName(GemmType type) {
  switch (type) {
    case GemmType::kFp32:
      return "fp32";
    case GemmType::kTf32:
      return "tf32";
    case GemmType::kBf16:
      return "bf16";
    case GemmType::kFp16:
      return "fp16";
  }
  return "";
}

std::vector<std::pair<GemmType, GemmKernel>> GemmsOf(c10::Device device) {
  if (device.is_cpu()) {
    return {{GemmType::kFp32, GemmKernel::kTrainwright},
            {GemmType::kBf16, GemmKernel::kTrainwright},
            {GemmType::kFp32, GemmKernel::kTorch},
            {GemmType::kBf16, GemmKernel::kTorch},
            {GemmType::kFp16, GemmKernel::kTorch}};
  }
  return {{GemmType::kFp32, GemmKernel::kTrainwright},
          {GemmType::kTf32, GemmKernel::kTrainwright},
          {GemmType::kBf16, GemmKernel::kTrainwright},
          {GemmType::kFp16, GemmKernel::kTrainwright}};
}

Measurement MeasureGemm(c10::Device device, GemmType type, GemmKernel kernel, const GemmBudget& budget,
                        const std::string& gpu) {
  const Tf32Scope tf32(type == GemmType::kTf32);
  const auto start = std::chrono::steady_clock::now();
  int64_t size = device.is_cpu() ? kSmallest : std::max(kSmallest, budget.largest / 4);
  auto product = std::make_unique<Product>(device, type, kernel, size);
  product->TimeOfOne();  // makes the kernel
  for (double once = product->TimeOfOne();
       size < budget.largest && once < std::min(kEnoughTimeS, budget.time_s / 20);
       once = product->TimeOfOne()) {
    // Eight times the work: not where that would take the budget.
    if (once * 8 > budget.time_s / 8) break;
    size *= 2;
    product = std::make_unique<Product>(device, type, kernel, size);
    product->TimeOfOne();
  }
  const double left_s = std::max(0.0, budget.time_s - SecondsSince(start));

  Measurement measured{.what = "gemm", .device = device.str()};
  measured.method = kernel == GemmKernel::kTrainwright ? "trainwright" : "torch";
  measured.dtype = GemmTypeName(type);
  measured.size = std::to_string(size) + " x " + std::to_string(size) + " x " + std::to_string(size);
  if (device.is_cpu()) measured.threads = at::get_num_threads();
  measured.unit = "flop/s";
  const auto n = static_cast<double>(size);
  measured.rate = MeasureRate(
      {.amount = 2 * n * n * n, .run = [&] { product->Run(); }, .finish = [&] { WaitFor(device); }},
      {.time_s = left_s * 0.75,
       .warmup_s = left_s * 0.25,
       .least_warmup_runs = device.is_cpu() ? 1 : kGpuWarmupRuns});
  const Precision precision = type == GemmType::kBf16   ? Precision::kBf16
                              : type == GemmType::kFp16 ? Precision::kFp16
                                                        : Precision::kFp32;
  // The table has no rate of tf32.
  if (const auto peak = PublishedPeakRate(gpu, precision); peak && type != GemmType::kTf32) {
    measured.fraction_of_spec = measured.rate.median / (peak->tflops * 1e12);
    measured.spec = peak->source;
  }
  return measured;
}

}  // namespace trainwright

#include "tests/support/cuda_emulation/host_product.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <numbers>
#include <optional>
#include <vector>

#include "lib/nn/cuda/algorithm_store.h"
#include "lib/nn/cuda/epilogue_product.h"

namespace trainwright {
namespace cuda_emulation {
namespace {

/// In what order of the depth a product is summed up: the "algorithms" of the host.
enum class Order { kForward, kBackward };
using Orders = cuda::AlgorithmStore<Order>;

struct Counts {
  std::mutex mutex;
  std::map<std::string, int64_t> of;
  int64_t asked = 0;
  std::shared_ptr<Orders> orders = std::make_shared<Orders>();
};
Counts& AllCounts() {
  static Counts counts;
  return counts;
}
void Count(const std::string& name) {
  const std::lock_guard<std::mutex> lock(AllCounts().mutex);
  ++AllCounts().of[name];
}

std::shared_ptr<Orders> KnownOrders() {
  const std::lock_guard<std::mutex> lock(AllCounts().mutex);
  return AllCounts().orders;
}

}  // namespace

std::map<std::string, int64_t> ProductCounts() {
  const std::lock_guard<std::mutex> lock(AllCounts().mutex);
  return AllCounts().of;
}
int64_t AlgorithmsAskedFor() {
  const std::lock_guard<std::mutex> lock(AllCounts().mutex);
  return AllCounts().asked;
}
void ResetProductCounts() {
  const std::lock_guard<std::mutex> lock(AllCounts().mutex);
  AllCounts().of.clear();
  AllCounts().asked = 0;
  AllCounts().orders = std::make_shared<Orders>();
}

}  // namespace cuda_emulation

namespace cuda {
namespace {

float Load(Storage type, const void* data, int64_t at) {
  switch (type) {
    case Storage::kBf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
    case Storage::kFp16:
      return __half2float(static_cast<const __half*>(data)[at]);
    case Storage::kFp32:
      break;
  }
  return static_cast<const float*>(data)[at];
}

void Store(Storage type, void* data, int64_t at, float value) {
  switch (type) {
    case Storage::kBf16:
      static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(value);
      return;
    case Storage::kFp16:
      static_cast<__half*>(data)[at] = __float2half_rn(value);
      return;
    case Storage::kFp32:
      static_cast<float*>(data)[at] = value;
  }
}

/// By the definition of the format.
float ValueOf(Fp8Format format, uint8_t code) {
  const bool e4m3 = format == Fp8Format::kE4m3;
  const int fraction_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  const int magnitude = code & 0x7F, exponent = magnitude >> fraction_bits,
            fraction = magnitude & ((1 << fraction_bits) - 1);
  if (e4m3 ? magnitude == 0x7F : magnitude > 0x7C) return NAN;
  float value = std::ldexp(static_cast<float>(exponent == 0 ? fraction : (1 << fraction_bits) + fraction),
                           (exponent == 0 ? 1 : exponent) - bias - fraction_bits);
  if (!e4m3 && magnitude == 0x7C) value = INFINITY;
  return code >= 0x80 ? -value : value;
}

/// The matrix in fp32, its rows contiguous.
/// \param fp8 null: of the storage type
std::vector<float> Values(Storage type, const Fp8Format* fp8, const ProductOperand& operand, int64_t rows,
                          int64_t columns) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t at = operand.transposed ? column * operand.stride + row : row * operand.stride + column;
      values[static_cast<size_t>(row * columns + column)] =
          fp8 != nullptr ? ValueOf(*fp8, static_cast<const uint8_t*>(operand.data)[at])
                         : Load(type, operand.data, at);
    }
  }
  return values;
}

double Tanh(double x) {
  return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}
float Gelu(double x) {
  return static_cast<float>(x * (1 + Tanh(x)) / 2);
}
float GeluSlope(double x) {
  const double t = Tanh(x), inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return static_cast<float>((1 + t) / 2 + x * (1 - t * t) * inner / 2);
}

using cuda_emulation::Order;

/// What cuBLASLt's heuristics answer: nullopt where it has no kernel.
std::optional<Order> OrderFor(const EpilogueProduct& product) {
  {
    const std::lock_guard<std::mutex> lock(cuda_emulation::AllCounts().mutex);
    ++cuda_emulation::AllCounts().asked;
  }
  if (product.fp8 &&
      (product.a.transposed || !product.b.transposed || product.depth % 16 != 0 ||
       product.columns % 16 != 0 || product.a.stride % 16 != 0 || product.b.stride % 16 != 0)) {
    return std::nullopt;
  }
  for (const int64_t elements : {product.columns, product.a.stride, product.b.stride, product.out_stride}) {
    if (elements % 8 != 0) return std::nullopt;
  }
  if (product.candidate > 1 || product.rows == 0 || product.columns == 0 || product.depth == 0) {
    return std::nullopt;
  }
  return product.candidate == 0 ? Order::kForward : Order::kBackward;
}

const char* NameOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return "bias";
    case Epilogue::kGelu:
      return "gelu";
    case Epilogue::kGeluGradient:
      return "gelu gradient";
    case Epilogue::kBiasGradient:
      return "bias gradient";
    case Epilogue::kNone:
      break;
  }
  return "none";
}

/// What becomes of a sum.
void Finish(const EpilogueProduct& product, int64_t row, int64_t column, float sum) {
  const int64_t at = row * product.out_stride + column;
  if (product.accumulate) sum += Load(product.out_type, product.out, at);
  if (product.bias != nullptr) sum += Load(product.out_type, product.bias, column);
  if (product.epilogue == Epilogue::kGelu) {
    Store(product.out_type, product.pre_activation, at, sum);
    sum = Gelu(sum);
  } else if (product.epilogue == Epilogue::kGeluGradient) {
    sum *= GeluSlope(Load(product.out_type, product.pre_activation, at));
  }
  Store(product.out_type, product.out, at, sum);
}

}  // namespace

int64_t EpilogueWorkspaceBytes() {
  return 256;
}

ProductStatus MultiplyWithEpilogue(const EpilogueProduct& product, void*, cudaStream_t) {
  const std::optional<Order> order = cuda_emulation::KnownOrders()->Of(AlgorithmKeyOf(product, /*device=*/0),
                                                                       [&] { return OrderFor(product); });
  if (!order) {
    cuda_emulation::Count("unsupported");
    return ProductStatus::kUnsupported;
  }
  cuda_emulation::Count(product.fp8 ? "fp8" : NameOf(product.epilogue));
  const Fp8Format *const a_fp8 = product.fp8 ? &product.fp8->a : nullptr, *const b_fp8 = product.fp8
                                                                                             ? &product.fp8->b
                                                                                             : nullptr;
  const std::vector<float> a = Values(product.operand_type, a_fp8, product.a, product.rows, product.depth),
                           b = Values(product.operand_type, b_fp8, product.b, product.depth, product.columns);
  std::vector<float> sums(static_cast<size_t>(product.columns));
  for (int64_t row = 0; row < product.rows; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    float sum_of_a = 0;
    for (int64_t i = 0; i < product.depth; ++i) {
      const int64_t k = order == Order::kForward ? i : product.depth - 1 - i;
      const float left = a[static_cast<size_t>(row * product.depth + k)];
      const float* const right = b.data() + k * product.columns;
      for (size_t column = 0; column < sums.size(); ++column) sums[column] += left * right[column];
      sum_of_a += left;
    }
    for (size_t column = 0; column < sums.size(); ++column) {
      const float scaled =
          product.fp8 ? sums[column] * *product.fp8->a_scale * *product.fp8->b_scale : sums[column];
      Finish(product, row, static_cast<int64_t>(column), scaled);
    }
    if (product.bias_gradient != nullptr) product.bias_gradient[row] = sum_of_a;
  }
  return ProductStatus::kDone;
}

}  // namespace cuda
}  // namespace trainwright

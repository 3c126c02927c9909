#include "lib/nn/peak_rate.h"

#include "lib/device/cuda_backend.h"
#include "lib/device/cuda_plugin.h"

namespace trainwright {
namespace {

struct PublishedRate {
  const char* gpu;
  double fp32_tflops, short_tflops;
  const char* source;
};

constexpr char kA100[] = "NVIDIA A100 Tensor Core GPU data sheet";
constexpr char kH100[] = "NVIDIA H100 Tensor Core GPU data sheet";

// Where a sheet states the rate with sparsity alone, half of it. Only GPUs that the CUDA backend takes.
constexpr PublishedRate kRates[] = {
    {"NVIDIA A100-SXM4-40GB", 19.5, 312, kA100},
    {"NVIDIA A100-SXM4-80GB", 19.5, 312, kA100},
    {"NVIDIA A100-PCIE-40GB", 19.5, 312, kA100},
    {"NVIDIA A100 80GB PCIe", 19.5, 312, kA100},
    {"NVIDIA H100 80GB HBM3", 67, 989.5, kH100},  // SXM
    {"NVIDIA H100 PCIe", 51, 756, kH100},
    {"NVIDIA H200", 67, 989.5, "NVIDIA H200 Tensor Core GPU data sheet"},
    {"NVIDIA L4", 30.3, 121, "NVIDIA L4 Tensor Core GPU data sheet"},
    {"NVIDIA L40S", 91.6, 362.05, "NVIDIA L40S GPU data sheet"},
    {"NVIDIA GeForce RTX 3090", 35.6, 71, "NVIDIA Ampere GA102 GPU architecture white paper"},
    {"NVIDIA GeForce RTX 4090", 82.6, 165.2, "NVIDIA Ada GPU architecture white paper"},
};

}  // namespace

std::optional<PeakRate> PublishedPeakRate(const std::string& gpu, Precision precision) {
  for (const PublishedRate& rate : kRates) {
    if (gpu != rate.gpu) continue;
    return PeakRate{precision == Precision::kFp32 ? rate.fp32_tflops : rate.short_tflops, rate.source};
  }
  return std::nullopt;
}

std::string GpuName(at::Device device) {
  if (!device.is_cuda()) return "";
  CudaDeviceInfo info{};
  const CudaPlugin* plugin = ProcessCudaBackend().plugin;
  const int32_t index = device.has_index() ? device.index() : 0;
  return plugin != nullptr && plugin->device_info(index, &info) ? info.name : "";
}

}  // namespace trainwright

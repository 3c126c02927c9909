// libtrainwright_cuda.so: the CUDA implementations of the operators in ops.h, over the torch-free launches of
// kernels.h, on torch's current stream.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sort.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/headeronly/version.h>
#include <torch/library.h>

#include <cstdio>

#include "lib/base/version.h"
#include "lib/device/cuda_plugin.h"
#include "lib/nn/cuda/kernels.h"
#include "lib/nn/ops.h"
#include "lib/nn/update/step_decision.h"

namespace trainwright::cuda {
namespace {

Storage StorageOf(const at::Tensor& stored) {
  switch (stored.scalar_type()) {
    case at::kFloat:
      return Storage::kFp32;
    case at::kBFloat16:
      return Storage::kBf16;
    case at::kHalf:
      return Storage::kFp16;
    default:
      TORCH_CHECK(false, "stored values are fp32, bf16 or fp16, not ", stored.scalar_type());
  }
}

/// The device and stream of an operator, after its tensors were checked.
class Launch {
 public:
  Launch(std::initializer_list<at::Tensor> tensors)
      : guard_(tensors.begin()->device()), stream_(c10::cuda::getCurrentCUDAStream()) {
    for (const at::Tensor& tensor : tensors) {
      TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous() && tensor.device() == tensors.begin()->device(),
                  "the operator takes contiguous tensors of one GPU");
    }
  }
  cudaStream_t stream() const { return stream_; }

 private:
  c10::cuda::CUDAGuard guard_;
  cudaStream_t stream_;
};

float* Floats(at::Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}
const float* Floats(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}
const int64_t* Longs(const at::Tensor& tensor) {
  return tensor.const_data_ptr<int64_t>();
}

void RoundInto(const at::Tensor& in, int64_t, at::Tensor& out) {
  const Launch launch({in, out});
  C10_CUDA_CHECK(Round(StorageOf(out), Floats(in), out.mutable_data_ptr(), in.numel(), launch.stream()));
}

void AddRmsNorm(const at::Tensor& residual_nd, const std::optional<at::Tensor>& update_nd,
                const at::Tensor& weight_d, double epsilon, int64_t, at::Tensor& sum_nd,
                at::Tensor& normed_nd, at::Tensor& rstd_n) {
  const Launch launch({residual_nd, update_nd.value_or(residual_nd), weight_d, normed_nd, rstd_n});
  C10_CUDA_CHECK(AddNorm(
      StorageOf(normed_nd), Floats(residual_nd), update_nd ? update_nd->const_data_ptr() : nullptr,
      Floats(weight_d), static_cast<float>(epsilon), residual_nd.size(0), residual_nd.size(1),
      update_nd ? Floats(sum_nd) : nullptr, normed_nd.mutable_data_ptr(), Floats(rstd_n), launch.stream()));
}

void RmsNormAgain(const at::Tensor& x_nd, const at::Tensor& rstd_n, const at::Tensor& weight_d, int64_t,
                  at::Tensor& normed_nd) {
  const Launch launch({x_nd, rstd_n, weight_d, normed_nd});
  C10_CUDA_CHECK(NormAgain(StorageOf(normed_nd), Floats(x_nd), Floats(rstd_n), Floats(weight_d), x_nd.size(0),
                           x_nd.size(1), normed_nd.mutable_data_ptr(), launch.stream()));
}

void RmsNormBackward(const at::Tensor& d_normed_nd, const at::Tensor& x_nd, const at::Tensor& rstd_n,
                     const at::Tensor& weight_d, int64_t, at::Tensor& d_x_nd, at::Tensor& d_weight_d) {
  const Launch launch({d_normed_nd, x_nd, rstd_n, weight_d, d_x_nd, d_weight_d});
  const int64_t rows = x_nd.size(0), width = x_nd.size(1);
  at::Tensor partial = at::empty({NormBackwardBlocks(rows), width}, x_nd.options());
  C10_CUDA_CHECK(NormBackward(StorageOf(d_normed_nd), d_normed_nd.const_data_ptr(), Floats(x_nd),
                              Floats(rstd_n), Floats(weight_d), rows, width, Floats(d_x_nd),
                              Floats(d_weight_d), Floats(partial), launch.stream()));
}

void Rope(at::Tensor& qkv, const at::Tensor& positions_n, const at::Tensor& cosines, const at::Tensor& sines,
          int64_t num_heads, int64_t num_kv_heads, int64_t, bool backward) {
  const Launch launch({qkv, positions_n, cosines, sines});
  C10_CUDA_CHECK(cuda::Rope(StorageOf(qkv), qkv.mutable_data_ptr(), Longs(positions_n), Floats(cosines),
                            Floats(sines), qkv.size(0), qkv.size(1), num_heads + num_kv_heads,
                            qkv.size(1) / (num_heads + 2 * num_kv_heads), cosines.size(1),
                            backward ? -1.0f : 1.0f, launch.stream()));
}

void Swiglu(const at::Tensor& gate_up, int64_t, at::Tensor& out_nf) {
  const Launch launch({gate_up, out_nf});
  C10_CUDA_CHECK(cuda::Swiglu(StorageOf(gate_up), gate_up.const_data_ptr(), out_nf.size(0), out_nf.size(1),
                              out_nf.mutable_data_ptr(), launch.stream()));
}

void SwigluBackward(const at::Tensor& d_out_nf, int64_t, at::Tensor& gate_up) {
  const Launch launch({d_out_nf, gate_up});
  C10_CUDA_CHECK(cuda::SwigluBackward(StorageOf(gate_up), gate_up.mutable_data_ptr(),
                                      d_out_nf.const_data_ptr(), d_out_nf.size(0), d_out_nf.size(1),
                                      launch.stream()));
}

void SoftmaxCrossEntropy(at::Tensor& logits_nv, const at::Tensor& targets_n, double z_loss,
                         double label_smoothing, double scale, const std::optional<at::Tensor>& loss_scale,
                         int64_t, bool gradients, at::Tensor& losses_n3) {
  const Launch launch({logits_nv, targets_n, loss_scale.value_or(targets_n), losses_n3});
  const LossTerms terms{static_cast<float>(z_loss), static_cast<float>(label_smoothing)};
  C10_CUDA_CHECK(CrossEntropy(StorageOf(logits_nv), logits_nv.mutable_data_ptr(), Longs(targets_n),
                              logits_nv.size(0), logits_nv.size(1), terms, static_cast<float>(scale),
                              loss_scale ? loss_scale->const_data_ptr<double>() : nullptr, gradients,
                              losses_n3.mutable_data_ptr<double>(), launch.stream()));
}

void Embed(const at::Tensor& table_vd, const at::Tensor& tokens_n, at::Tensor& out_nd) {
  at::index_select_out(out_nd, table_vd, 0, tokens_n);
}

void EmbedBackward(const at::Tensor& d_out_nd, const at::Tensor& tokens_n, at::Tensor& d_table_vd) {
  const Launch launch({d_out_nd, tokens_n, d_table_vd});
  const auto [tokens, rows] = at::sort(tokens_n, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  C10_CUDA_CHECK(EmbeddingBackward(Floats(d_out_nd), Longs(tokens), Longs(rows), d_out_nd.size(0),
                                   d_out_nd.size(1), Floats(d_table_vd), launch.stream()));
}

void SumOfSquares(const at::Tensor& values, at::Tensor& out) {
  const Launch launch({values, out});
  at::Tensor partial = at::empty({SumOfSquaresBlocks(values.numel())}, out.options());
  C10_CUDA_CHECK(cuda::SumOfSquares(Floats(values), values.numel(), partial.mutable_data_ptr<double>(),
                                    out.mutable_data_ptr<double>(), launch.stream()));
}

void FinishStep(const at::Tensor& sum_of_squares, int64_t step, const at::Tensor& denominators,
                double max_norm, bool scaled, at::Tensor& state, at::Tensor& term_rows, at::Tensor& outputs) {
  const Launch launch({sum_of_squares, denominators, state, term_rows, outputs});
  TORCH_CHECK(state.numel() == kStepStateFields && outputs.numel() == kStepOutputFields &&
              term_rows.numel() == kStepTermRows * denominators.numel());
  C10_CUDA_CHECK(cuda::FinishStep(sum_of_squares.const_data_ptr<double>(), static_cast<double>(step),
                                  denominators.const_data_ptr<double>(),
                                  static_cast<int>(denominators.numel()), max_norm, scaled,
                                  state.mutable_data_ptr<double>(), term_rows.mutable_data_ptr<double>(),
                                  Floats(outputs), launch.stream()));
}

void AdamWBf16Moments(at::Tensor& values, const at::Tensor& gradients, at::Tensor& exp_avg,
                      at::Tensor& exp_avg_sq, int64_t first, double learning_rate, double beta1, double beta2,
                      double weight_decay, double epsilon, int64_t key, const at::Tensor& step,
                      const std::optional<at::Tensor>& divisor, const std::optional<at::Tensor>& found_inf) {
  const Launch launch(
      {values, gradients, exp_avg, exp_avg_sq, step, divisor.value_or(step), found_inf.value_or(step)});
  TORCH_CHECK(gradients.numel() == values.numel() && exp_avg.numel() == values.numel() &&
              exp_avg_sq.numel() == values.numel());
  const auto bits = [](at::Tensor& moments) {
    return reinterpret_cast<uint16_t*>(moments.mutable_data_ptr<at::BFloat16>());
  };
  C10_CUDA_CHECK(cuda::AdamWBf16Moments(
      Floats(values), Floats(gradients), bits(exp_avg), bits(exp_avg_sq), first, values.numel(),
      {learning_rate, beta1, beta2, weight_decay, epsilon, static_cast<uint64_t>(key)}, Floats(step),
      divisor ? Floats(*divisor) : nullptr, found_inf ? Floats(*found_inf) : nullptr, launch.stream()));
}

DiagonalScanInput ScanInputOf(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                              const std::optional<at::Tensor>& angle_k,
                              const std::optional<at::Tensor>& lambda_nz, const at::Tensor& pieces_c5,
                              int64_t chunk) {
  const auto doubles = [](const std::optional<at::Tensor>& tensor) {
    return tensor ? tensor->const_data_ptr<double>() : nullptr;
  };
  TORCH_CHECK(lambda_nz || (log_modulus_k && angle_k), "a scan has a decay of all rows or one of each");
  return {.storage = StorageOf(b_nz),
          .rows = b_nz.size(0),
          .channels = b_nz.size(1) / 2,
          .chunk = chunk,
          .pieces_c5 = pieces_c5.const_data_ptr<int32_t>(),
          .pieces = pieces_c5.size(0),
          .log_modulus_k = doubles(log_modulus_k),
          .angle_k = doubles(angle_k),
          .lambda_nz = lambda_nz ? Floats(*lambda_nz) : nullptr,
          .b_nz = b_nz.const_data_ptr()};
}

/// Memory of a launch, of the tensor's device; null where there is none.
template <typename T>
T* DataOrNull(const std::optional<at::Tensor>& tensor) {
  return tensor ? tensor->mutable_data_ptr<T>() : nullptr;
}
const float* FloatsOrNull(const std::optional<at::Tensor>& tensor) {
  return tensor ? Floats(*tensor) : nullptr;
}
std::optional<at::Tensor> ScratchIf(bool wanted, at::IntArrayRef sizes, const at::TensorOptions& options) {
  return wanted ? std::optional<at::Tensor>(at::empty(sizes, options)) : std::nullopt;
}

void DiagonalScan(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                  const std::optional<at::Tensor>& angle_k, const std::optional<at::Tensor>& lambda_nz,
                  const at::Tensor& pieces_c5, const std::optional<at::Tensor>& initial_sz, int64_t chunk,
                  int64_t, at::Tensor& c_nz, at::Tensor& states_cz,
                  const std::optional<at::Tensor>& last_sz) {
  const Launch launch({b_nz, log_modulus_k.value_or(b_nz), angle_k.value_or(b_nz), lambda_nz.value_or(b_nz),
                       pieces_c5, initial_sz.value_or(b_nz), c_nz, states_cz, last_sz.value_or(b_nz)});
  const DiagonalScanInput input = ScanInputOf(b_nz, log_modulus_k, angle_k, lambda_nz, pieces_c5, chunk);
  const auto products_cz = ScratchIf(lambda_nz.has_value(), states_cz.sizes(), states_cz.options());
  C10_CUDA_CHECK(cuda::DiagonalScan(input, FloatsOrNull(initial_sz),
                                    {.c_nz = c_nz.mutable_data_ptr(),
                                     .states_cz = Floats(states_cz),
                                     .last_sz = DataOrNull<float>(last_sz),
                                     .products_cz = DataOrNull<float>(products_cz)},
                                    launch.stream()));
}

void DiagonalScanBackward(const at::Tensor& b_nz, const std::optional<at::Tensor>& log_modulus_k,
                          const std::optional<at::Tensor>& angle_k,
                          const std::optional<at::Tensor>& lambda_nz, const at::Tensor& pieces_c5,
                          const at::Tensor& states_cz, const at::Tensor& d_c_nz,
                          const std::optional<at::Tensor>& d_last_sz, int64_t chunk, int64_t,
                          at::Tensor& d_b_nz, const std::optional<at::Tensor>& d_lambda_z,
                          const std::optional<at::Tensor>& d_lambda_nz,
                          const std::optional<at::Tensor>& d_initial_sz) {
  const Launch launch({b_nz, log_modulus_k.value_or(b_nz), angle_k.value_or(b_nz), lambda_nz.value_or(b_nz),
                       pieces_c5, states_cz, d_c_nz, d_last_sz.value_or(b_nz), d_b_nz,
                       d_lambda_z.value_or(b_nz), d_lambda_nz.value_or(b_nz), d_initial_sz.value_or(b_nz)});
  const DiagonalScanInput input = ScanInputOf(b_nz, log_modulus_k, angle_k, lambda_nz, pieces_c5, chunk);
  const at::TensorOptions floats = states_cz.options();
  const bool of_decay = d_lambda_z.has_value() || d_lambda_nz.has_value();
  const at::Tensor carries_cz = at::empty(states_cz.sizes(), floats);
  const auto products_cz = ScratchIf(lambda_nz.has_value(), states_cz.sizes(), floats);
  const auto stretches_xz =
      ScratchIf(of_decay, {DiagonalScanStretches(input.rows, input.pieces), b_nz.size(1)}, floats);
  const auto partial_cz = ScratchIf(d_lambda_z.has_value(), states_cz.sizes(), floats.dtype(at::kDouble));
  const auto tickets =
      ScratchIf(d_lambda_z.has_value(), {DiagonalScanTickets(input.channels)}, floats.dtype(at::kInt));
  C10_CUDA_CHECK(cuda::DiagonalScanBackward(input, Floats(states_cz), d_c_nz.const_data_ptr(),
                                            FloatsOrNull(d_last_sz),
                                            {.d_b_nz = d_b_nz.mutable_data_ptr(),
                                             .d_lambda_z = DataOrNull<double>(d_lambda_z),
                                             .d_lambda_nz = DataOrNull<float>(d_lambda_nz),
                                             .d_initial_sz = DataOrNull<float>(d_initial_sz),
                                             .carries_cz = carries_cz.mutable_data_ptr<float>(),
                                             .products_cz = DataOrNull<float>(products_cz),
                                             .stretches_xz = DataOrNull<float>(stretches_xz),
                                             .partial_cz = DataOrNull<double>(partial_cz),
                                             .tickets = DataOrNull<int32_t>(tickets)},
                                            launch.stream()));
}

/// Registers a function of the type that the operator has in ops.h.
template <typename Function>
void Implement(torch::Library* library, const char* name, Function* implementation) {
  library->impl(name, implementation);
}

void RegisterOperators() {
  // Lives as long as the process, as the plugin does: torch may call at any time.
  static auto* const library =
      new torch::Library(torch::Library::IMPL, "trainwright", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  Implement<decltype(ops::RoundInto)>(library, "round_into", &RoundInto);
  Implement<decltype(ops::AddRmsNorm)>(library, "add_rms_norm", &AddRmsNorm);
  Implement<decltype(ops::RmsNormAgain)>(library, "rms_norm_again", &RmsNormAgain);
  Implement<decltype(ops::RmsNormBackward)>(library, "rms_norm_backward", &RmsNormBackward);
  Implement<decltype(ops::Rope)>(library, "rope", &Rope);
  Implement<decltype(ops::Swiglu)>(library, "swiglu", &Swiglu);
  Implement<decltype(ops::SwigluBackward)>(library, "swiglu_backward", &SwigluBackward);
  Implement<decltype(ops::SoftmaxCrossEntropy)>(library, "softmax_cross_entropy", &SoftmaxCrossEntropy);
  Implement<decltype(ops::Embed)>(library, "embed", &Embed);
  Implement<decltype(ops::EmbedBackward)>(library, "embed_backward", &EmbedBackward);
  Implement<decltype(ops::SumOfSquares)>(library, "sum_of_squares", &SumOfSquares);
  Implement<decltype(ops::FinishStep)>(library, "finish_step", &FinishStep);
  Implement<decltype(ops::AdamWBf16Moments)>(library, "adamw_bf16_moments", &AdamWBf16Moments);
  Implement<decltype(ops::DiagonalScan)>(library, "diagonal_scan", &DiagonalScan);
  Implement<decltype(ops::DiagonalScanBackward)>(library, "diagonal_scan_backward", &DiagonalScanBackward);
}

int32_t DeviceCount(char* problem, size_t problem_size) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count;
  std::snprintf(problem, problem_size, "%s", cudaGetErrorString(status));
  return -1;
}

bool DeviceInfo(int32_t device, CudaDeviceInfo* info) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return false;
  std::snprintf(info->name, sizeof(info->name), "%s", properties.name);
  for (size_t i = 0; i < sizeof(properties.uuid.bytes); ++i) {
    std::snprintf(info->uuid + 2 * i, 3, "%02x", static_cast<unsigned char>(properties.uuid.bytes[i]));
  }
  info->capability_major = properties.major;
  info->capability_minor = properties.minor;
  info->memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  return true;
}

int64_t PeakMemoryBytes(int32_t device) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  return stats.allocated_bytes[0].peak;  // [0]: the aggregate
}

int64_t FreeMemoryBytes(int32_t device) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<int64_t>(free) : 0;
}

int64_t CapMemory(int32_t device, double fraction) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  size_t free = 0, total = 0;
  c10::cuda::CUDACachingAllocator::setMemoryFraction(fraction, static_cast<c10::DeviceIndex>(device));
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  return static_cast<int64_t>(fraction * static_cast<double>(total));
}

void RefuseWaiting(bool refuse) {
  c10::cuda::warning_state().set_sync_debug_mode(refuse ? c10::cuda::SyncDebugMode::L_ERROR
                                                        : c10::cuda::SyncDebugMode::L_DISABLED);
}

constexpr CudaPlugin kPlugin = {.interface = kCudaPluginInterface,
                                .trainwright_version = TRAINWRIGHT_VERSION,
                                .torch_version = TORCH_VERSION,
                                .register_operators = &RegisterOperators,
                                .device_count = &DeviceCount,
                                .device_info = &DeviceInfo,
                                .peak_memory_bytes = &PeakMemoryBytes,
                                .free_memory_bytes = &FreeMemoryBytes,
                                .cap_memory = &CapMemory,
                                .refuse_waiting = &RefuseWaiting};

}  // namespace
}  // namespace trainwright::cuda

extern "C" [[gnu::visibility("default")]] const trainwright::CudaPlugin* trainwright_cuda_plugin() {
  return &trainwright::cuda::kPlugin;
}

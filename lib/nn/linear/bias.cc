#include "lib/nn/linear/bias.h"

#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

void AddBias(const Numerics& numerics, const at::Tensor& bias_o, at::Tensor& y_no) {
  if (!y_no.is_cpu()) {
    if (bias_o.defined()) ops::AddBias(bias_o, numerics.code(), y_no);
    return;
  }
  const int64_t width = y_no.size(1), stride = y_no.stride(0);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  if (!bias_o.defined() && !numerics.emulated()) return;
  const float* bias = cpu::DataOrNull(bias_o);
  void* y = y_no.mutable_data_ptr();
  cpu::ParallelRows(y_no.size(0), width, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().add_bias(codec, y, bias, width, stride, begin, end);
  });
}

void AccumulateBiasGradient(const Numerics& numerics, const at::Tensor& dy_no, at::Tensor& d_bias_o) {
  if (!dy_no.is_cpu()) return ops::BiasBackward(dy_no, numerics.code(), d_bias_o);
  const int64_t width = dy_no.size(1), stride = dy_no.stride(0);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* dy = dy_no.const_data_ptr();
  float* d_bias = d_bias_o.mutable_data_ptr<float>();
  cpu::SumOverRowBlocks(
      dy_no.size(0), width,
      [&](float* sums, int64_t begin, int64_t end) {
        cpu::BestKernels().column_sums(codec, dy, width, stride, sums, begin, end);
      },
      [&](const float* sums) {
        for (int64_t i = 0; i < width; ++i) d_bias[i] += sums[i];
      });
}

}  // namespace trainwright

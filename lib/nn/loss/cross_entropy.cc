#include "lib/nn/loss/cross_entropy.h"

#include <memory>
#include <optional>

#include "lib/base/error.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

void SoftmaxCrossEntropy(const Numerics& numerics, at::Tensor& logits_np, const at::Tensor& targets_n,
                         int64_t vocabulary, const LossTerms& terms, const GradientScale& scale,
                         bool gradients, at::Tensor& losses_n3) {
  if (!logits_np.is_cpu()) {
    const std::optional<at::Tensor> on_device =
        scale.on_device.defined() ? std::optional(scale.on_device) : std::nullopt;
    return ops::SoftmaxCrossEntropy(logits_np, targets_n, vocabulary, terms.z_loss, terms.label_smoothing,
                                    scale.factor, on_device, numerics.code(), gradients, losses_n3);
  }
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const double factor =
      scale.on_device.defined() ? scale.factor * *scale.on_device.const_data_ptr<double>() : scale.factor;
  const int64_t padded = logits_np.size(1);
  TRAINWRIGHT_CHECK(vocabulary <= padded);
  auto* logits = static_cast<char*>(logits_np.mutable_data_ptr());
  const int64_t* targets = targets_n.const_data_ptr<int64_t>();
  double* losses = losses_n3.mutable_data_ptr<double>();
  // The kernel has rows of the vocabulary side by side: of wider ones it gets each by itself.
  const auto compute = [&](char* row_logits, int64_t first, float* scratch, int64_t begin, int64_t end) {
    cpu::BestKernels().cross_entropy(codec, row_logits, targets + first, vocabulary, terms,
                                     static_cast<float>(factor), gradients, losses + 3 * first, scratch,
                                     begin, end);
  };
  const bool needs_scratch = gradients && codec == cpu::Codec::kBf16;
  at::parallel_for(0, logits_np.size(0), 1, [&](int64_t begin, int64_t end) {
    const auto scratch =
        std::make_unique_for_overwrite<float[]>(needs_scratch ? static_cast<size_t>(vocabulary) : 0);
    if (padded == vocabulary) return compute(logits, 0, scratch.get(), begin, end);
    for (int64_t row = begin; row < end; ++row) {
      compute(logits + row * padded * logits_np.element_size(), row, scratch.get(), 0, 1);
    }
  });
  if (gradients && padded > vocabulary) logits_np.narrow(1, vocabulary, padded - vocabulary).zero_();
}

}  // namespace trainwright

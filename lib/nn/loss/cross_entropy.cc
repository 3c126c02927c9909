#include "lib/nn/loss/cross_entropy.h"

#include <optional>

#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

void SoftmaxCrossEntropy(const Numerics& numerics, at::Tensor& logits_nv, const at::Tensor& targets_n,
                         const LossTerms& terms, const GradientScale& scale, bool gradients,
                         at::Tensor& losses_n3) {
  if (!logits_nv.is_cpu()) {
    const std::optional<at::Tensor> on_device =
        scale.on_device.defined() ? std::optional(scale.on_device) : std::nullopt;
    return ops::SoftmaxCrossEntropy(logits_nv, targets_n, terms.z_loss, terms.label_smoothing, scale.factor,
                                    on_device, numerics.code(), gradients, losses_n3);
  }
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const double factor =
      scale.on_device.defined() ? scale.factor * *scale.on_device.const_data_ptr<double>() : scale.factor;
  const int64_t vocabulary = logits_nv.size(1);
  void* logits = logits_nv.mutable_data_ptr();
  const int64_t* targets = targets_n.const_data_ptr<int64_t>();
  double* losses = losses_n3.mutable_data_ptr<double>();
  at::parallel_for(0, logits_nv.size(0), 1, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().cross_entropy(codec, logits, targets, vocabulary, terms, static_cast<float>(factor),
                                     gradients, losses, begin, end);
  });
}

}  // namespace trainwright

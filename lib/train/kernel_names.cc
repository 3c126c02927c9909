#include "lib/train/kernel_names.h"

#include "lib/nn/attention/attention_backend.h"

namespace trainwright {
namespace {

std::string AttentionKernel(const ModelConfig& model, const TrainPlan& plan, const ComputeChoice& compute) {
  if (model.num_heads == 0) return "";
  const Numerics numerics = ChooseNumerics(plan.precision, compute.device, compute.attention);
  const AttentionBackend backend =
      ResolveAttentionBackend(compute.attention, model.head_dim, numerics.storage, compute.device);
  if (backend == AttentionBackend::kAuto) return "attention our own for short spans, torch's flash beyond; ";
  return "attention " + AttentionBackendName(backend) + "; ";
}

}  // namespace

std::string KernelNames(const ModelConfig& model, const TrainPlan& plan, const ComputeChoice& compute) {
  std::string names = AttentionKernel(model, plan, compute) +
                      "norms, activations and positions one pass each; cross-entropy fused with the head, in "
                      "slices of logits; " +
                      plan.optimizer.name + " and clipping one pass over all weights";
  if (compute.device.is_cpu()) names += "; instructions " + compute.identity.cpu_capability;
  return names;
}

}  // namespace trainwright

#include "lib/train/kernel_names.h"

#include "lib/base/units.h"
#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/spec/family.h"
#include "lib/spec/fp8_parts.h"
#include "lib/spec/scan_kind.h"

namespace trainwright {
namespace {

std::string AttentionKernel(const ModelConfig& model, const TrainPlan& plan, const ComputeChoice& compute) {
  if (model.num_heads == 0) return "";
  const AttentionBackend asked = compute.kinds.attention;
  const Numerics numerics = ChooseNumerics(plan.precision, compute.device, compute.kinds);
  const AttentionBackend backend =
      ResolveAttentionBackend(asked, model.head_dim, numerics.storage, compute.device);
  if (backend == AttentionBackend::kAuto) return "attention our own for short spans, torch's flash beyond; ";
  const AttentionBackend equal = compute.kinds.equal_spans;
  const bool apart = asked == AttentionBackend::kAuto && equal != AttentionBackend::kAuto && equal != backend;
  return "attention " + AttentionBackendName(backend) +
         (apart ? ", of spans of one length " + AttentionBackendName(equal) : "") + "; ";
}

std::string ScanOf(const ModelConfig& model, const ComputeChoice& compute) {
  return FamilyOf(model).scans() ? "scan " + ScanKindName(compute.kinds.scan) + "; " : "";
}

/// Of the head, where its size was chosen.
std::string SliceOf(const ComputeChoice& compute) {
  const int64_t logits = compute.kinds.head_slice_logits;
  return logits == 0 ? "" : "up to " + FormatCount(static_cast<double>(logits)) + " ";
}

}  // namespace

std::string KernelNames(const ModelConfig& model, const TrainPlan& plan, const ComputeChoice& compute) {
  std::string names = AttentionKernel(model, plan, compute) + ScanOf(model, compute) +
                      "norms, activations and positions one pass each; cross-entropy fused with the head, in "
                      "slices of " +
                      SliceOf(compute) + "logits; " + plan.optimizer.name +
                      " and clipping one pass over all weights";
  if (plan.fp8.any()) names += "; GEMMs of " + Fp8PartsName(plan.fp8) + " in fp8";
  if (!compute.device.is_cpu()) return names;
  names += "; GEMMs " + CpuGemmsName(compute.identity.choices.cpu_gemms.value_or(FormerCpuGemms()));
  names += "; instructions " + compute.identity.cpu_capability;
  return names;
}

}  // namespace trainwright

#include "lib/train/compute_changes.h"

#include "lib/nn/linear/gemm_kernels.h"

namespace trainwright {

std::vector<std::string> WarningsOfComputeChanges(const ResolvedRun& run) {
  const std::string end_of_equality =
      run.plan.exact_world > 0 ? "the equal bits of --exact-world end here, " : "";
  std::vector<std::string> warnings;
  const auto compare = [&](const std::string& what, const std::string& before, const std::string& now) {
    if (before == now) return;
    warnings.push_back(what + " " + now + " instead of the run's " + before + ": " + end_of_equality +
                       "results differ by rounding from those of the uninterrupted run");
  };
  const ComputeIdentity &stored = run.resume->state.compute, &compute = run.compute.identity;
  compare("device", stored.device, compute.device);
  compare("threads", std::to_string(stored.threads), std::to_string(compute.threads));
  compare("instruction set", stored.cpu_capability, compute.cpu_capability);
  compare("torch build", stored.torch_build, compute.torch_build);
  compare("attention", stored.attention, compute.attention);
  compare("scan", stored.scan, compute.scan);
  if (stored.device == compute.device && stored.attention == compute.attention) {
    compare("attention of spans of one length", stored.choices.attention, compute.choices.attention);
  }
  const auto slices = [](const ComputeIdentity& identity) {
    return std::to_string(identity.choices.head_slice_logits);
  };
  // On another device the choice is its own, and the device was told of.
  if (stored.device == compute.device)
    compare("slices of the head in logits", slices(stored), slices(compute));
  if (stored.device == compute.device && compute.choices.cpu_gemms) {
    const CpuGemms before = stored.choices.cpu_gemms.value_or(FormerCpuGemms());
    compare("kernels", CpuGemmsName(before), CpuGemmsName(*compute.choices.cpu_gemms));
  }
  const auto products = [](bool tf32) { return std::string(tf32 ? "tf32" : "fp32"); };
  compare("fp32 GEMMs in", products(stored.tf32), products(compute.tf32));
  compare("residual stream", stored.residual_stream, compute.residual_stream);
  const auto micro_batches = [](bool filled) {
    return std::string(filled ? "filled up for --compile" : "as they are");
  };
  compare("micro-batches", micro_batches(stored.fills_up), micro_batches(compute.fills_up));
  return warnings;
}

}  // namespace trainwright

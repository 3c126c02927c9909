#include "lib/train/device_choice.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/device/device.h"
#include "lib/device/device_memory.h"
#include "lib/dist/rank_threads.h"
#include "lib/memory/training_memory.h"
#include "lib/nn/attention/attention_timing.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/nn/loss/head_slices.h"
#include "lib/nn/precision.h"

namespace trainwright {
namespace {

/// What the model and its state leave free, on the rank that has least; 0: not known.
/// \param of_whole of all memory of the GPU, whatever others have taken of it at the moment
int64_t FreeBesideTheState(const TrainJobContext& context, const ResolvedRun& run, bool of_whole) {
  const at::Device device = run.compute.device;
  int64_t free_bytes = (of_whole ? WholeDeviceBytes(device) : FreeDeviceBytes(device)) /
                       RanksThatShare(context.world, GpuIdentity(device));
  if (context.process.memory_cap_bytes) free_bytes = std::min(free_bytes, *context.process.memory_cap_bytes);
  const MemoryParts state = StateMemory(context.families, MemoryOf(context, run, run.plan));
  return std::max<int64_t>(0, -context.world->Agree({state.of_model() - free_bytes})[0]);
}

/// Of a micro-batch.
int64_t MostRows(const TrainPlan& plan) {
  const int64_t tokens = plan.most_batch_tokens();
  return plan.tbptt > 0 ? std::min(plan.tbptt, tokens) : tokens;
}

}  // namespace

void ChooseHeadSlices(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                      ResolvedRun* run) {
  DeviceChoices& choices = run->compute.identity.choices;
  if (run->compute.device.is_cpu() || choices.head_slice_logits > 0) return;
  const Numerics numerics = ChooseNumerics(run->plan.precision, run->compute.device, run->compute.kinds);
  const int64_t vocabulary = PaddedVocabulary(run->model.config.vocab_size, numerics.vocabulary_multiple);
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(numerics.storage));
  const int64_t free_bytes = FreeBesideTheState(context, *run, /*of_whole=*/settings.deterministic);
  // The search for a micro-batch tries any.
  const int64_t rows = settings.find_batch ? std::numeric_limits<int64_t>::max() : MostRows(run->plan);
  choices.head_slice_logits = HeadSliceLogits(free_bytes, vocabulary, rows, element_bytes);
  run->compute.kinds.head_slice_logits = choices.head_slice_logits;
  const std::string size = FormatBytes(static_cast<uint64_t>(choices.head_slice_logits * element_bytes));
  log->Announce({{"head-slice",
                  "at most " + FormatCount(static_cast<double>(choices.head_slice_logits / vocabulary)) +
                      " rows of logits at a time, " + size +
                      (free_bytes > 0 ? ", for the model leaves " +
                                            FormatBytes(static_cast<uint64_t>(free_bytes)) + " free"
                                      : ""),
                  "head"}});
}

void ChooseAttention(const TrainSettings& settings, const TrainJobContext& context, ChoiceLog* log,
                     ResolvedRun* run) {
  const ModelConfig& model = run->model.config;
  const TrainPlan& plan = run->plan;
  ComputeChoice& compute = run->compute;
  if (settings.attn_backend != "auto" || settings.deterministic || model.num_heads == 0) return;
  const Numerics numerics = ChooseNumerics(plan.precision, compute.device, compute.kinds);
  const int64_t samples = std::max<int64_t>(1, MostRows(plan) / plan.sequence_tokens),
                length = MostRows(plan) / samples;
  const AttentionShape shape = {samples * length, model.num_heads, model.num_kv_heads, model.head_dim,
                                WindowOf(model, 0)};
  const std::vector<AttentionBackend> candidates =
      AttentionCandidates(numerics, shape, length, compute.device);
  if (candidates.size() < 2) return;  // nothing to choose from
  DeviceChoices& choices = compute.identity.choices;
  int64_t fastest = 0;
  std::string problems;
  if (context.world->is_writer()) {
    const auto timings = TimeAttention(candidates, numerics, shape, length, compute.device);
    fastest = static_cast<int64_t>(FastestAttention(timings));
    for (const AttentionTiming& timing : timings) {
      if (timing.problem.empty()) {
        choices.attention_times.push_back({AttentionBackendName(timing.backend), timing.seconds});
      } else {
        problems += "; " + AttentionBackendName(timing.backend) + " failed: " + timing.problem;
      }
    }
  }
  compute.kinds.equal_spans = static_cast<AttentionBackend>(context.world->Agree({fastest})[0]);
  choices.attention = AttentionBackendName(compute.kinds.equal_spans);
  log->Announce(
      {{"attn-backend",
        choices.attention + " where spans have one length: a layer of " + std::to_string(samples) + " x " +
            std::to_string(length) + " tokens took " + FormatAttentionTimes(choices) + problems,
        "attention"}});
}

void TakeStoredChoices(const TrainSettings& settings, const DeviceChoices& stored, ResolvedRun* run) {
  ComputeChoice& compute = run->compute;
  DeviceChoices& choices = compute.identity.choices;
  if (compute.device.is_cpu()) {
    // A run of before there was a choice stays one that says nothing of it.
    const bool goes_on = !run->resume || !run->resume->of_parent;
    if (goes_on && !stored.cpu_gemms && choices.cpu_gemms == FormerCpuGemms()) choices.cpu_gemms.reset();
    return;
  }
  choices = stored;
  choices.cpu_gemms.reset();
  compute.kinds.head_slice_logits = stored.head_slice_logits;
  if (settings.attn_backend != "auto") {
    choices.attention.clear();
    choices.attention_times.clear();
  } else if (!choices.attention.empty()) {
    compute.kinds.equal_spans = ParseAttentionBackend(choices.attention, "--attn-backend");
  }
}

}  // namespace trainwright

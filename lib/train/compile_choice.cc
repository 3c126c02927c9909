#include "lib/train/compile_choice.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/spec/family.h"

namespace trainwright {
namespace {

[[noreturn]] void Refuse(const std::string& reason) {
  throw Error(ErrorCode::kUsage, "--compile graph", "cannot be, because " + reason, "",
              "leave it out, or use --compile auto");
}

}  // namespace

std::string WhyNoGraphs(const ResolvedRun& run, const Objective& objective) {
  const FineTuning& tuning = run.plan.tuning;
  if (tuning.frozen_format != WeightFormat::kPlain) return "the base weights are quantised (--quant)";
  if (tuning.lora && tuning.lora->dropout > 0)
    return "adapters drop other elements at every step (--lora-dropout)";
  if (run.compute.offload.any()) return "the host moves tensors while passes run (--offload)";
  if (run.plan.gives_gradients_away()) return "gradients are divided among ranks (--zero)";
  if (run.plan.ranks > 1 && run.plan.accum == 1 && run.plan.max_batch_tokens == 0) {
    return "ranks exchange gradients during the only micro-batch of a step (--accum 1)";
  }
  if (!objective.takes_label_passes()) {
    return "the objective " + run.plan.objective + " has passes of its own (--objective)";
  }
  if (FamilyOf(run.model.config).carries_state()) return "the host lays out the scans of a recurrence";
  return "";
}

void RequireCompile(const ResolvedRun& run, const Objective& objective) {
  if (run.compute.compile != CompileMode::kGraph || run.compute.device.is_cpu()) return;
  if (const std::string reason = WhyNoGraphs(run, objective); !reason.empty()) Refuse(reason);
}

bool RepeatPasses(CompileMode mode, const ResolvedRun& run, const Objective& objective,
                  std::unique_ptr<GraphRecorder> recorder, LanguageModel* model) {
  if (mode == CompileMode::kOff || run.compute.device.is_cpu()) return false;
  std::string reason = WhyNoGraphs(run, objective);
  if (reason.empty() && recorder == nullptr) reason = "the CUDA plugin has no part for graphs";
  if (!reason.empty()) {
    if (mode == CompileMode::kGraph) Refuse(reason);
    LogInfo("compile off, because " + reason);
    return false;
  }
  const GraphUse use = mode == CompileMode::kGraph ? GraphUse::kRequired : GraphUse::kWhereLaunchesBound;
  model->set_graphs(std::move(recorder), {.most_tokens = run.plan.most_batch_tokens(), .use = use});
  return true;
}

void ChooseCompile(CompileMode mode, const Objective& objective, std::unique_ptr<GraphRecorder> recorder,
                   LanguageModel* model, ResolvedRun* run) {
  if (RepeatPasses(mode, *run, objective, std::move(recorder), model)) {
    run->compute.identity.fills_up = true;
  }
}

void RepeatUpdates(CompileMode mode, std::unique_ptr<GraphRecorder> recorder, Trainer* trainer) {
  LanguageModel* model = &trainer->model();
  if (model->graph_counts() == nullptr) return;
  trainer->RepeatUpdates(UpdateGraph(std::move(recorder), /*required=*/mode == CompileMode::kGraph,
                                     [model] { return model->graph_counts()->launched > 0; }));
}

void ChooseGraphs(Trainer* trainer, ResolvedRun* run) {
  const ComputeChoice& compute = run->compute;
  ChooseCompile(compute.compile, trainer->objective(), MakeGraphRecorder(compute.device), &trainer->model(),
                run);
  RepeatUpdates(compute.compile, MakeGraphRecorder(compute.device), trainer);
}

}  // namespace trainwright

#include "lib/train/model_setup.h"

#include <filesystem>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/io/process_memory.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/hf_folder.h"
#include "lib/model/initialize.h"
#include "lib/model/model_watch.h"
#include "lib/model/open_model.h"
#include "lib/model/peft_folder.h"
#include "lib/model/weights_io.h"
#include "lib/spec/family.h"
#include "lib/train/checkpoint_parts.h"
#include "lib/train/model_copy.h"

namespace trainwright {
namespace {

constexpr char kBaseFolder[] = "base";  // in a run: of adapters on random weights

/// Random weights as the base of adapters, in the run.
StartModel MakeBase(const ModelFamilies& families, const RunDirectory& directory, const ResolvedRun& run) {
  const std::string folder = directory.path() + "/" + kBaseFolder;
  LogWarning(
      "--lora without --init: adapters on a base of random weights, which stays random; it is saved as " +
      folder);
  std::filesystem::create_directories(folder);
  const auto base =
      MakeModel(families, run.model.config, Precision::kFp32, at::Device(at::kCPU), run.plan.seed);
  const TokenizerIdentity& tokenizer = run.data->set().header().tokenizer;
  WriteHfFolder(folder, *base, tokenizer);
  return OpenStartModel(families.descriptions(), folder, tokenizer);
}

/// The first values of the adapters.
void StartAdapters(const TrainSettings& settings, const TrainPlan& plan, FlatParameters* parameters) {
  if (settings.adapter.empty()) {
    parameters->adapters()->Initialize(plan.seed, parameters);
  } else {
    const std::string adapter = ResolveCheckpoint(settings.adapter);
    const ModelWatch watch(adapter);
    VerifyCheckpointFiles(adapter);
    LoadPeftWeights(adapter, parameters);
    if (ProjectionOf(adapter)) LoadProjection(adapter, parameters);
    watch.ThrowIfChanged();
    LogInfo("continuing with the adapter " + adapter);
  }
  LogInfo("training " + std::to_string(parameters->trainable_count()) + " of " +
          std::to_string(parameters->count()) + " parameters");
}

/// The first values of the projection of embeddings, beside weights that were trained: those of the start
/// model, if it has one.
void StartProjection(const StartModel& start, uint64_t seed, FlatParameters* parameters) {
  if (ProjectionOf(start.folder)) {
    LoadProjection(start.folder, parameters);
  } else {
    InitializeProjection(seed, parameters);
  }
}

int64_t BytesBeforeTheModel() {
  return ResidentAnonymousBytes() - FreeHeapBytes();
}

}  // namespace

ModelSetup SetUpNewModel(const ModelFamilies& families, const TrainSettings& settings,
                         const RunDirectory* directory, ResolvedRun* run) {
  const TrainPlan& plan = run->plan;
  std::optional<StartModel>& start = run->model.start;
  if (plan.tuning.lora && !start && directory != nullptr) start = MakeBase(families, *directory, *run);
  ModelSetup setup;
  setup.runtime_bytes = BytesBeforeTheModel();
  setup.model = MakeModel(families, run->model.config, plan.precision, run->compute.device,
                          start ? std::nullopt : std::optional(plan.seed), run->compute.kinds, plan.tuning);
  FlatParameters& parameters = setup.model->parameters();
  const std::string problem = FamilyOf(run->model.config).ProblemInTransformers(run->model.config);
  if (!start && !problem.empty()) {
    LogCommonWarning("Hugging Face transformers will not open the checkpoints: " + problem);
  }
  if (start) {
    LoadWeights(start->folder, &parameters);
    start->watch->ThrowIfChanged();
    setup.before = start->folder;
    setup.init_provenance = start->provenance;
    LogInfo("starting from the weights of " + start->folder);
  }
  if (start && plan.tuning.embedding) StartProjection(*start, plan.seed, &parameters);
  if (plan.tuning.lora) {
    if (start) setup.base_folder = BaseFolder(*start);
    if (!settings.adapter.empty()) setup.before = ResolveCheckpoint(settings.adapter);
    StartAdapters(settings, plan, &parameters);
  }
  if (start) {
    const std::string folders = start->folder + (settings.adapter.empty() ? "" : ", " + setup.before);
    RequireFiniteWeights(parameters, folders, "holds a weight that is not finite");
  }
  ReturnFreeHeap();  // what loading and quantising took for a moment
  return setup;
}

ModelSetup SetUpResumedModel(const ModelFamilies& families, const ResolvedRun& run) {
  const TrainPlan& plan = run.plan;
  const ResumePoint& resume = *run.resume;
  ModelSetup setup;
  setup.runtime_bytes = BytesBeforeTheModel();
  if (plan.tuning.lora) {
    setup.base_folder = BaseFolder(*run.model.start);
    setup.model = MakeModel(families, run.model.config, plan.precision, run.compute.device, std::nullopt,
                            run.compute.kinds, plan.tuning);
    LoadWeights(setup.base_folder, &setup.model->parameters());
    run.model.start->watch->ThrowIfChanged();
    LoadPeftWeights(resume.checkpoint, &setup.model->parameters());
    LoadProjection(resume.checkpoint, &setup.model->parameters());
  } else {
    setup.model =
        LoadHfModel(families, resume.checkpoint, plan.precision, run.compute.device, run.compute.kinds,
                    plan.tuning.embedding, WeightFormat::kPlain, plan.tuning.rules);
  }
  if (DescribeLayout(setup.model->parameters()) != resume.state.layout) {
    throw Error(ErrorCode::kBadInput, resume.checkpoint,
                "lays its parameters out in an order that this build does not use", "",
                "resume with the version that wrote it (see version in its metadata.json)");
  }
  setup.before = resume.checkpoint;
  setup.init_provenance = ReadCheckpointProvenance(resume.checkpoint, "init");
  resume.watch->ThrowIfChanged();
  ReturnFreeHeap();
  return setup;
}

}  // namespace trainwright

#include "lib/train/average_job.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/device/memory_error.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/formats/provenance.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/hf_folder.h"
#include "lib/model/model_watch.h"
#include "lib/model/open_model.h"
#include "lib/model/peft_folder.h"
#include "lib/spec/config_json.h"
#include "lib/spec/model_config.h"
#include "lib/train/model_copy.h"

namespace trainwright {
namespace {

/// What metadata.json says of the models that a mean is of.
struct Sources {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array();  ///< what each is
  std::vector<nlohmann::ordered_json> data;                         ///< provenance of its data, or null
  std::vector<nlohmann::ordered_json> splits;                       ///< what its run held out, or null
};

/// What the runs of all models held out of their data; null: nothing, or not all the same.
nlohmann::ordered_json CommonSplit(const Sources& sources) {
  const std::vector<nlohmann::ordered_json>& splits = sources.splits;
  const bool is_common = std::all_of(splits.begin(), splits.end(), [&](const nlohmann::ordered_json& split) {
    return split == splits.front();
  });
  return is_common ? splits.front() : nlohmann::ordered_json();
}

/// The model of a folder, which is as the first one is.
std::unique_ptr<LanguageModel> LoadPlain(const ModelFamilies& families, const std::string& folder,
                                         Sources* sources) {
  if (IsPeftFolder(folder)) {
    throw Error(ErrorCode::kUsage, folder,
                "is an adapter: the mean of its matrices is not that of its weights", "",
                "make models of adapters first, by train --merge");
  }
  const ModelWatch watch(folder);
  FileHashes verified;
  VerifyCheckpointFiles(folder, &verified);
  auto model = LoadHfModel(families, folder, Precision::kFp32, at::Device(at::kCPU), {},
                           EmbeddingTuningOf(folder, /*needs_head=*/false));
  sources->inputs.push_back(IdentityOfModel(folder, verified));
  sources->data.push_back(ReadCheckpointProvenance(folder, "data_provenance"));
  sources->splits.push_back(ReadEvalSplit(folder));
  watch.ThrowIfChanged();
  RequireFiniteWeights(model->parameters(), folder, "holds a weight that is not finite");
  return model;
}

bool LacksHead(const LanguageModel& model) {
  const std::vector<Parameter>& all = model.parameters().all();
  return std::any_of(all.begin(), all.end(), [](const Parameter& parameter) { return parameter.absent; });
}

/// \param first of the folder `first_folder`
void RequireAlike(const LanguageModel& first, const std::string& first_folder, const LanguageModel& model,
                  const std::string& folder) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorCode::kBadInput, folder, problem, "",
                "average checkpoints of one run, or of runs that began with one model");
  };
  // Of several ends checkpoints of older versions have one, and neither dropout nor the initial deviation.
  const bool same_ends = first.config().more_eos_ids.empty() && model.config().more_eos_ids.empty();
  const auto shape_of = [&](ModelConfig config) {
    if (!same_ends) config.eos_id = -1;
    config.more_eos_ids.clear();
    return EncodeConfigJson(ComputedPart(std::move(config)));
  };
  if (shape_of(first.config()) != shape_of(model.config()) ||
      first.parameters().elements() != model.parameters().elements()) {
    refuse("is a model of another shape than the first one");
  }
  if (LacksHead(first) != LacksHead(model)) {
    refuse(std::string("has ") + (LacksHead(model) ? "no head" : "a head") +
           ", otherwise than the first one");
  }
  if (ReadEmbeddingSpec(first_folder) != ReadEmbeddingSpec(folder)) {
    refuse("embeds texts otherwise than the first one");
  }
}

nlohmann::ordered_json Average(const ModelFamilies& families, const std::vector<std::string>& folders,
                               const std::string& out) {
  RequireNewFolder(out, "--average");
  if (folders.size() < 2) {
    throw Error(ErrorCode::kUsage, "--average", "needs two models at least, not " + folders.front());
  }
  std::vector<std::string> models;
  for (const std::string& folder : folders) models.push_back(ResolveCheckpoint(folder));
  Sources sources;
  const auto mean = LoadPlain(families, models[0], &sources);
  at::Tensor& values = mean->parameters().values();
  at::Tensor sums = values.to(at::kDouble);
  for (size_t i = 1; i < models.size(); ++i) {
    ThrowIfStopped();
    const auto model = LoadPlain(families, models[i], &sources);
    RequireAlike(*mean, models[0], *model, models[i]);
    sums.add_(model->parameters().values());
  }
  values.copy_(sums.div_(static_cast<double>(models.size())));
  nlohmann::ordered_json provenance = {
      {"made_by", "average"}, {"options", {{"average", folders}}}, {"inputs", sources.inputs}};
  if (const auto split = CommonSplit(sources); !split.is_null()) provenance[kEvalSplitField] = split;
  WriteModelLike(models[0], *mean, std::nullopt, {ReadEmbeddingSpec(models[0]), ""}, std::move(provenance),
                 JoinedProvenance(sources.data), out);
  return {{"average", out}, {"models", models}};
}

}  // namespace

nlohmann::ordered_json AverageModels(const ModelFamilies& families, const std::vector<std::string>& folders,
                                     const std::string& out) {
  return WithMemoryErrors(
      [] {
        return MemoryUser{.doing = "averaging",
                          .hint = "average where the model fits into memory four times"};
      },
      [&] { return Average(families, folders, out); });
}

}  // namespace trainwright

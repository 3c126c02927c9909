#include "lib/train/merge_job.h"

#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/device/memory_error.h"
#include "lib/documents/folder_template.h"
#include "lib/documents/recorded_template.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/hf_folder.h"
#include "lib/model/model_watch.h"
#include "lib/model/open_model.h"
#include "lib/model/peft_folder.h"
#include "lib/spec/model_files.h"
#include "lib/tok/tokenizer_folder.h"
#include "lib/train/model_copy.h"

namespace trainwright {
namespace {

/// As the adapter was trained; where that says nothing, as its base.
FolderEmbedding EmbeddingOf(const std::string& adapter, const std::string& base) {
  for (const std::string& folder : {adapter, base}) {
    std::optional<EmbeddingSpec> spec = ReadEmbeddingSpec(folder, base);
    if (spec || ProjectionOf(folder)) return {std::move(spec), folder};
  }
  return {std::nullopt, adapter};
}

/// Provenance of the data that the adapter was trained on; where its folder says nothing, as one that other
/// tools wrote, that of the base's.
nlohmann::ordered_json DataOf(const std::string& adapter, const std::string& base, bool has_template) {
  nlohmann::ordered_json own = ReadCheckpointProvenance(adapter, "data_provenance");
  if (!own.is_null() || has_template) return own;
  return ReadCheckpointProvenance(base, "data_provenance");
}

nlohmann::ordered_json Merge(const ModelFamilies& families, const std::string& adapter,
                             const std::string& base, const std::string& out, bool allow_other_base) {
  RequireNewFolder(out, "--merge");
  const std::string adapter_folder = ResolveCheckpoint(adapter);
  if (!IsPeftFolder(adapter_folder)) {
    throw Error(ErrorCode::kBadInput, adapter,
                std::string("is no adapter: it holds no ") + kAdapterConfigFileName, "",
                "name a run of --lora, its checkpoint or a folder of peft; a model that was trained whole "
                "needs no merging");
  }
  const std::string base_folder = base.empty()
                                      ? BaseOfAdapter(adapter_folder, "name the adapter's base with --init")
                                      : ResolveCheckpoint(base);
  const ModelWatch adapter_watch(adapter_folder), base_watch(base_folder);
  FileHashes adapter_hashes, base_hashes;
  VerifyCheckpointFiles(adapter_folder, &adapter_hashes);
  VerifyCheckpointFiles(base_folder, &base_hashes);
  const PeftConfig adapter_config = ReadPeftConfig(adapter_folder);
  const nlohmann::ordered_json base_identity = IdentityOfModel(base_folder, base_hashes);
  const nlohmann::ordered_json adapter_identity = IdentityOfAdapter(adapter_folder, adapter_hashes);
  if (!allow_other_base) {
    RequireBaseOfAdapter(adapter_folder, base_folder,
                         "name the adapter's base with --init, or take this base by --allow-other-base",
                         base_identity.at("files").get<FileHashes>());
  }
  // A base without a head gives a model without one.
  const auto model = LoadHfModel(families, base_folder, Precision::kFp32, at::Device(at::kCPU), {},
                                 EmbeddingTuningOf(base_folder, /*needs_head=*/false));
  RequireFiniteWeights(model->parameters(), base_folder, "holds a weight that is not finite");
  RequireModelOfAdapter(adapter_folder, adapter_config, model->config());
  MergePeftFolder(adapter_folder, &model->parameters());
  RequireFiniteWeights(model->parameters(), adapter_folder, "makes a weight that is not finite");
  const FolderEmbedding embedding = EmbeddingOf(adapter_folder, base_folder);
  std::optional<ChatTemplate> chat_template = FindFolderTemplate(adapter_folder);
  if (chat_template && !StartMarksOfFolder(adapter_folder)) {  // its tokenizer is the base's
    const auto recorded = RecordedTemplate(ReadCheckpointProvenance(adapter_folder, "data_provenance"));
    chat_template->start_marks = recorded && recorded->is_jinja
                                     ? recorded->start_marks
                                     : StartMarksOfFolder(base_folder).value_or(chat_template->start_marks);
  }
  const nlohmann::ordered_json data = DataOf(adapter_folder, base_folder, chat_template.has_value());
  const nlohmann::ordered_json split = ReadEvalSplit(adapter_folder);
  adapter_watch.ThrowIfChanged();
  base_watch.ThrowIfChanged();
  nlohmann::ordered_json provenance = {
      {"made_by", "merge"},
      {"options", {{"merge", adapter}, {"init", base}, {"allow-other-base", allow_other_base}}},
      {"inputs", {base_identity, adapter_identity}}};
  if (!split.is_null()) provenance[kEvalSplitField] = split;
  WriteModelLike(base_folder, *model, chat_template, embedding, std::move(provenance), data, out);
  return {{"merged", out}, {"base", base_folder}, {"adapter", adapter_folder}};
}

}  // namespace

nlohmann::ordered_json MergeAdapter(const ModelFamilies& families, const std::string& adapter,
                                    const std::string& base, const std::string& out, bool allow_other_base) {
  return WithMemoryErrors(
      [] { return MemoryUser{.doing = "merging", .hint = "merge where the model fits into memory twice"}; },
      [&] { return Merge(families, adapter, base, out, allow_other_base); });
}

}  // namespace trainwright

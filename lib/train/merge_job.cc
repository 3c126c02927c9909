#include "lib/train/merge_job.h"

#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/device/memory_error.h"
#include "lib/documents/folder_template.h"
#include "lib/embedding/embedding_folder.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/hf_folder.h"
#include "lib/model/model_watch.h"
#include "lib/model/open_model.h"
#include "lib/model/peft_folder.h"
#include "lib/model/weights_io.h"
#include "lib/spec/config_json.h"
#include "lib/spec/model_files.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// What a tokenizer of Hugging Face consists of, and how to generate.
constexpr const char* kCompanions[] = {
    "tokenizer.model",         "tokenizer.json",        "tokenizer.tiktoken", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json",     "vocab.json",         "merges.txt",
    "chat_template.jinja",     "generation_config.json"};

/// \throws Error{kNonFinite} naming the tensor
void RequireFinite(const FlatParameters& parameters, const std::string& folder, const std::string& problem) {
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.value.isfinite().all().item<bool>()) continue;
    throw Error(ErrorCode::kNonFinite, folder, problem, "tensor " + parameter.name,
                "merge a checkpoint from before its training diverged");
  }
}

/// How the merged model embeds texts.
struct Embedding {
  std::optional<EmbeddingSpec> spec;  ///< nothing: nobody said it
  std::string folder;                 ///< whose projection it has, if that has one
};

/// As the adapter was trained; where that says nothing, as its base.
Embedding EmbeddingOf(const std::string& adapter, const std::string& base) {
  for (const std::string& folder : {adapter, base}) {
    std::optional<EmbeddingSpec> spec = ReadEmbeddingSpec(folder);
    if (spec || ProjectionOf(folder)) return {std::move(spec), folder};
  }
  return {std::nullopt, adapter};
}

/// A projection of embeddings is as it was trained: adapters are of the layers before it.
void CopyProjection(const std::string& folder, const std::string& out) {
  const std::string from = folder + "/" + kProjectionFolder, to = out + "/" + kProjectionFolder;
  if (!ProjectionOf(folder)) return;
  fs::create_directories(to);
  for (const char* name : {kWeightsFileName, kConfigFileName}) {
    WriteFileAtomically(to + "/" + name, ReadWholeFile(from + "/" + name, uint64_t{1} << 30));
  }
}

nlohmann::ordered_json Merge(const ModelFamilies& families, const std::string& adapter,
                             const std::string& base, const std::string& out, bool allow_other_base) {
  if (out.empty()) {
    throw Error(ErrorCode::kUsage, "--merge", "needs a folder for the merged model", "",
                "name it with --out");
  }
  if (fs::exists(out) && !(fs::is_directory(out) && fs::is_empty(out))) {
    throw Error(ErrorCode::kUsage, out, "exists already", "", "choose another folder with --out");
  }
  const std::string adapter_folder = ResolveCheckpoint(adapter);
  if (!IsPeftFolder(adapter_folder)) {
    throw Error(ErrorCode::kBadInput, adapter,
                std::string("is no adapter: it holds no ") + kAdapterConfigFileName);
  }
  const std::string base_folder = base.empty() ? BaseOfAdapter(adapter_folder) : ResolveCheckpoint(base);
  const ModelWatch adapter_watch(adapter_folder), base_watch(base_folder);
  VerifyCheckpointFiles(adapter_folder);
  VerifyCheckpointFiles(base_folder);
  if (!allow_other_base) {
    RequireBaseOfAdapter(adapter_folder, base_folder,
                         "name the adapter's base with --init, or take this base by --allow-other-base");
  }
  const auto model = LoadHfModel(families, base_folder, Precision::kFp32, at::Device(at::kCPU));
  RequireFinite(model->parameters(), base_folder, "holds a weight that is not finite");
  MergePeftFolder(adapter_folder, &model->parameters());
  RequireFinite(model->parameters(), adapter_folder, "makes a weight that is not finite");
  const Embedding embedding = EmbeddingOf(adapter_folder, base_folder);
  adapter_watch.ThrowIfChanged();
  base_watch.ThrowIfChanged();
  fs::create_directories(out);
  for (const char* name : kCompanions) {
    if (!fs::exists(base_folder + "/" + name)) continue;
    WriteFileAtomically(out + "/" + name, ReadWholeFile(base_folder + "/" + name, uint64_t{1} << 30));
  }
  if (const auto chat_template = FindFolderTemplate(adapter_folder))
    WriteFolderTemplate(out, *chat_template, out);
  RemoveStaleTemporariesOf(out + "/model.safetensors");
  AtomicFileSink weights(out + "/model.safetensors");
  SaveWeights(model->parameters(), &weights);
  weights.Commit();
  CopyProjection(embedding.folder, out);
  // Last: a folder with config.json is a whole model.
  if (embedding.spec) {
    WriteEmbeddingFolder(out, model->config(), *embedding.spec);
  } else {
    WriteFileAtomically(out + "/config.json", AsBytes(EncodeConfigJson(model->config())));
  }
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

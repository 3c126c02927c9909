#include "lib/train/model_copy.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/aminmax.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <vector>

#include "lib/base/error.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/documents/folder_template.h"
#include "lib/documents/recorded_template.h"
#include "lib/embedding/embedding_folder.h"
#include "lib/io/atomic_folder.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/weights_io.h"
#include "lib/nn/linear/quantized_matrix.h"
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

/// A projection of embeddings is as it was trained: adapters are of the layers before it.
void CopyProjection(const std::string& folder, const std::string& out) {
  const std::string from = folder + "/" + kProjectionFolder, to = out + "/" + kProjectionFolder;
  if (!ProjectionOf(folder)) return;
  fs::create_directories(to);
  for (const char* name : {kWeightsFileName, kConfigFileName}) {
    WriteFileAtomically(to + "/" + name, ReadWholeFile(from + "/" + name, uint64_t{1} << 30));
  }
}

/// Without a copy of any, as isfinite() would make.
bool AllFinite(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_floating_point() || tensor.numel() == 0) return true;
    const auto [least, most] = at::aminmax(tensor);  // each is NaN where one of the values is
    return std::isfinite(least.item<double>()) && std::isfinite(most.item<double>());
  });
}

/// Where a model is made that goes into an empty folder, which stays: it may be where another file system is
/// mounted or a shell stands, and has permissions.
std::string PlaceInside(const std::string& folder) {
  return WithoutLastSlash(folder) + "/model";
}

/// metadata.json, which lists the others, comes last.
void MoveFiles(const std::string& from, const std::string& to) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(from)) names.push_back(entry.path().filename());
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kCheckpointMetadataFile; });
  for (const std::string& name : names) {
    std::error_code error;
    fs::rename(from + "/" + name, to + "/" + name, error);
    if (error) throw SystemError(to + "/" + name, "rename", error.value());
  }
  SyncFolder(to);
}

}  // namespace

void RequireNewFolder(const std::string& out, const std::string& flag) {
  if (out.empty()) {
    throw Error(ErrorCode::kUsage, flag, "needs a folder for the model that it makes", "",
                "name it with --out");
  }
  if (fs::is_directory(out)) RemoveStaleTemporariesOf(PlaceInside(out));
  std::error_code ignored;
  const bool is_taken = fs::exists(fs::symlink_status(out, ignored));
  if (is_taken && !(fs::is_directory(out) && fs::is_empty(out))) {
    throw Error(ErrorCode::kUsage, out, "exists already", "", "choose another folder with --out");
  }
}

void RequireFiniteWeights(const FlatParameters& parameters, const std::string& folder,
                          const std::string& problem) {
  for (const Parameter& parameter : parameters.all()) {
    const bool finite =
        parameter.quantized() ? AllFinite(parameter.matrix->parts()) : AllFinite({parameter.value});
    if (finite) continue;
    throw Error(ErrorCode::kNonFinite, folder, problem, "tensor " + parameter.name,
                "take a checkpoint from before its training diverged");
  }
}

void WriteModelLike(const std::string& folder, const LanguageModel& model,
                    const std::optional<ChatTemplate>& chat_template, const FolderEmbedding& embedding,
                    nlohmann::ordered_json provenance, const nlohmann::ordered_json& data_provenance,
                    const std::string& path) {
  std::error_code error;
  fs::create_directories(FolderOf(WithoutLastSlash(path)), error);
  if (error) throw SystemError(path, "create the folder", error.value(), "choose another place with --out");
  const bool exists = fs::is_directory(path);
  AtomicFolder folder_of_model(exists ? PlaceInside(path) : path, /*replace=*/false);
  const std::string& out = folder_of_model.temporary();
  for (const char* name : kCompanions) {
    if (!fs::exists(folder + "/" + name)) continue;
    WriteFileAtomically(out + "/" + name, ReadWholeFile(folder + "/" + name, uint64_t{1} << 30));
  }
  if (chat_template) {
    WriteFolderTemplate(out, *chat_template, out);
  } else if (LacksJinjaTemplate(data_provenance)) {
    RemoveFolderTemplate(out);
  } else {
    CopyNamedTemplates(folder, out);
  }
  AtomicFileSink weights(out + "/" + kWeightsFileName);
  SaveWeights(model.parameters(), &weights);
  weights.Commit();
  if (embedding.folder.empty()) {
    WriteProjection(out, model.parameters(), {});
  } else {
    CopyProjection(embedding.folder, out);
  }
  for (const auto& [name, text] : model.code()) WriteFileAtomically(out + "/" + name, AsBytes(text));
  if (embedding.spec) {
    WriteEmbeddingFolder(out, model.config(), *embedding.spec);
  } else {
    WriteFileAtomically(out + "/" + kConfigFileName, AsBytes(EncodeConfigJson(model.config())));
  }
  if (!data_provenance.is_null()) provenance["data_provenance"] = data_provenance;
  WriteFolderMetadata(out, MetadataOfModel(DescribeFiles(out), provenance));
  if (exists) {
    MoveFiles(out, path);
  } else {
    folder_of_model.Commit();
  }
}

}  // namespace trainwright

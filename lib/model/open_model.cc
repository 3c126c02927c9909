#include "lib/model/open_model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/shell_word.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/io/file_checksum.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/hf_folder.h"
#include "lib/model/model_watch.h"
#include "lib/model/peft_folder.h"
#include "lib/model/weights_io.h"
#include "lib/run/run_directory.h"
#include "lib/spec/family.h"
#include "lib/spec/model_config.h"
#include "lib/spec/model_files.h"
#include "lib/tok/tokenizer_folder.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// Whether all of a checkpoint was written: its metadata.json comes last.
bool IsComplete(const std::string& checkpoint) {
  return fs::exists(checkpoint + "/" + kCheckpointMetadataFile);
}

/// When a checkpoint was saved, in a form whose order is that of time; empty where it is not known.
std::string TimeOfSave(const std::string& checkpoint) {
  try {
    const nlohmann::json time = ReadCheckpointMetadata(checkpoint).value("saved_at", nlohmann::json());
    return time.is_string() ? time.get<std::string>() : "";
  } catch (const Error&) {
    return "";
  }
}

/// The newest whole checkpoint of a later step than that of `latest` that was not saved before it, as a run
/// that was set back has them; empty: none. A process that is killed between a checkpoint and its link, or
/// is there now, leaves one.
std::string SavedAfterLatest(const std::string& run_path, const std::string& latest) {
  const std::vector<std::string> checkpoints = RunDirectory::CheckpointsIn(run_path);
  for (auto path = checkpoints.rbegin(); path != checkpoints.rend(); ++path) {
    if (fs::path(*path).filename() == fs::path(latest).filename()) break;
    if (!IsComplete(*path) || TimeOfSave(*path) < TimeOfSave(latest)) continue;
    try {
      VerifyCheckpoint(*path);
      return *path;
    } catch (const Error& error) {
      LogCommonWarning(std::string(error.what()) + "; trying an older checkpoint");
    }
  }
  return "";
}

nlohmann::ordered_json HashesOf(const std::string& folder, const std::vector<std::string>& names,
                                const FileHashes& known) {
  nlohmann::ordered_json files;
  for (const std::string& name : names) {
    const auto found = known.find(name);
    files[name] = found != known.end() ? found->second : Sha256OfFile(folder + "/" + name);
  }
  return files;
}

/// What decides the vectors of a model that embeds, beside its weights.
void AppendEmbeddingFiles(const std::string& folder, std::vector<std::string>* names) {
  for (const std::string& name :
       {std::string("embedding.json"), std::string(kProjectionFolder) + "/" + kWeightsFileName}) {
    if (fs::exists(folder + "/" + name)) names->push_back(name);
  }
}

/// The base of an adapter that is not where it was recorded, and was moved together with the adapter: the end
/// of the recorded path, from one of the folders above the adapter, with the config.json that the adapter's
/// metadata.json records; empty: there is none.
std::string FindMovedBase(const std::string& adapter_folder, const std::string& recorded) {
  const nlohmann::ordered_json init = ReadCheckpointProvenance(adapter_folder, "init");
  if (!init.is_object() || !init.contains("files") || !init.at("files").contains(kConfigFileName)) return "";
  const std::string sha256 = init.at("files").at(kConfigFileName).get<std::string>();
  const fs::path adapter = fs::absolute(adapter_folder).lexically_normal();
  for (fs::path above = adapter.parent_path(); above.has_relative_path(); above = above.parent_path()) {
    for (size_t cut = recorded.find('/'); cut != std::string::npos; cut = recorded.find('/', cut + 1)) {
      const fs::path base = above / recorded.substr(cut + 1);
      const std::string config = (base / kConfigFileName).string();
      std::error_code unreadable;
      if (fs::is_regular_file(config, unreadable) && Sha256OfFile(config) == sha256) return base.string();
    }
  }
  return "";
}

nlohmann::ordered_json IdentityOf(const std::string& folder, const nlohmann::ordered_json& files) {
  return {{"path", folder}, {"sha256", HashOfWeights(files)}, {"files", files}};
}

}  // namespace

std::string ResolveCheckpoint(const std::string& path) {
  const auto holds_model = [](const std::filesystem::path& folder) {
    return std::filesystem::exists(folder / "config.json") || IsPeftFolder(folder.string());
  };
  if (holds_model(path)) return path;
  // The link is followed once: a run that goes on may point it elsewhere while files are read.
  const std::string latest = path + "/latest";
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(latest, error);
  const bool inside =
      !error && target.is_relative() && target.lexically_normal().parent_path() == "checkpoints";
  if (inside && holds_model(std::filesystem::path(path) / target)) {
    const std::string linked = (std::filesystem::path(path) / target).string();
    const std::string newer = SavedAfterLatest(path, linked);
    if (newer.empty()) return linked;
    LogCommonWarning(latest + " points to " + target.filename().string() + "; taking " + newer +
                     ", which was saved later (train --resume --out " + ShellWord(path) +
                     " finishes what a killed run left)");
    return newer;
  }
  const std::vector<std::string> checkpoints = RunDirectory::CheckpointsIn(path);
  const auto newest = std::find_if(checkpoints.rbegin(), checkpoints.rend(), IsComplete);
  if (newest != checkpoints.rend()) {
    LogCommonWarning(latest + " points to no checkpoint of the run; taking the newest, " +
                     fs::path(*newest).filename().string());
    return *newest;
  }
  if (holds_model(latest)) return latest;  // a folder, or a link of the user's
  const bool exists = std::filesystem::exists(path);
  throw Error(exists ? ErrorCode::kBadInput : ErrorCode::kIo, path,
              exists ? "holds no config.json, and no checkpoint that `latest` points to" : "does not exist",
              "", "name a checkpoint folder, a run directory of train, or a model folder of Hugging Face");
}

std::string BaseOfAdapter(const std::string& folder, const std::string& hint) {
  const std::string base = ReadPeftConfig(folder).base_model, config = folder + "/" + kAdapterConfigFileName;
  if (!base.empty() && fs::exists(base)) return ResolveCheckpoint(base);
  if (base.empty()) throw Error(ErrorCode::kBadInput, config, "names no base model", "", hint);
  const std::string moved = FindMovedBase(folder, base);
  if (moved.empty()) {
    throw Error(ErrorCode::kBadInput, config, "names a base model that is no folder here: " + base, "", hint);
  }
  LogInfo(config + " names the base model " + base + ", which is no folder here; taking " + moved);
  return moved;
}

std::unique_ptr<Tokenizer> LoadTokenizerOfFolder(const std::string& folder, std::string* problem) {
  std::string spec;
  *problem = "holds no tokenizer that this build knows";
  try {
    spec = TokenizerOfFolder(folder);
    return spec.empty() ? nullptr : LoadTokenizer(spec);
  } catch (const Error& error) {
    // Of the many kinds of tokenizer.json some are not read; the model is of use without.
    if (error.code() != ErrorCode::kBadInput || spec.ends_with("tokenizer.model")) throw;
    *problem += std::string(": ") + error.what();
    return nullptr;
  }
}

nlohmann::ordered_json HashesOfModel(const std::string& folder, const FileHashes& known) {
  std::vector<std::string> names = WeightFileNames(folder);
  for (const char* name : {kConfigFileName, "tokenizer.json", "tokenizer.model", "tokenizer.tiktoken"}) {
    if (fs::exists(folder + "/" + name)) names.emplace_back(name);
  }
  AppendEmbeddingFiles(folder, &names);
  return HashesOf(folder, names, known);
}

std::string HashOfWeights(const nlohmann::ordered_json& files) {
  std::map<std::string, std::string> weights;
  for (const auto& [name, sha256] : files.items()) {
    if (name.ends_with(".safetensors")) weights.emplace(name, sha256.get<std::string>());
  }
  if (weights.size() == 1) return weights.begin()->second;
  std::string lines;
  for (const auto& [name, sha256] : weights) lines += sha256 + "  " + name + "\n";
  return HexEncode(Sha256Of(AsBytes(lines)));
}

nlohmann::ordered_json IdentityOfModel(const std::string& folder, const FileHashes& known) {
  return IdentityOf(folder, HashesOfModel(folder, known));
}

nlohmann::ordered_json IdentityOfAdapter(const std::string& folder, const FileHashes& known) {
  std::vector<std::string> names = {kAdapterWeightsFileName, kAdapterConfigFileName};
  AppendEmbeddingFiles(folder, &names);
  return IdentityOf(folder, HashesOf(folder, names, known));
}

void RequireBaseOfAdapter(const std::string& adapter_folder, const std::string& base_folder,
                          const std::string& hint, const FileHashes& known) {
  const nlohmann::ordered_json init = ReadCheckpointProvenance(adapter_folder, "init");
  if (!init.is_object() || !init.contains("files")) return;
  for (const auto& [name, sha256] : init.at("files").items()) {
    if (name.starts_with("tokenizer")) continue;
    const std::string path = base_folder + "/" + name;
    const bool exists = std::filesystem::exists(path);
    const auto computed = known.find(name);
    const std::string actual = computed != known.end() ? computed->second : exists ? Sha256OfFile(path) : "";
    if (actual == sha256.get<std::string>()) continue;
    throw Error(ErrorCode::kBadInput, base_folder,
                "is not the base that " + adapter_folder + " was trained on",
                exists ? "the sha256 of " + name + " is not the one in the adapter's metadata.json"
                       : "it has no " + name,
                hint);
  }
}

Checkpoint LoadCheckpoint(const ModelFamilies& families, const std::string& path, Precision precision,
                          at::Device device, const ComputeKinds& kinds, const std::string& adapter,
                          bool allow_other_base, WeightFormat format, bool embeds) {
  Checkpoint checkpoint;
  checkpoint.folder = checkpoint.named = ResolveCheckpoint(path);
  std::string adapter_folder = adapter.empty() ? "" : ResolveCheckpoint(adapter);
  if (IsPeftFolder(checkpoint.folder)) {
    if (!adapter.empty()) {
      throw Error(ErrorCode::kUsage, "--checkpoint, --adapter", "are both adapters", "",
                  "name the base model with --checkpoint");
    }
    const std::string base = BaseOfAdapter(
        checkpoint.folder, "name the base model with --checkpoint, and this adapter with --adapter");
    adapter_folder = std::exchange(checkpoint.folder, base);
  }
  const ModelWatch watch(checkpoint.folder);
  std::optional<ModelWatch> adapter_watch;
  FileHashes verified;
  VerifyCheckpointFiles(checkpoint.folder, &verified);
  const ModelConfig config = ReadHfConfig(families.descriptions(), checkpoint.folder);
  if (!embeds) RequireCausal(config.is_causal, checkpoint.folder + "/" + kConfigFileName);
  if (adapter_folder.empty()) {
    checkpoint.model = LoadHfModel(families, checkpoint.folder, precision, device, kinds,
                                   EmbeddingTuningOf(checkpoint.folder, /*needs_head=*/!embeds), format);
    checkpoint.model_identity = IdentityOfModel(checkpoint.folder, verified);
  } else {
    checkpoint.model_identity = IdentityOfModel(checkpoint.folder, verified);
    adapter_watch.emplace(adapter_folder);
    FileHashes verified_adapter;
    VerifyCheckpointFiles(adapter_folder, &verified_adapter);
    if (!allow_other_base) {
      RequireBaseOfAdapter(adapter_folder, checkpoint.folder,
                           "name its base with --checkpoint and it with --adapter, or take this base by "
                           "--allow-other-base",
                           checkpoint.model_identity.at("files").get<FileHashes>());
    }
    // An adapter that was not trained to embed leaves its base as it embeds.
    const std::string& projects = ProjectionOf(adapter_folder) ? adapter_folder : checkpoint.folder;
    const PeftConfig adapter_config = ReadPeftConfig(adapter_folder);
    RequireModelOfAdapter(adapter_folder, adapter_config, config);
    checkpoint.model = MakeModel(families, config, precision, device, std::nullopt, kinds,
                                 {.lora = adapter_config.lora,
                                  .frozen_format = format,
                                  .embedding = EmbeddingTuningOf(projects, /*needs_head=*/!embeds)});
    checkpoint.model->parameters().set_reads_quantized(format != WeightFormat::kPlain);
    LoadWeights(checkpoint.folder, &checkpoint.model->parameters());
    LoadPeftWeights(adapter_folder, &checkpoint.model->parameters());
    LoadProjection(projects, &checkpoint.model->parameters());
    checkpoint.adapter_identity = IdentityOfAdapter(adapter_folder, verified_adapter);
  }
  checkpoint.tokenizer = LoadTokenizerOfFolder(checkpoint.folder, &checkpoint.tokenizer_problem);
  watch.ThrowIfChanged();
  if (adapter_watch) adapter_watch->ThrowIfChanged();
  return checkpoint;
}

}  // namespace trainwright

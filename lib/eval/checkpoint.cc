#include "lib/eval/checkpoint.h"

#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/model/checkpoint_metadata.h"
#include "lib/model/hf_folder.h"

namespace trainwright {

std::string ResolveCheckpoint(const std::string& path) {
  if (std::filesystem::exists(path + "/config.json")) return path;
  // The link is followed once: a run that goes on may point it elsewhere while files are read.
  const std::string latest = path + "/latest", checkpoints = path + "/checkpoints";
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(latest, error);
  const bool inside = !error && target.is_relative() &&
                      target.lexically_normal().parent_path() == "checkpoints";
  if (inside && std::filesystem::exists(std::filesystem::path(path) / target / "config.json")) {
    return (std::filesystem::path(path) / target).string();
  }
  // Names of steps with as many digits sort as their numbers.
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints, error)) {
    const std::string name = entry.path().filename().string();
    const auto rank = [](const std::string& text) { return std::pair(text.size(), text); };
    if (name.starts_with("step-") && std::filesystem::exists(entry.path() / kCheckpointMetadataFile) &&
        rank(name) > rank(newest)) {
      newest = name;
    }
  }
  if (!newest.empty()) {
    LogWarning(latest + " points to no checkpoint of the run; taking the newest, " + newest);
    return checkpoints + "/" + newest;
  }
  if (std::filesystem::exists(latest + "/config.json")) return latest;  // a folder, or a link of the user's
  const bool exists = std::filesystem::exists(path);
  throw Error(exists ? ErrorCode::kBadInput : ErrorCode::kIo, path,
              exists ? "holds no config.json, and no checkpoint that `latest` points to" : "does not exist",
              "", "name a checkpoint folder, a run directory of train, or a model folder of Hugging Face");
}

Checkpoint LoadCheckpoint(const std::string& path, Precision precision, at::Device device,
                          AttentionBackend attention) {
  Checkpoint checkpoint;
  checkpoint.folder = ResolveCheckpoint(path);
  VerifyCheckpointFiles(checkpoint.folder);
  checkpoint.model = LoadHfModel(checkpoint.folder, precision, device, attention);
  if (const std::string spec = HfTokenizerSpec(checkpoint.folder); !spec.empty()) {
    checkpoint.tokenizer = LoadTokenizer(spec);
  }
  return checkpoint;
}

Precision ParsePrecision(const std::string& mixed_precision, at::Device device) {
  if (mixed_precision == "no") return Precision::kFp32;
  if (mixed_precision == "bf16") return Precision::kBf16;
  if (mixed_precision == "fp16") return Precision::kFp16;
  if (mixed_precision == "auto") {
    return HasFastProducts(Precision::kBf16, device) ? Precision::kBf16 : Precision::kFp32;
  }
  throw Error(ErrorCode::kUsage, "--mixed-precision", "unknown value '" + mixed_precision + "'", "",
              "use no, bf16, fp16 or auto");
}

}  // namespace trainwright

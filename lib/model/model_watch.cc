#include "lib/model/model_watch.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>

#include "lib/base/error.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/spec/model_files.h"

namespace trainwright {
namespace {

/// A folder may hold what is no part of the model, a log that grows, for instance.
bool IsOfModel(std::string_view name) {
  constexpr std::string_view kNames[] = {
      kConfigFileName,           kAdapterConfigFileName, kCheckpointMetadataFile, kWeightsIndexFileName,
      "tokenizer.json",          "tokenizer.model",      "tokenizer.tiktoken",    "tokenizer_config.json",
      "special_tokens_map.json", "embedding.json"};
  return name.ends_with(".safetensors") ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

ModelWatch::ModelWatch(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  if (error) throw SystemError(folder, "open", error.value());
  for (const auto& entry : entries) {
    std::error_code ignored;
    if (!IsOfModel(entry.path().filename().string()) || !entry.exists(ignored)) continue;
    const std::string path = entry.path().string();
    if (const std::optional<FileState> state = SettledStateOf(path)) files_.emplace_back(path, *state);
  }
}

void ModelWatch::ThrowIfChanged() const {
  for (const auto& [path, state] : files_) ThrowIfChangedSince(state, path);
}

}  // namespace trainwright

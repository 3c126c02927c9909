#include "lib/train/start_model.h"

#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/shell_word.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/model/end_ids.h"
#include "lib/model/hf_folder.h"
#include "lib/model/open_model.h"
#include "lib/model/peft_folder.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

StartModel OpenStartModel(const FamilyList& families, const std::string& path,
                          const TokenizerIdentity& data_tokenizer) {
  StartModel start;
  start.folder = ResolveCheckpoint(path);
  if (IsPeftFolder(start.folder) && !std::filesystem::exists(start.folder + "/config.json")) {
    throw Error(ErrorCode::kBadInput, path, "is an adapter, not a model", "",
                "continue training it by --adapter, or merge it first: train --merge " + ShellWord(path));
  }
  start.watch.emplace(start.folder);
  FileHashes verified;
  VerifyCheckpointFiles(start.folder, &verified);
  start.config = ReadHfConfig(families, start.folder);
  start.end_ids = EndIdsOf(start.folder);
  const std::string hint =
      "pretokenize the data with the model's own tokenizer: pretokenize --tokenizer " + path;
  if (start.config.vocab_size < data_tokenizer.vocab_size) {
    throw Error(ErrorCode::kBadInput, path,
                "vocab_size " + std::to_string(start.config.vocab_size) + " is smaller than the " +
                    std::to_string(data_tokenizer.vocab_size) + " ids of the data's tokenizer",
                "config.json", hint);
  }
  std::string no_tokenizer;
  if (const auto tokenizer = LoadTokenizerOfFolder(start.folder, &no_tokenizer)) {
    if (tokenizer->identity().sha256 != data_tokenizer.sha256) {
      throw Error(ErrorCode::kBadInput, path, "has another tokenizer than the data", "", hint);
    }
    start.tokenizer_known = true;
  }
  start.provenance["files"] = HashesOfModel(start.folder, verified);
  return start;
}

std::string WarningOfOtherEmbedding(const std::string& folder, const std::optional<EmbeddingSpec>& trained) {
  if (!trained) return "";
  try {
    const std::optional<EmbeddingSpec> start = ReadEmbeddingSpec(folder);
    const std::string other = start ? DescribeOtherEmbedding(*start, *trained) : "";
    return other.empty() ? "" : "vectors are made otherwise than those of " + folder + ": " + other;
  } catch (const Error& error) {  // the weights are of use all the same
    return "vectors are made otherwise than those of " + folder + ": " + error.what();
  }
}

}  // namespace trainwright

#include "lib/train/start_model.h"

#include <filesystem>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/shell_word.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/io/file_checksum.h"
#include "lib/model/end_ids.h"
#include "lib/model/hf_folder.h"
#include "lib/model/open_model.h"
#include "lib/model/peft_folder.h"
#include "lib/model/weights_io.h"
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
  start.data_tokenizer_known = data_tokenizer.kind != kUnknownTokenizerKind;
  const std::string hint =
      start.data_tokenizer_known
          ? "pretokenize the data with the model's own tokenizer: pretokenize --tokenizer " + path
          : "the data's ids are of another program: see --vocab and --tokenizer of pack";
  if (start.config.vocab_size < data_tokenizer.vocab_size) {
    throw Error(ErrorCode::kBadInput, path,
                "vocab_size " + std::to_string(start.config.vocab_size) + " is smaller than the " +
                    std::to_string(data_tokenizer.vocab_size) + " ids of the data's tokenizer",
                "config.json", hint);
  }
  std::string no_tokenizer;
  if (AddedTokens lacking = TokensLackingInModel(start.folder);
      !lacking.empty() &&
      Sha256OfFile(start.folder + "/tokenizer.model") == HexEncode(data_tokenizer.sha256)) {
    start.lacking_tokens = std::move(lacking);
    start.tokenizer_known = true;
  } else if (const auto tokenizer = LoadTokenizerOfFolder(start.folder, &no_tokenizer)) {
    if (start.data_tokenizer_known && tokenizer->identity().sha256 != data_tokenizer.sha256) {
      throw Error(ErrorCode::kBadInput, path, "has another tokenizer than the data", "", hint);
    }
    start.tokenizer_known = true;
  }
  RequireWholeWeightFiles(start.folder);
  start.provenance["files"] = HashesOfModel(start.folder, verified);
  return start;
}

std::string WarningOfTokenizer(const StartModel& start, const std::string& name) {
  if (!start.data_tokenizer_known) {
    return "the data was packed without its tokenizer (pack --tokenizer): that its ids are those of " + name +
           " is not checked";
  }
  if (!start.tokenizer_known) {
    return "the tokenizer of " + name +
           " is of a kind that train cannot read: that the data's ids are the model's is not checked";
  }
  if (start.lacking_tokens.empty()) return "";
  return "the data was encoded by the tokenizer.model of " + name +
         ", which lacks tokens that the folder adds: " + DescribeAddedTokens(start.lacking_tokens) +
         "; texts that have them are trained on in other tokens than transformers gives the model";
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

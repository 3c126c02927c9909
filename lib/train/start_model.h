/// The model that a new run starts from: `train --init`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/embedding/embedding_spec.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/model/model_watch.h"
#include "lib/spec/family_list.h"
#include "lib/tok/folder_added_tokens.h"

namespace trainwright {

struct StartModel {
  std::string folder;  ///< with config.json and weights
  ModelConfig config;
  std::vector<uint32_t> end_ids;      ///< by which its samples end: EndIdsOf its folder
  nlohmann::ordered_json provenance;  ///< {"files": {name: sha256}} of config.json, weights and tokenizer
  bool data_tokenizer_known = true;   ///< else nothing is known of it but the size of its vocabulary
  /// The folder's tokenizer is one that this build reads, and is the data's, where that is known.
  bool tokenizer_known = false;
  /// Tokens that the folder adds to its tokenizer.model, where that alone is the data's tokenizer.
  AddedTokens lacking_tokens;
  std::optional<ModelWatch> watch;  ///< set; to be asked once the weights are loaded
};

/// Opens a checkpoint folder, a run directory of train, or a model folder of Hugging Face, and compares it
/// with the data's tokenizer, of an unknown one the size of its vocabulary alone. Files that the folder's
/// metadata.json lists are checked against it; all are hashed, and of the weights headers and sizes are
/// checked, which are loaded after the data.
/// \throws Error{kBadInput} when the folder holds no such model, or was made with another tokenizer;
///     Error{kIo}
StartModel OpenStartModel(const FamilyList& families, const std::string& path,
                          const TokenizerIdentity& data_tokenizer);

/// What to say about a run whose data may have other tokens than the model; empty: nothing.
/// \param name of the model, for the message
std::string WarningOfTokenizer(const StartModel& start, const std::string& name);

/// What to say about a run that trains vectors made otherwise than those of the model that it starts with;
/// empty: nothing.
/// \param folder of that model, or of the adapter
/// \param trained nothing: the run trains no vectors
std::string WarningOfOtherEmbedding(const std::string& folder, const std::optional<EmbeddingSpec>& trained);

}  // namespace trainwright

/// Model folders whose weights are made of those of others: by `train --merge` and `train --average`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/documents/chat_template.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/model/language_model.h"

namespace trainwright {

/// How a model embeds texts.
struct FolderEmbedding {
  std::optional<EmbeddingSpec> spec;  ///< nothing: nobody said it
  std::string folder;                 ///< whose projection it has, if that has one; empty: the model's own
};

/// \throws Error{kUsage} on --out, of a job that `flag` asks for, that is empty or not new
void RequireNewFolder(const std::string& out, const std::string& flag);

/// One pass over the weights: of quantised ones what they are scaled by.
/// \throws Error{kNonFinite} naming the folder and the tensor
void RequireFiniteWeights(const FlatParameters& parameters, const std::string& folder,
                          const std::string& problem);

/// Writes a model in fp32, with the tokenizer of a folder of the same model and how it generates, and
/// metadata.json with the hashes of these files. The folder appears whole or not at all.
/// \param chat_template nothing: that of the folder, or none where LacksJinjaTemplate of data_provenance
/// \param provenance goes into metadata.json: of what the model was made, and how
/// \param data_provenance goes there, too: of the data that it was trained on, by which tools write texts as
/// those are; null: nobody said it
/// \param path of the folder, new or empty
/// \throws Error{kIo}; Error{kUsage} where it is neither any more
void WriteModelLike(const std::string& folder, const LanguageModel& model,
                    const std::optional<ChatTemplate>& chat_template, const FolderEmbedding& embedding,
                    nlohmann::ordered_json provenance, const nlohmann::ordered_json& data_provenance,
                    const std::string& path);

}  // namespace trainwright

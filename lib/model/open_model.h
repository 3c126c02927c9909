/// Opening a model for use: a checkpoint folder, the newest checkpoint of a run, or a model of Hugging Face.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/model/model_family.h"
#include "lib/spec/weight_format.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

struct Checkpoint {
  std::string named;   ///< the folder that the path stands for: of the model, or of an adapter
  std::string folder;  ///< where the model's files are
  /// What was loaded, as IdentityOfModel says it. The adapter's is null without one.
  nlohmann::ordered_json model_identity, adapter_identity;
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<Tokenizer> tokenizer;  ///< null when the folder holds none that this build knows
  std::string tokenizer_problem;         ///< why there is none
};

/// The folder with config.json or adapter_config.json after a path: the path itself, or the newest
/// checkpoint of a run directory: what `latest` points to, or a whole one that was saved later, as a process
/// that was killed before it moved the link leaves it.
/// \throws Error{kBadInput} when it is neither
std::string ResolveCheckpoint(const std::string& path);

/// The folder of the base model that an adapter's config names; where that is not there any more, the one
/// that was moved together with the adapter, by its place beside the adapter's run or in it. That is known by
/// its config.json alone: RequireBaseOfAdapter compares the weights.
/// \param hint what the user may do
/// \throws Error{kBadInput} when it names none, or none that is here
std::string BaseOfAdapter(const std::string& folder, const std::string& hint);

/// The tokenizer of a model folder; null when it holds none that this build knows, and then why in `problem`.
/// \throws Error{kIo}
std::unique_ptr<Tokenizer> LoadTokenizerOfFolder(const std::string& folder, std::string* problem);

/// SHA-256 of the files that make a model folder what it is, by name: weights, config.json and tokenizer, and
/// of a model that embeds embedding.json and the projection.
/// \param known of files that were hashed before; only the others are read
/// \throws as LoadWeights
nlohmann::ordered_json HashesOfModel(const std::string& folder, const FileHashes& known = {});

/// One hash of a model's or adapter's weights: that of their file, as sha256sum prints it; of several files,
/// that of sha256sum's lines of them by rising names.
/// \param files as HashesOfModel gives them
std::string HashOfWeights(const nlohmann::ordered_json& files);

/// What names a model, or an adapter, in results: {"path", "sha256", "files": {name: sha256}}, with "sha256"
/// as HashOfWeights gives it.
/// \param known as of HashesOfModel
/// \throws as LoadWeights
nlohmann::ordered_json IdentityOfModel(const std::string& folder, const FileHashes& known);
nlohmann::ordered_json IdentityOfAdapter(const std::string& folder, const FileHashes& known);

/// Compares a base model with the SHA-256 of config.json and weights that the metadata.json of an adapter
/// records of the base it was trained on. An adapter without such a record, as peft writes it, goes with any
/// base of its shapes.
/// \param hint what the user may do
/// \param known SHA-256 by name of those files of the base that the caller has computed; the others are
///     computed here
/// \throws Error{kBadInput} on another base; Error{kIo}
void RequireBaseOfAdapter(const std::string& adapter_folder, const std::string& base_folder,
                          const std::string& hint, const FileHashes& known = {});

/// Loads model and tokenizer. Files that the folder's metadata.json lists are checked against it first.
/// \throws Error{kBadInput, kIo}; Error{kUsage} on an attention backend that cannot take the model
/// \param path of a model, or of an adapter in peft's layout: then the base is the folder that its
/// adapter_config.json names
/// \param adapter one to put beside the model; empty: none
/// \param allow_other_base whether it may be another model than the one that the adapter was trained on
/// \param embeds whether it is for vectors alone, so that its files may lack a head of its own, and its
/// config.json may ask for attention in both directions
/// \param format of the layers' matrices: quantised as they are read, adapters beside them are not
Checkpoint LoadCheckpoint(const ModelFamilies& families, const std::string& path, Precision precision,
                          at::Device device, const ComputeKinds& kinds = {}, const std::string& adapter = "",
                          bool allow_other_base = false, WeightFormat format = WeightFormat::kPlain,
                          bool embeds = false);

}  // namespace trainwright

/// Opening a model for use: a checkpoint folder, the newest checkpoint of a run, or a model of Hugging Face.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "lib/model/model_family.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

struct Checkpoint {
  std::string folder;  ///< where the files are
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<Tokenizer> tokenizer;  ///< null when the folder holds none that this build knows
  std::string tokenizer_problem;         ///< why there is none
};

/// The folder with config.json or adapter_config.json behind a path: the path itself, or the newest
/// checkpoint of a run directory: what `latest` points to, or a whole one that was saved later, as a process
/// that was killed before it moved the link leaves it.
/// \throws Error{kBadInput} when it is neither
std::string ResolveCheckpoint(const std::string& path);

/// The folder of the base model that an adapter's config names.
/// \throws Error{kBadInput} when it names none, or none that is here
std::string BaseOfAdapter(const std::string& folder);

/// The tokenizer of a model folder; null when it holds none that this build knows, and then why in `problem`.
/// \throws Error{kIo}
std::unique_ptr<Tokenizer> LoadTokenizerOfFolder(const std::string& folder, std::string* problem);

/// Compares a base model with the SHA-256 of config.json and weights that the metadata.json of an adapter
/// records of the base it was trained on. An adapter without such a record, as peft writes it, goes with any
/// base of its shapes.
/// \param hint what the user may do
/// \param known SHA-256 by name of those files of the base that the caller has computed; the others are
///     computed here
/// \throws Error{kBadInput} on another base; Error{kIo}
void RequireBaseOfAdapter(const std::string& adapter_folder, const std::string& base_folder,
                          const std::string& hint, const std::map<std::string, std::string>& known = {});

/// Loads model and tokenizer. Files that the folder's metadata.json lists are checked against it first.
/// \throws Error{kBadInput, kIo}; Error{kUsage} on an attention backend that cannot take the model
/// \param path of a model, or of an adapter in peft's layout: then the base is the folder that its
/// adapter_config.json names
/// \param adapter one to put beside the model; empty: none
/// \param allow_other_base whether it may be another model than the one that the adapter was trained on
Checkpoint LoadCheckpoint(const ModelFamilies& families, const std::string& path, Precision precision,
                          at::Device device, AttentionBackend attention = AttentionBackend::kAuto,
                          const std::string& adapter = "", bool allow_other_base = false);

}  // namespace trainwright

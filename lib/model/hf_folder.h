/// A model folder in Hugging Face's layout: what transformers opens, and what it wrote.
///
///   config.json  generation_config.json  model.safetensors
///   tokenizer.model  tokenizer_config.json            (SentencePiece)
///   tokenizer.json   tokenizer_config.json            (byte-level BPE; bytes: one token a byte)
///   *.py                                              (ModelFamily::code, named by auto_map in config.json)
///   2_Dense/                                          (of a model that embeds: embedding_projection.h)
///
/// Of the program text nothing is read here: a folder without it is the same model.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/formats/tokenizer_identity.h"
#include "lib/model/model_family.h"
#include "lib/model/weights_io.h"
#include "lib/spec/parameter_rules.h"
#include "lib/spec/weight_format.h"

namespace trainwright {

/// Writes all files of the layout into an existing folder, each atomically. Another thread may train the
/// model meanwhile when `weights` has values.
/// \param generation_before as of EncodeGenerationConfig
/// \throws Error{kIo}
void WriteHfFolder(const std::string& folder, const LanguageModel& model, const TokenizerIdentity& tokenizer,
                   const WeightsOutput& weights = {},
                   const nlohmann::ordered_json& generation_before = nullptr);

/// The folder's config.json.
/// \throws Error{kBadInput, kIo}
ModelConfig ReadHfConfig(const FamilyList& families, const std::string& folder);

/// The model with the folder's weights.
/// \param embedding what is trained of a model that embeds texts; nothing said: it has the folder's
///     projection, if there is one
/// \param format other than kPlain for a model that is only read
/// \param rules of the run that trains it
/// \throws Error{kBadInput, kIo}
std::unique_ptr<LanguageModel> LoadHfModel(const ModelFamilies& families, const std::string& folder,
                                           Precision precision, at::Device device,
                                           const ComputeKinds& kinds = {},
                                           const std::optional<EmbeddingTuning>& embedding = {},
                                           WeightFormat format = WeightFormat::kPlain,
                                           const ParameterRules& rules = {});

}  // namespace trainwright

/// What makes the folder of a model that embeds open in sentence-transformers, and in transformers with the
/// attention that it was trained with:
///
///   embedding.json                          what this suite reads (embedding_spec.h)
///   modules.json                            body, pooling, projection, normalisation
///   sentence_bert_config.json  config_sentence_transformers.json  1_Pooling/config.json
///   modeling_trainwright_bidirectional.py   of bidirectional attention: config.json names it (auto_map)
///   trainwright_pooling.py                  of pooling weightedmean after a prompt
///
/// The prompts are what the template writes before a text without an instruction, but for a BOS that
/// the tokenizer itself puts there. Weights and tokenizer are WriteHfFolder's, the projection
/// WriteProjection's.
#pragma once

#include <string>

#include "lib/embedding/embedding_spec.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// embedding.json alone: all that an adapter's folder needs.
/// \param config of the model; says the size of a vector that the spec leaves open
/// \throws Error{kIo}
void WriteEmbeddingSpec(const std::string& folder, const ModelConfig& config, EmbeddingSpec spec);

/// Writes all of them beside the model's files, each atomically, config.json again and last. A tokenizer
/// without a pad token pads with BOS: what is padded, after the text, is masked.
/// \param folder with the tokenizer's files
/// \throws Error{kIo}; Error{kUsage} on a template that is none
void WriteEmbeddingFolder(const std::string& folder, const ModelConfig& config, const EmbeddingSpec& spec);

}  // namespace trainwright

/// What a plan says about the objective `grit`, resolved from its own options (lib/spec/grit_description.cc).
#pragma once

#include <cstdint>
#include <string>

#include "lib/embedding/embedding_spec.h"
#include "lib/nn/attention/attention_shape.h"
#include "lib/nn/loss/contrastive_options.h"
#include "lib/nn/pooling/pooling.h"
#include "lib/objective/grit_data.h"
#include "lib/spec/own_options.h"

namespace trainwright {

/// Among whose passages a query finds its positives.
enum class NegativesOf : uint8_t {
  kStep,        ///< of all ranks
  kRank,        ///< of the step's on its rank
  kMicroBatch,  ///< of its micro-batch: no vectors are kept
};

/// What the generative loss is the mean of; see grit_generative.h.
enum class GenerativeLoss : uint8_t { kMixed, kToken, kSample };

/// Texts whose gradients are followed.
enum class EmbeddedSides : uint8_t { kBoth, kQueries, kPassages };

struct GritOptions {
  GritDataOptions data;  ///< with what is embedded and generated at all
  ContrastiveOptions contrastive;
  NegativesOf negatives = NegativesOf::kStep;
  /// Whether the gradient of the contrastive loss is divided by the number of ranks that score together, as
  /// where ranks average gradients each of which is of its own vectors alone.
  bool divides_by_ranks = false;
  Pooling pooling = Pooling::kMean;
  std::string attention = "bbcc";                      ///< as in EmbeddingSpec
  AttentionMask mask = AttentionMask::kBidirectional;  ///< that it means for texts to embed
  int64_t projection = 0;                              ///< elements of its result; 0: none
  bool rounds_vectors = false;                         ///< to the type of the precision, and their gradients
  EmbeddedSides sides = EmbeddedSides::kBoth;
  /// Whether passages and queries of a micro-batch go through the model apart, when their vectors are
  /// computed and when their gradients are.
  bool splits_forward = false, splits_backward = false;
  /// Whether the texts, or the rows, of a rank's step or leaf go through the model in one pass.
  bool joins_texts = false, joins_rows = false;
  GenerativeLoss generative_loss = GenerativeLoss::kMixed;
  bool means_of_micro_batches = false;  ///< of kMixed: the mean over micro-batches of their means
  double generative_factor = 1;
  int64_t evaluation_queries = 1000;  ///< of an evaluation during training, at most

  bool embeds() const { return data.embeds; }
  bool generates() const { return data.generates; }
};

/// \param own with a value for each option of GritDescription
/// \param seed of the run
/// \throws Error{kUsage} on what the description calls a problem
GritOptions GritOptionsOf(const OwnOptions& own, uint64_t seed);

/// How the model makes vectors, but for how texts are written, which the data says.
EmbeddingSpec EmbeddingSpecOf(const GritOptions& options);

/// The options by which a model is said to make vectors so: the reverse. The others have their defaults.
/// \param spec with both lengths
OwnOptions GritOwnOptionsOf(const EmbeddingSpec& spec);

}  // namespace trainwright

/// The floating-point operations that a model's mathematics ask for, whatever is computed to get there.
///
/// Counted are the matrix products of the layers and of the head, and attention, at two operations a
/// multiply-add; the backward pass is twice the forward pass. Embedding look-ups, norms, biases, activations,
/// rotary positions, the softmax and the optimizer are not. \source Chowdhery et al. 2022, PaLM,
/// arXiv:2204.02311, appendix B; unlike there, attention is counted as the mask leaves it, within each span
/// and backwards only, and the head for tokens that have a label.
///
/// Of a model with low-rank adapters only the products that training them needs are counted: frozen matrices
/// have no weight gradient, and below the lowest adapter there is no backward pass. A frozen matrix that is
/// kept in 4 bits counts as the product that it is; reading it is none.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/model/language_model.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// What a step's samples hold.
struct TokenCounts {
  int64_t tokens = 0, labels = 0;
  int64_t attention_pairs = 0;  ///< (token, token that it attends to), itself among them
};

/// Pairs of spans [starts[s], starts[s+1]): each of n tokens has n * (n + 1) / 2, or W * (W + 1) / 2 + (n -
/// W) * W under a window W < n.
/// \param starts [S+1]
/// \param window 0: none
int64_t CountAttentionPairs(const std::vector<int32_t>& starts, int64_t window = 0);
/// The mean over the layers of a model, rounded down.
int64_t CountAttentionPairs(const std::vector<int32_t>& starts, const ModelConfig& config);

/// Operations of one forward and backward pass over the tokens:
///   3 * (2 * tokens * layers * (2*D*H*K + 2*D*G*K + m*D*F) + 2 * labels * D*V + 4 * pairs * layers * H*K)
/// with m = 3 matrices in a gated MLP and 2 in a plain one; letters as in ModelConfig.
double TrainingFlops(const ModelConfig& config, const TokenCounts& counts);

/// The same, by what the operations grow with.
struct StepFlops {
  double per_token = 0, per_label = 0, per_pair = 0;
  double Of(const TokenCounts& counts) const;
};

/// Of a forward and backward pass of what the model trains: all of it, as above, or its adapters. With
/// adapters of rank r beside matrices of [out, in]:
///   forward   2 in out for every matrix, 2 r (in + out) for every adapter, the head and attention as above
///   backward  4 r out + 2 r in for every adapter; 2 in out for every matrix and 2 r in for every adapter
///   whose input
///             leads down to an adapter; the head's 2 D V a label once; attention's twice the forward pass in
///             the layers where an adapter lies at the queries, keys and values or in a layer below
StepFlops CountStepFlops(const LanguageModel& model);

}  // namespace trainwright

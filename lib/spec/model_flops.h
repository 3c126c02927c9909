/// The floating-point operations that a model's mathematics ask for, whatever is computed to get there. Free
/// of torch.
///
/// Counted are the GEMMs of the layers and of the head, and attention, at two operations a
/// multiply-add; the backward pass is twice the forward pass. Embedding look-ups, norms, biases, activations,
/// rotary positions, the softmax and the optimizer are not. \source Chowdhery et al. 2022, PaLM,
/// arXiv:2204.02311, appendix B; unlike there, attention is counted as the mask leaves it, within each span
/// and backwards only, and the head for tokens that have a label.
///
/// Of a model with low-rank adapters only the GEMMs that training them needs are counted: frozen matrices
/// have no weight gradient, and below the lowest adapter there is no backward pass. A frozen matrix that is
/// kept in 4 bits counts as the GEMM that it is; reading it is none.
///
/// What a layer computes is its family's business (lib/spec/family.h); lib/spec/transformer_family.h has the
/// formula of the families with attention, lib/spec/ten_flops.cc that of a recurrence, whose scan and
/// convolution count, too. lib/spec/adapter_flops.h counts what adapters take.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/spec/fine_tuning.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// What a step's samples hold.
struct TokenCounts {
  int64_t tokens = 0, labels = 0;
  int64_t attention_pairs = 0;  ///< (token, token that it attends to), itself among them
};

/// Operations of a forward and backward pass, by what they grow with.
struct StepFlops {
  double per_token = 0, per_label = 0, per_pair = 0;
  double Of(const TokenCounts& counts) const;
};

/// Pairs of spans [starts[s], starts[s+1]): each of n tokens has n * (n + 1) / 2, or W * (W + 1) / 2 + (n -
/// W) * W under a window W < n.
/// \param starts [S+1]
/// \param window 0: none
int64_t CountAttentionPairs(const std::vector<int32_t>& starts, int64_t window = 0);
/// The mean over the layers of a model, rounded down; 0 without attention.
int64_t CountAttentionPairs(const std::vector<int32_t>& starts, const ModelConfig& config);

/// Of what the tuning trains: all of the model, or its adapters.
/// \throws Error{kUsage} on adapters of modules that the model lacks
StepFlops CountStepFlops(const ModelConfig& config, const FineTuning& tuning);

/// Operations of one forward and backward pass over the tokens, all of the model being trained.
double TrainingFlops(const ModelConfig& config, const TokenCounts& counts);

}  // namespace trainwright

/// What the time of a training step is spent on, as a profile divides it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trainwright {

enum class ProfilePart : uint8_t {
  kGemm,        ///< GEMMs, those of the loss head among them
  kAttention,   ///< scores, softmax and their products
  kScan,        ///< recurrences and convolutions along a sample
  kNorm,        ///< normalisation, with the residual sum that is fused into it
  kActivation,  ///< SwiGLU, GELU, gates and dropout
  kPosition,    ///< rotation by position
  kEmbedding,   ///< look-up of token vectors, and its gradient
  kHead,        ///< loss: softmax and cross-entropy, contrastive scores
  kOptimizer,   ///< update of the weights
  kClip,        ///< norm of the gradients
  kInput,       ///< waiting for samples and laying them out as micro-batches
  kUpload,      ///< copies between host and device
  kExchange,    ///< with other ranks, waiting for them included
  kCheckpoint,  ///< what a save costs the training thread
  kEvaluation,  ///< on held-out data
  kOther        ///< the rest
};

inline constexpr size_t kProfileParts = 16;

/// As records and tables name them.
inline constexpr std::array<const char*, kProfileParts> kProfilePartNames = {
    "gemm",      "attention", "scan",  "norm",   "activation", "position",   "embedding",  "head",
    "optimizer", "clip",      "input", "upload", "exchange",   "checkpoint", "evaluation", "other"};

constexpr const char* ProfilePartName(ProfilePart part) {
  return kProfilePartNames[static_cast<size_t>(part)];
}

}  // namespace trainwright

/// How much of the layers' activations stays from the forward to the backward pass. Free of torch.
///
/// What does not stay is computed again layer by layer in the backward pass, by the same kernels in the same
/// order on the same numbers: gradients are equal bit for bit, memory is traded for time. Nothing random has
/// a state that would have to be kept: dropout is a function of its position (lib/nn/linear/lora.h). One
/// exception: on a GPU kLeast keeps what a GEMM wrote that has a GELU within it (gelu_mlp.h), the others
/// compute that from its rounded input. \source Chen et al. 2016, arXiv:1604.06174; selective: Korthikanti et
/// al. 2022, arXiv:2205.05198
#pragma once

#include <string>

namespace trainwright {

enum class ActivationCheckpointing {
  kLeast,  ///< all stays, and so does what is quick to compute again: the output of the MLP's SwiGLU or GELU
  kNo,     ///< all stays that takes a GEMM or attention to compute
  kSelective,  ///< all but the inner activations of the MLP: its first GEMMs are computed again
  kFull,  ///< the layers' inputs alone: a layer's whole forward pass is computed again, but the last one's
};

/// "least", "no", "selective" or "full".
/// \throws Error{kUsage} naming `flag`
ActivationCheckpointing ParseActivationCheckpointing(const std::string& text, const std::string& flag);

}  // namespace trainwright

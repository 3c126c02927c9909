/// What of training waits outside the memory of the device that computes. Free of torch.
///
/// Neither changes a result, but for the rounding of the norm of offloaded gradients on a GPU. \source
/// gradients kept apart from the device: Ren et al. 2021, arXiv:2101.06840
#pragma once

#include <string>

namespace trainwright {

struct OffloadChoice {
  bool activations = false;  ///< what layers keep for their backward pass: lib/device/offload_stack.h
  bool gradients = false;    ///< of the layers that are not worked on: lib/nn/parameters/gradient_buffer.h
  bool any() const { return activations || gradients; }
};

/// "no", "activations", "gradients" or "all".
/// \throws Error{kUsage} naming `flag`
OffloadChoice ParseOffloadChoice(const std::string& text, const std::string& flag);

}  // namespace trainwright

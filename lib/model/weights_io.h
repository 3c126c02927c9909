/// Weights to and from safetensors files under Hugging Face's tensor names.
#pragma once

#include <string>

#include "lib/io/byte_sink.h"
#include "lib/nn/flat_parameters.h"

namespace trainwright {

/// Writes the fp32 masters as model.safetensors; tied embeddings once. The caller commits.
void SaveWeights(const FlatParameters& parameters, ByteSink* sink);

/// Fills every parameter from a folder's model.safetensors, or from the files that its
/// model.safetensors.index.json names; F32, BF16 and F16 sources. Then refreshes the compute copy. \throws
/// Error{kBadInput} naming the tensor that is missing, unexpected or of another shape or type; Error{kIo}
void LoadWeights(const std::string& folder, FlatParameters* parameters);

}  // namespace trainwright

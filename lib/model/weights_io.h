/// Weights to and from safetensors files under Hugging Face's tensor names.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "lib/io/byte_sink.h"
#include "lib/nn/flat_parameters.h"

namespace trainwright {

/// How weights are written.
struct WeightsOutput {
  at::Tensor values = {};  ///< of the trained parameters, as FlatParameters::values(); undefined: the present ones
  bool compress = false;  ///< as ckpt-compress does: what Hugging Face's tools do not open
  int threads = 1;        ///< of the compression
};

/// Writes the fp32 masters as model.safetensors; tied embeddings once. When `output` has values nothing is
/// read that training changes. The caller commits.
void SaveWeights(const FlatParameters& parameters, OverwritableSink* sink, const WeightsOutput& output = {});

/// Fills every parameter from a folder's model.safetensors, or from the files that its
/// model.safetensors.index.json names; F32, BF16 and F16 sources. Then refreshes the compute copy. \throws
/// Error{kBadInput} naming the tensor that is missing, unexpected or of another shape or type; Error{kIo}
void LoadWeights(const std::string& folder, FlatParameters* parameters);

}  // namespace trainwright

/// Weights to and from safetensors files under Hugging Face's tensor names.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/nn/flat_parameters.h"

namespace trainwright {

/// How weights are written.
struct WeightsOutput {
  at::Tensor values = {};  ///< of the trained parameters, as FlatParameters::values(); undefined: the present ones
  bool compress = false;  ///< as ckpt-compress does: what Hugging Face's tools do not open
  int threads = 1;        ///< of the compression
};

/// Writes the fp32 masters as model.safetensors; tied embeddings once, adapters not. When `output` has
/// values nothing is read that training changes. The caller commits.
void SaveWeights(const FlatParameters& parameters, OverwritableSink* sink, const WeightsOutput& output = {});

/// Fills every parameter, but those of adapters, from a folder's model.safetensors, or from the files that its
/// model.safetensors.index.json names; F32, BF16 and F16 sources. Then refreshes the compute copy. \throws
/// Error{kBadInput} naming the tensor that is missing, unexpected or of another shape or type; Error{kIo}
void LoadWeights(const std::string& folder, FlatParameters* parameters);

/// The entry's data as a tensor, valid as long as the data. \param path of its file, for the messages
/// \throws Error{kBadInput} unless it has this shape and is F32, BF16 or F16
at::Tensor ViewTensor(const SafetensorsEntry& entry, const uint8_t* data, const std::string& path,
                      const std::vector<int64_t>& shape);

}  // namespace trainwright

/// Weights to and from safetensors files under Hugging Face's tensor names.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/nn/parameters/flat_parameters.h"

namespace trainwright {

/// A tensor of a parameter's shape (its value, or its gradient) in the order and shape that files have; a
/// view where the order allows one.
at::Tensor AsInFiles(const Parameter& parameter, const at::Tensor& tensor);

/// The reverse: a tensor as files have it in the order and shape of the parameter.
at::Tensor AsInModel(const Parameter& parameter, const at::Tensor& stored);

/// How weights are written.
struct WeightsOutput {
  at::Tensor values =
      {};  ///< of the trained parameters, as FlatParameters::values(); undefined: the present ones
  /// Where masters are sharded: reads some of all ranks' that lie side by side, into fp32 on the host. Called
  /// once for each parameter that has no value, from the thread that writes.
  std::function<void(int64_t begin, at::Tensor out)> read_masters = {};
  bool reads_all =
      false;  ///< `read_masters` has the values of all trained parameters, of those with values too
  bool compress = false;  ///< as ckpt-compress does: what Hugging Face's tools do not open
  int threads = 1;        ///< of the compression
};

/// Writes the fp32 masters as model.safetensors; tied embeddings once; adapters, the projection of
/// embeddings (embedding_projection.h) and a head that the model was loaded without not. When `output` has
/// values nothing is read that training changes. The caller commits.
void SaveWeights(const FlatParameters& parameters, OverwritableSink* sink, const WeightsOutput& output = {});

/// The files of a folder that hold its weights, and the index if there is one.
/// \throws as LoadWeights
std::vector<std::string> WeightFileNames(const std::string& folder);

/// Looks at the headers and sizes of a folder's files of weights, which costs no more than opening them: for
/// a run that reads the weights later. Of a compressed stream nothing is looked at.
/// \throws as LoadWeights, on a file that is missing, cut, or no safetensors file
void RequireWholeWeightFiles(const std::string& folder);

/// Fills every parameter, but those of adapters and of the projection of embeddings, from a folder's
/// model.safetensors, or from the files that its model.safetensors.index.json names; F32, BF16 and F16
/// sources. Then refreshes the compute copy. Files are mapped one at a time and leave memory tensor by
/// tensor: besides the model it takes about the largest tensor.
///
/// Where nothing reads a head of its own (EmbeddingTuning::needs_head) files may lack it, as a body that
/// AutoModel or sentence-transformers saved.
///
/// Tensors that are copies of what the model computes are skipped: rotary frequencies, causal masks. A
/// copy of a tied head must be equal to the embeddings. Names may lack the prefix of the family, as when the
/// body of a model was saved alone, and may have what PyTorch's wrappers add ("_orig_mod.", "module.").
/// \throws Error{kBadInput} naming the file or tensor that is missing, unexpected, damaged or of another
///     shape or type, and on decays of a recurrence that are not finite; Error{kIo}
void LoadWeights(const std::string& folder, FlatParameters* parameters);

/// The entry's data as a tensor, valid as long as the data.
/// \param path of its file, for the messages
/// \throws Error{kBadInput} unless it has this shape and is F32, BF16 or F16
at::Tensor ViewTensor(const SafetensorsEntry& entry, const uint8_t* data, const std::string& path,
                      const std::vector<int64_t>& shape);

}  // namespace trainwright

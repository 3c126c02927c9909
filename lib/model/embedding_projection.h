/// The projection of a model that embeds: a linear layer after the pooling. In a model's folder it lies
/// apart from the model's weights, where sentence-transformers has its Dense module:
///
///   2_Dense/config.json        in_features, out_features
///   2_Dense/model.safetensors  linear.weight [p, D], linear.bias [p], fp32
///
/// A folder of other programs may have no bias, and say "bias": false: it is read as zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/model/weights_io.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/spec/fine_tuning.h"

namespace trainwright {

/// The projection's folder, within that of its model.
inline constexpr char kProjectionFolder[] = "2_Dense";

/// Adds matrix and bias. Before Allocate.
/// \param size p, positive
/// \returns the index of the matrix; that of the bias is the next one
size_t AddProjection(int64_t size, int64_t hidden_size, FlatParameters* parameters);

/// Whether a parameter is of the projection, by its name: no part of what config.json describes.
bool IsProjectionParameter(const Parameter& parameter);

/// Writes the projection of a model that has one; of others nothing.
/// \param folder of the model, exists
/// \param output as of SaveWeights, without compression
/// \throws Error{kIo}
void WriteProjection(const std::string& folder, const FlatParameters& parameters,
                     const WeightsOutput& output = {});

/// Elements of the vectors that the projection of a model's folder makes; nothing where it has none.
/// \throws Error{kBadInput, kIo}
std::optional<int64_t> ProjectionOf(const std::string& folder);

/// What a model needs beside config.json to take the weights of a folder: its projection, if it has one.
/// \param needs_head as in EmbeddingTuning
/// \throws as ProjectionOf
EmbeddingTuning EmbeddingTuningOf(const std::string& folder, bool needs_head = true);

/// Fills the projection of a model that has one, and refreshes the compute copy.
/// \throws Error{kBadInput} naming the tensor that is missing or of another shape or type; Error{kIo}
void LoadProjection(const std::string& folder, FlatParameters* parameters);

}  // namespace trainwright

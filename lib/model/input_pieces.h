/// A packed micro-batch cut into pieces of at most this many rows, for truncated backpropagation through
/// time.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/model/language_model.h"

namespace trainwright {

/// Cut at every `tokens` rows, whatever the spans: a piece that begins inside a span continues it. Elements
/// that dropout takes of a row are the same in every piece. Tensors are views of the input's.
/// \param tokens 0: one piece, the input itself
std::vector<ModelInput> PiecesOf(const ModelInput& input, int64_t tokens);

}  // namespace trainwright

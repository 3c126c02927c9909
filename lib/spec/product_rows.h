/// The rows of a GEMM as in its name (product_choices.h). Free of torch.
#pragma once

#include <cstdint>

namespace trainwright {

/// Rows rounded up to the next of eight steps an octave: micro-batches of texts differ by a few tokens, and a
/// kernel that is fast for one of them is fast for its neighbours.
/// \param rows at least 1
int64_t RowsOfProduct(int64_t rows);

}  // namespace trainwright

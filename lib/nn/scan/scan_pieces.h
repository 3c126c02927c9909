/// The chunks of the spans of a packed batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/nn/attention/span_table.h"

namespace trainwright {

/// Rows [first, first + rows), all of one span.
struct ScanPiece {
  int64_t first = 0, rows = 0;
  int64_t span = 0;
  bool begins_span = false, ends_span = false;
};

/// Each span from its first row on; all but its last chunk have `chunk` rows.
/// \param spans none is empty
/// \param chunk at least 1
std::vector<ScanPiece> ScanPieces(const SpanTable& spans, int64_t chunk);

/// The same as a tensor, int32 [C, 5], on the CPU: of each chunk its first row, its rows, how many chunks of
/// its span come before it and after it, and its span.
at::Tensor ScanPieceTable(const SpanTable& spans, int64_t chunk);
/// The spans that such a table was made of.
SpanTable SpansOfPieceTable(const at::Tensor& pieces_c5);

}  // namespace trainwright

#include "lib/nn/scan/scan_pieces.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {

std::vector<ScanPiece> ScanPieces(const SpanTable& spans, int64_t chunk) {
  TRAINWRIGHT_CHECK(chunk >= 1);
  std::vector<ScanPiece> pieces;
  for (size_t span = 0; span + 1 < spans.starts.size(); ++span) {
    const int64_t begin = spans.starts[span], end = spans.starts[span + 1];
    TRAINWRIGHT_CHECK(begin < end);
    for (int64_t first = begin; first < end; first += chunk) {
      const int64_t rows = std::min(chunk, end - first);
      pieces.push_back({first, rows, static_cast<int64_t>(span), first == begin, first + rows == end});
    }
  }
  return pieces;
}

at::Tensor ScanPieceTable(const SpanTable& spans, int64_t chunk) {
  const std::vector<ScanPiece> pieces = ScanPieces(spans, chunk);
  at::Tensor pieces_c5 = at::empty({std::ssize(pieces), 5}, at::TensorOptions().dtype(at::kInt));
  auto* out = pieces_c5.mutable_data_ptr<int32_t>();
  for (const ScanPiece& piece : pieces) {
    const auto span = static_cast<size_t>(piece.span);
    const int64_t before = (piece.first - spans.starts[span]) / chunk;
    const int64_t after = (spans.starts[span + 1] - piece.first - 1) / chunk;
    for (const int64_t number : {piece.first, piece.rows, before, after, piece.span}) {
      *out++ = static_cast<int32_t>(number);
    }
  }
  return pieces_c5;
}

SpanTable SpansOfPieceTable(const at::Tensor& pieces_c5) {
  TRAINWRIGHT_CHECK(pieces_c5.dim() == 2 && pieces_c5.size(1) == 5 && pieces_c5.is_contiguous());
  const auto* table = pieces_c5.const_data_ptr<int32_t>();
  std::vector<int32_t> starts = {0};
  for (int64_t n = 0; n < pieces_c5.size(0); ++n) {
    const int32_t* piece = table + 5 * n;
    if (piece[3] == 0) starts.push_back(piece[0] + piece[1]);  // no chunk of its span comes after it
  }
  return {std::move(starts)};
}

}  // namespace trainwright

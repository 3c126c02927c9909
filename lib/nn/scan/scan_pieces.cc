#include "lib/nn/scan/scan_pieces.h"

#include <algorithm>

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

}  // namespace trainwright

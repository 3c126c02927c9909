#include "lib/model/input_pieces.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

std::vector<int32_t> StartsOf(const std::vector<int32_t>& starts, int64_t begin, int64_t end) {
  std::vector<int32_t> own = {0};
  for (const int32_t start : starts) {
    if (start > begin && start < end) own.push_back(static_cast<int32_t>(start - begin));
  }
  own.push_back(static_cast<int32_t>(end - begin));
  return own;
}

/// The first rows may be of a sample that began before them.
DropoutPosition DropoutOf(const DropoutPosition& dropout, int64_t begin, int64_t end) {
  DropoutPosition own = {.seed = dropout.seed, .step = dropout.step, .samples = {}};
  for (const DropoutPosition::Sample& sample : dropout.samples) {
    if (sample.row >= end) break;
    const int64_t before = std::max<int64_t>(0, begin - sample.row);
    if (sample.row <= begin) own.samples.clear();
    own.samples.push_back(
        {.index = sample.index, .row = sample.row + before - begin, .token = sample.token + before});
  }
  return own;
}

/// Rows [begin, end).
ModelInput PieceOf(const ModelInput& input, int64_t begin, int64_t end) {
  const auto rows = [&](const at::Tensor& tensor_n) {
    return tensor_n.defined() ? tensor_n.narrow(0, begin, end - begin) : tensor_n;
  };
  ModelInput piece;
  piece.tokens_n = rows(input.tokens_n);
  piece.positions_n = rows(input.positions_n);
  piece.span_starts = StartsOf(input.span_starts, begin, end);
  piece.pin = input.pin;
  piece.mask = input.mask;
  if (input.dropout) piece.dropout = DropoutOf(*input.dropout, begin, end);
  piece.continues = !std::binary_search(input.span_starts.begin(), input.span_starts.end(), begin);
  piece.labels_n = rows(input.labels_n);
  piece.weights_n = rows(input.weights_n);
  return piece;
}

}  // namespace

std::vector<ModelInput> PiecesOf(const ModelInput& input, int64_t tokens) {
  const int64_t rows = input.tokens_n.numel();
  if (tokens == 0 || rows <= tokens) return {input};
  TRAINWRIGHT_CHECK(!input.continues);
  std::vector<ModelInput> pieces;
  for (int64_t begin = 0; begin < rows; begin += tokens) {
    pieces.push_back(PieceOf(input, begin, std::min(begin + tokens, rows)));
  }
  return pieces;
}

}  // namespace trainwright

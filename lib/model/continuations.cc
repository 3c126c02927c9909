#include "lib/model/continuations.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "lib/base/error.h"
#include "lib/device/upload.h"

namespace trainwright {

DeviceInput PackContinuations(const std::vector<Continuation>& next,
                              const std::function<int64_t(int64_t sequence)>& length_of, int64_t rows,
                              int64_t vocab_size, at::Device device) {
  int64_t appended = 0;
  for (const Continuation& continuation : next) appended += std::ssize(continuation.tokens);
  rows = std::max(rows, appended);
  const auto longs = at::TensorOptions().dtype(at::kLong);
  const at::Tensor tokens_n = at::zeros({rows}, longs), positions_n = at::zeros({rows}, longs);
  auto *tokens = tokens_n.mutable_data_ptr<int64_t>(), *positions = positions_n.mutable_data_ptr<int64_t>();
  std::vector<int32_t> starts = {0};
  int64_t row = 0;
  for (const Continuation& continuation : next) {
    TRAINWRIGHT_CHECK(!continuation.tokens.empty());
    int64_t position = length_of(continuation.sequence);
    for (const int64_t token : continuation.tokens) {
      if (token < 0 || token >= vocab_size) {
        throw Error(ErrorCode::kBadInput, "prompt",
                    "id " + std::to_string(token) + " is outside the model's vocabulary");
      }
      tokens[row] = token;
      positions[row++] = position++;
    }
    starts.push_back(static_cast<int32_t>(row));
  }
  for (; row < rows; ++row) starts.push_back(static_cast<int32_t>(row + 1));
  return {Upload(tokens_n, device), Upload(positions_n, device), positions_n, SpanTable(starts, device)};
}

at::Tensor LastRowsOf(const at::Tensor& hidden_nd, const std::vector<Continuation>& next) {
  std::vector<int64_t> last_rows;
  int64_t appended = 0;
  for (const Continuation& continuation : next) {
    appended += std::ssize(continuation.tokens);
    last_rows.push_back(appended - 1);
  }
  if (std::ssize(last_rows) == appended) return hidden_nd;  // a token each
  const at::Tensor wanted = at::empty({std::ssize(last_rows)}, at::TensorOptions().dtype(at::kLong));
  std::copy(last_rows.begin(), last_rows.end(), wanted.mutable_data_ptr<int64_t>());
  return at::index_select(hidden_nd, 0, Upload(wanted, hidden_nd.device()));
}

}  // namespace trainwright

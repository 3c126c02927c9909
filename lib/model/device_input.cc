#include "lib/model/device_input.h"

#include <algorithm>
#include <string>

#include "lib/base/error.h"
#include "lib/device/upload.h"

namespace trainwright {

void CheckInput(const ModelInput& input, int64_t vocab_size, int64_t positions_limit) {
  const int64_t num_tokens = input.tokens_n.numel();
  TRAINWRIGHT_CHECK(num_tokens > 0 && input.positions_n.numel() == num_tokens &&
                    input.labels_n.numel() == num_tokens);
  TRAINWRIGHT_CHECK(input.span_starts.size() >= 2 && input.span_starts.front() == 0 &&
                    input.span_starts.back() == num_tokens);
  TRAINWRIGHT_CHECK(std::is_sorted(input.span_starts.begin(), input.span_starts.end()));
  const auto *tokens = input.tokens_n.const_data_ptr<int64_t>(),
             *labels = input.labels_n.const_data_ptr<int64_t>(),
             *positions = input.positions_n.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < num_tokens; ++i) {
    const int64_t id = tokens[i] < 0 || tokens[i] >= vocab_size ? tokens[i] : labels[i];
    if (tokens[i] < 0 || id >= vocab_size) {
      throw Error(
          ErrorCode::kBadInput, "tokens",
          "id " + std::to_string(id) + " is outside the model's vocabulary of " + std::to_string(vocab_size),
          "position " + std::to_string(i), "the data and the model must use the same tokenizer");
    }
    if (positions[i] >= positions_limit) {
      throw Error(ErrorCode::kBadInput, "tokens",
                  "a sample is longer than the " + std::to_string(positions_limit) +
                      " positions that the model learned",
                  "position " + std::to_string(positions[i]), "use a smaller --seq");
    }
    TRAINWRIGHT_CHECK(positions[i] >= 0 && positions[i] < num_tokens);
  }
}

DeviceInput ToDevice(const ModelInput& input, int64_t vocab_size, at::Device device) {
  return {UploadIds(input.tokens_n, vocab_size, device, input.pin),
          UploadIds(input.positions_n, input.positions_n.numel(), device, input.pin), input.positions_n,
          SpanTable(input.span_starts, device, input.pin)};
}

}  // namespace trainwright

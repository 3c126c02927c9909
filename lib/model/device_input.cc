#include "lib/model/device_input.h"

#include <algorithm>
#include <limits>
#include <string>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/device/upload.h"
#include "lib/model/staged_input.h"

namespace trainwright {
namespace {

[[noreturn]] void RefuseId(int64_t id, int64_t position, int64_t vocab_size) {
  throw Error(
      ErrorCode::kBadInput, "tokens",
      "id " + std::to_string(id) + " is outside the model's vocabulary of " + std::to_string(vocab_size),
      "position " + std::to_string(position), "the data and the model must use the same tokenizer");
}

}  // namespace

void CheckInput(const BodyInput& input, int64_t vocab_size, int64_t positions_limit) {
  const int64_t num_tokens = input.tokens_n.numel();
  TRAINWRIGHT_CHECK(num_tokens > 0 && input.positions_n.numel() == num_tokens);
  TRAINWRIGHT_CHECK(input.span_starts.size() >= 2 && input.span_starts.front() == 0 &&
                    input.span_starts.back() == num_tokens);
  TRAINWRIGHT_CHECK(std::is_sorted(input.span_starts.begin(), input.span_starts.end()));
  const auto *tokens = input.tokens_n.const_data_ptr<int64_t>(),
             *positions = input.positions_n.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < num_tokens; ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size) RefuseId(tokens[i], i, vocab_size);
    if (positions[i] >= positions_limit) {
      throw Error(ErrorCode::kBadInput, "tokens",
                  "a sample is longer than the " + std::to_string(positions_limit) +
                      " positions that the model learned",
                  "position " + std::to_string(positions[i]), "use a smaller --seq");
    }
    TRAINWRIGHT_CHECK(positions[i] >= 0 && (input.continues || positions[i] < num_tokens));
  }
}

void CheckLabels(const at::Tensor& labels_n, int64_t num_tokens, int64_t vocab_size) {
  TRAINWRIGHT_CHECK(labels_n.numel() == num_tokens);
  const auto* labels = labels_n.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < num_tokens; ++i) {
    if (labels[i] >= vocab_size) RefuseId(labels[i], i, vocab_size);
  }
}

DeviceInput ToDevice(const BodyInput& input, int64_t vocab_size, at::Device device) {
  const ProfileScope scope("to_device", ProfilePart::kUpload);
  if (input.staged != nullptr) {
    return {
        input.staged->tokens_n, input.staged->positions_n, input.positions_n, input.staged->spans, input.mask,
        input.continues};
  }
  // Those of a span that goes on may lie above the number of rows.
  const int64_t positions_bound =
      input.continues ? std::numeric_limits<int64_t>::max() : input.positions_n.numel();
  return {UploadIds(input.tokens_n, vocab_size, device, input.pin),
          UploadIds(input.positions_n, positions_bound, device, input.pin),
          input.positions_n,
          SpanTable(input.span_starts, device, input.pin),
          input.mask,
          input.continues};
}

}  // namespace trainwright

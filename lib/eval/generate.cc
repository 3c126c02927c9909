#include "lib/eval/generate.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/signals.h"

namespace trainwright {
namespace {

uint32_t MostProbable(const at::Tensor& logits_on_device) {
  const at::Tensor logits_v = logits_on_device.cpu();
  const float* logits = logits_v.const_data_ptr<float>();
  const float* largest = std::max_element(logits, logits + logits_v.numel());
  if (!std::isfinite(*largest)) {
    throw Error(ErrorCode::kNonFinite, "logits", "are not finite", "", "try --mixed-precision no");
  }
  return static_cast<uint32_t>(largest - logits);
}

}  // namespace

std::string FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
      return "eos";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContext:
      return "context";
  }
  return "";
}

Generation GenerateGreedily(LanguageModel* model, const std::vector<uint32_t>& prompt, int64_t max_tokens,
                            uint32_t eos_id) {
  TRAINWRIGHT_CHECK(!prompt.empty());
  const int64_t context = model->config().max_positions;
  const auto prompt_tokens = static_cast<int64_t>(prompt.size());
  if (prompt_tokens > context) {
    throw Error(
        ErrorCode::kBadInput, "prompt",
        "has " + std::to_string(prompt_tokens) + " tokens, the model's context is " + std::to_string(context),
        "", "shorten it");
  }
  Generation generation;
  const std::unique_ptr<Decoder> decoder = model->NewDecoder(std::min(context, prompt_tokens + max_tokens));
  std::vector<int64_t> next(prompt.begin(), prompt.end());
  while (static_cast<int64_t>(generation.ids.size()) < max_tokens) {
    ThrowIfStopped();
    const uint32_t token = MostProbable(decoder->Append(next));
    if (token == eos_id) {
      generation.finish = FinishReason::kEos;
      return generation;
    }
    generation.ids.push_back(token);
    next = {token};
    if (decoder->length() == context) {
      generation.finish = FinishReason::kContext;
      return generation;
    }
  }
  return generation;
}

}  // namespace trainwright

#include "lib/eval/context_keeper.h"

#include <algorithm>
#include <iterator>

namespace trainwright {

ContextIdentity ContextIdentityOf(const Checkpoint& checkpoint, Precision precision) {
  std::string sha256 = checkpoint.model_identity.at("sha256").get<std::string>();
  if (checkpoint.adapter_identity.is_object()) {
    sha256 += "+" + checkpoint.adapter_identity.at("sha256").get<std::string>();
  }
  return {.model_sha256 = sha256, .precision = PrecisionName(precision)};
}

ContextKeeper::ContextKeeper(const Checkpoint& checkpoint, Precision precision, AttentionMask mask,
                             const std::string& folder)
    : model_(*checkpoint.model), mask_(mask), writer_(folder, ContextIdentityOf(checkpoint, precision)) {}

void ContextKeeper::Keep(const std::string& id, std::span<const uint32_t> tokens) {
  CachedContext context{.tokens = {tokens.begin(), tokens.end()}, .mask = mask_};
  const int64_t length = std::ssize(context.tokens);
  if (length > capacity_) {
    constexpr int64_t kStep = 256;
    const int64_t rounded = (length + kStep - 1) / kStep * kStep;
    capacity_ = std::max(length, std::min(model_.config().max_positions, rounded));
    decoder_ = nullptr;  // its memory goes first
    decoder_ = model_.NewDecoder(capacity_);
  }
  decoder_->Fork(0, 0, 0);
  decoder_->body().Prefill(0, context.tokens, mask_);
  context.cache = decoder_->body().Export(0);
  writer_.Add(id, context);
}

}  // namespace trainwright

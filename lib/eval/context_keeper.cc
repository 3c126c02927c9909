#include "lib/eval/context_keeper.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/model/language_model.h"
#include "lib/nn/linear/lora.h"
#include "lib/spec/config_json.h"
#include "lib/spec/model_config.h"

namespace trainwright {
namespace {

/// Of all but the weights that what a model computes of tokens depends on. The mask of a text is not part of
/// it, nor which tokens begin and end one.
std::string ConfigSha256Of(const LanguageModel& model) {
  ModelConfig config = ComputedPart(model.config());
  config.bos_id = config.eos_id = config.pad_id = -1;
  config.more_eos_ids.clear();
  config.is_causal = true;
  std::string text = EncodeConfigJson(config);
  if (const LoraAdapters* adapters = model.parameters().adapters(); adapters != nullptr) {
    text += nlohmann::json(adapters->options().scaling()).dump();
  }
  return HexEncode(Sha256Of(AsBytes(text)));
}

}  // namespace

ContextIdentity ContextIdentityOf(const Checkpoint& checkpoint, Precision precision) {
  std::string sha256 = checkpoint.model_identity.at("sha256").get<std::string>();
  if (checkpoint.adapter_identity.is_object()) {
    sha256 += "+" + checkpoint.adapter_identity.at("sha256").get<std::string>();
  }
  return {.model_sha256 = sha256,
          .precision = PrecisionName(precision),
          .config_sha256 = ConfigSha256Of(*checkpoint.model)};
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

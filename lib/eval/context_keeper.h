/// Keeping what a model has computed of texts, for `generate --context-cache`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/model/context_cache.h"
#include "lib/model/open_model.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// What contexts that are kept for a checkpoint depend on.
ContextIdentity ContextIdentityOf(const Checkpoint& checkpoint, Precision precision);

/// Not thread-safe; uses the model's memory.
class ContextKeeper {
 public:
  /// \param checkpoint outlives this
  /// \param mask by which its texts are embedded
  /// \param folder does not exist yet
  /// \throws Error{kUsage, kIo}
  ContextKeeper(const Checkpoint& checkpoint, Precision precision, AttentionMask mask,
                const std::string& folder);
  /// \param tokens instruction and text, at least one and at most the model's positions
  /// \throws Error{kUsage} of a model without keys and values; Error{kBadInput} on an id that was there
  ///     before, or tokens outside the vocabulary; Error{kIo}
  void Keep(const std::string& id, std::span<const uint32_t> tokens);
  /// \throws Error{kIo}
  void Commit() { writer_.Commit(); }

 private:
  LanguageModel& model_;
  AttentionMask mask_;
  ContextCacheWriter writer_;
  std::unique_ptr<Decoder> decoder_;
  int64_t capacity_ = 0;  ///< tokens that the decoder holds
};

}  // namespace trainwright

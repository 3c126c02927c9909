/// The order that the runs of tokens of contrastive records keep, in token streams and in shards:
///
///   record = query positive+ negative*      text = instruction? pooled
///
/// A run is what is either instruction (read, not pooled) or pooled; it may come in several pieces.
#pragma once

#include <cstdint>

#include "lib/formats/text_role.h"

namespace trainwright {

/// Follows the runs of one record after the other. Not thread-safe.
class ContrastiveOrder {
 public:
  /// The next tokens.
  /// \param begins_text whether they are the first of a text
  /// \param pooled false: instruction
  /// \returns what is wrong, or nullptr
  const char* Add(bool begins_text, TextRole role, bool pooled, uint64_t tokens);
  /// The record has ended.
  /// \returns what it lacks, or nullptr
  const char* EndRecord();
  /// Whether a record has begun and not ended.
  bool in_record() const { return texts_ > 0; }

 private:
  const char* FaultOfTextEnd() const { return pooled_ ? nullptr : "a text has nothing that is pooled"; }

  uint64_t texts_ = 0;  // of this record
  TextRole role_ = TextRole::kQuery;
  bool pooled_ = false;  // whether the text at hand has come to its pooled tokens
};

}  // namespace trainwright

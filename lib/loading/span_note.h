/// What an objective that pools texts says about the spans of a micro-batch.
#pragma once

#include <cstdint>

namespace trainwright {

/// What a text is for.
enum class TextUse : uint8_t { kQuery, kPositive, kNegative, kGenerative };

struct SpanNote {
  TextUse use = TextUse::kGenerative;
  uint32_t first_pooled = 0;  ///< token of the span from which it is pooled: those before are instruction
  uint32_t record = 0;        ///< of the micro-batch, from 0: a query and its passages have one
  uint64_t text_hash = 0;     ///< XXH3-64 of what is pooled, as little-endian 32-bit ids; of kGenerative 0
  bool operator==(const SpanNote&) const = default;
};

/// A positive of a record that is not among its spans: who masks false negatives has to know it.
struct UndrawnPositive {
  uint32_t record = 0;
  uint64_t text_hash = 0;
  bool operator==(const UndrawnPositive&) const = default;
};

}  // namespace trainwright

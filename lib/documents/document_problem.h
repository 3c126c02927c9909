/// Why a record gives no document.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace trainwright {

/// The order is that of kSkipReasonNames.
enum class SkipReason : uint8_t {
  kBadJson,
  kMissingKey,
  kNotAString,
  kInvalidUtf8,
  kTooLong,
  kBadTurns,       ///< sft: roles that are unknown or out of order
  kEmptyResponse,  ///< sft: nothing to learn
  kBadRecord,      ///< contrastive: a query or texts that are not of the known shape
  kEmptyText,      ///< contrastive: a text without a character, or without a token
};
inline constexpr size_t kSkipReasonCount = 9;
/// Names as the JSON summary has them.
inline constexpr std::array<const char*, kSkipReasonCount> kSkipReasonNames = {
    "bad_json",  "missing_key",    "not_a_string", "invalid_utf8", "too_long",
    "bad_turns", "empty_response", "bad_record",   "empty_text"};

struct DocumentProblem {
  SkipReason reason = SkipReason::kBadJson;
  std::string problem;           ///< for people
  std::optional<uint64_t> byte;  ///< offset in the record, from 0, where it helps
  std::string hint;              ///< the flag to change, when the reason alone does not say it
};

}  // namespace trainwright

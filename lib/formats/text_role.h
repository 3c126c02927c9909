/// What a text of a contrastive record is to the others: the query, or a passage that it should be close to
/// (positive) or far from (negative).
#pragma once

#include <cstdint>

namespace trainwright {

enum class TextRole : uint8_t { kQuery = 0, kPositive = 1, kNegative = 2 };
inline constexpr int kTextRoleCount = 3;

/// As the records name it: "query", "pos", "neg".
inline const char* TextRoleName(TextRole role) {
  constexpr const char* kNames[kTextRoleCount] = {"query", "pos", "neg"};
  return kNames[static_cast<uint8_t>(role)];
}

}  // namespace trainwright

/// What a document is for: text (kLm), a conversation of which some tokens are predicted and others only read
/// (kSft), or a query with the texts it shall be close to and far from, each of which is pooled into one
/// vector (kContrastive).
#pragma once

#include <cstdint>

namespace trainwright {

enum class RecordKind : uint8_t { kLm = 0, kSft = 1, kContrastive = 2 };

/// As --records and JSON name it: "lm", "sft", "contrastive". Kinds beyond these are those of one objective,
/// of which no file tells: "other".
inline const char* RecordKindName(RecordKind kind) {
  constexpr const char* kNames[] = {"lm", "sft", "contrastive"};
  return kind <= RecordKind::kContrastive ? kNames[static_cast<uint8_t>(kind)] : "other";
}

}  // namespace trainwright

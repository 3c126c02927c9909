/// What a document is for: text (kLm), a conversation of which some tokens are predicted and others only read
/// (kSft), or a query with the texts it should be close to and far from, each of which is pooled into one
/// vector (kContrastive). Kinds from kFirstOwnKind on are those of one objective, which alone knows what they
/// say; files hold them as they hold text.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace trainwright {

enum class RecordKind : uint8_t { kLm = 0, kSft = 1, kContrastive = 2 };

inline constexpr RecordKind kFirstOwnKind{128};

inline bool IsOwnKind(RecordKind kind) {
  return kind >= kFirstOwnKind;
}

/// Whether files may be of the kind.
inline bool IsKnownKind(RecordKind kind) {
  return kind <= RecordKind::kContrastive || IsOwnKind(kind);
}

/// As --records and JSON name it: "lm", "sft", "contrastive"; an objective's own by its number: "kind-200".
inline std::string RecordKindName(RecordKind kind) {
  constexpr const char* kNames[] = {"lm", "sft", "contrastive"};
  const auto number = static_cast<uint8_t>(kind);
  return kind <= RecordKind::kContrastive ? kNames[number] : "kind-" + std::to_string(number);
}

/// "lm", or "lm and contrastive".
inline std::string RecordKindNames(const std::set<RecordKind>& kinds) {
  std::string names;
  for (const RecordKind kind : kinds) names += (names.empty() ? "" : " and ") + RecordKindName(kind);
  return names;
}

}  // namespace trainwright

/// The text inside a JSON line.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

/// Why a record gives no document. The order is that of kSkipReasons.
enum class SkipReason : uint8_t { kBadJson, kMissingKey, kNotAString, kInvalidUtf8, kTooLong };
inline constexpr size_t kSkipReasonCount = 5;
/// Names as the JSON summary has them.
inline constexpr std::array<const char*, kSkipReasonCount> kSkipReasonNames = {
    "bad_json", "missing_key", "not_a_string", "invalid_utf8", "too_long"};

struct DocumentProblem {
  SkipReason reason = SkipReason::kBadJson;
  std::string problem;           ///< for people
  std::optional<uint64_t> byte;  ///< offset in the record, from 0, where it helps
};

/// Finds strings in JSON objects by key. Not thread-safe.
class JsonlText {
 public:
  /// \param keys "text", or a path through objects like "message.content"; a member whose own name has the
  /// dots wins
  explicit JsonlText(std::vector<std::string> keys);
  ~JsonlText();
  /// Joins the values of the keys with newlines into `text`. The whole line is checked to be JSON; of members
  /// with the same name the first counts. \returns the problem, or nullopt
  std::optional<DocumentProblem> Read(std::string_view line, std::string* text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainwright

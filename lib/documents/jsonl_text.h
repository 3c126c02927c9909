/// The text inside a JSON line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/document_problem.h"

namespace trainwright {

/// The key of a text, and those that are looked for in its place where nobody named a key.
inline constexpr char kTextKey[] = "text";
inline const std::vector<std::string>& OtherTextKeys() {
  static const std::vector<std::string> keys = {"content", "article", "document"};
  return keys;
}

/// Finds strings in JSON objects by key. Not thread-safe.
class JsonlText {
 public:
  /// \param keys "text", or a path through objects like "message.content"; a member whose own name has the
  /// dots wins
  /// \param instead the first of these that there is takes the place of a first key that is not
  explicit JsonlText(std::vector<std::string> keys, std::vector<std::string> instead = {});
  ~JsonlText();
  /// Joins the values of the keys with newlines into `text`. The whole line is checked to be JSON; of members
  /// with the same name the last counts.
  /// \returns the problem, or nullopt
  std::optional<DocumentProblem> Read(std::string_view line, std::string* text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainwright

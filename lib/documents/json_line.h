/// One line of JSON, parsed. For the readers of records alone: it brings simdjson with it.
#pragma once

#include <simdjson.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/documents/document_problem.h"

namespace trainwright {

/// "an array", "a number" and so on, for messages.
const char* NameOf(simdjson::dom::element_type type);

/// The member of this name: of several the last, as Python's json and nlohmann's take it.
bool FindMember(simdjson::dom::element object, std::string_view name, simdjson::dom::element* found);

/// The member at `path` ("text", or through objects like "message.content"); a member whose own name has the
/// dots wins.
bool FindPath(simdjson::dom::element from, std::string_view path, simdjson::dom::element* found);

/// Not thread-safe.
class JsonLine {
 public:
  /// Checks the whole line to be a JSON object. A number that neither 64 bits nor a double hold is read as
  /// WithNumbersInRange (lib/formats/json_text.h) writes it.
  /// \param root valid until the next call
  std::optional<DocumentProblem> Parse(std::string_view line, simdjson::dom::element* root);

 private:
  simdjson::error_code ParsePadded(std::string_view line, simdjson::dom::element* root);

  std::unique_ptr<simdjson::dom::parser> parser_ = std::make_unique<simdjson::dom::parser>();
  std::string padded_;
};

}  // namespace trainwright

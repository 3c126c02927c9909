/// Calls and their results in ShareGPT's form, which chat templates do not know by these names.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/documents/document_problem.h"

namespace trainwright {

/// Where a conversation has turns {"from": "function_call", "value": CALL}, CALL being {"name", "arguments"},
/// a list of these, or a text that holds either, they become the assistant's with tool_calls, and turns
/// {"from": "observation"} the tool's. A conversation without such calls, and turns with a "role", stay as
/// they are.
/// \param where the list is, for messages
/// \param messages a list
/// \returns what is no call
std::optional<DocumentProblem> NameShareGptCalls(const std::string& where, nlohmann::ordered_json* messages);

}  // namespace trainwright

/// What every option of a run resolved to, who decided it, and why: --explain.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/report/option_value.h"
#include "lib/run/run_planner.h"

namespace trainwright {

struct ExplainedOption {
  std::string name;   ///< without dashes
  std::string value;  ///< in effect; empty: none
  std::string group;  ///< under which it is reported
  std::string
      origin;  ///< "default", "auto", "preset", "environment", "config", "command line" or "checkpoint"
  std::string reason;  ///< of an auto choice; or which variable, or which line of which file
};

/// \param given what the user and the built-in defaults say, in the order to report it
/// \param resolved values in effect by option, where they are more than what was given
/// \param reasons of what was chosen for the user
/// \param stored values of the checkpoint that the run continues, by option; empty for a new run
std::vector<ExplainedOption> ExplainOptions(const std::vector<OptionValue>& given,
                                            const nlohmann::ordered_json& resolved,
                                            const std::vector<ChoiceReason>& reasons,
                                            const nlohmann::ordered_json& stored);

/// An aligned table, by groups in the order of their first options.
std::string FormatExplanation(const std::vector<ExplainedOption>& options);
nlohmann::ordered_json EncodeExplanation(const std::vector<ExplainedOption>& options);

}  // namespace trainwright

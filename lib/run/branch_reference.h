/// The checkpoint that --branch-from names: RUN for the newest one of a run, RUN@STEP for that of a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainwright {

struct BranchReference {
  std::string run;              ///< a run directory, or a checkpoint folder
  std::optional<int64_t> step;  ///< nullopt: the newest
};

/// What follows the last "@" is a step where it is all digits.
/// \throws Error{kUsage} naming --branch-from on a step that no run has
BranchReference ParseBranchReference(const std::string& text);

/// The run directory that it names itself or by one of its checkpoints; the folder as it is named where that
/// is a checkpoint apart from its run.
std::string RunOf(const BranchReference& reference);

}  // namespace trainwright

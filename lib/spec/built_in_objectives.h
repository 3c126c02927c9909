/// What this library says about its objectives. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "lib/spec/objective_description.h"

namespace trainwright {

ObjectiveDescription LmDescription();
ObjectiveDescription SftDescription();
ObjectiveDescription GritDescription();

/// Of all of them, in the order in which they are reported: lm, sft, grit.
std::vector<ObjectiveDescription> BuiltInObjectiveDescriptions();
/// Null: it is no objective of this library.
const ObjectiveDescription* FindBuiltInObjective(const std::string& name);
/// An own option of an objective of this library; null: it has no such option.
const OwnOption* FindBuiltInOwnOption(const std::string& objective, const std::string& option);
/// Whether it is the path of a file that the run reads.
bool NamesOwnFile(const std::string& objective, const std::string& option);
/// Whether a resumed run may have another value of it.
bool IsFreeOnResume(const std::string& objective, const std::string& option);

}  // namespace trainwright

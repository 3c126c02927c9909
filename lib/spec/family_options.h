/// The options that only a family of models has, as a user asks for them: they choose among the shapes of its
/// presets.
#pragma once

#include <string>
#include <vector>

#include "lib/spec/family_list.h"
#include "lib/spec/own_options.h"

namespace trainwright {

/// The group of flags that only a family has: "Model family ten".
std::string FlagGroupOf(const FamilyDescription& family);

/// Takes what was asked of a preset's shape.
/// \param asked by the options' names, as they were written
/// \param config of one of the families
/// \throws Error{kUsage} naming the flag, on options of another family and on values that they cannot have
void ChooseShape(const FamilyList& families, const OwnOptions& asked, ModelConfig* config);
/// The same of a shape that is given: refuses what it is not.
/// \param whose for messages: "that of --init x"
/// \throws Error{kUsage} besides, where the shape says otherwise
void RequireShape(const FamilyList& families, const OwnOptions& asked, const ModelConfig& config,
                  const std::string& whose);

}  // namespace trainwright

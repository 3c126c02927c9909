/// The families that this build computes: lib/spec/built_in_families.h with their models.
#pragma once

#include "lib/model/model_family.h"

namespace trainwright {

ModelFamilies BuiltInFamilies();

}  // namespace trainwright

/// The families that this build describes. lib/model/built_in_families.h has what computes them.
#pragma once

#include "lib/spec/family_list.h"

namespace trainwright {

FamilyList BuiltInDescriptions();

}  // namespace trainwright

/// The families of the tests: those that are built in.
#pragma once

#include "lib/model/built_in_families.h"

namespace trainwright::test {

inline const ModelFamilies& Families() {
  static const ModelFamilies families = BuiltInFamilies();
  return families;
}

}  // namespace trainwright::test

/// What becomes of each key of a DeepSpeed configuration.
#pragma once

#include "lib/run/foreign_file.h"

namespace trainwright {

/// The rules of all keys that are known. Some only check the key's type: what is to be done goes by others,
/// too (deepspeed_config.cc).
const ForeignRules& DeepSpeedRules();

}  // namespace trainwright

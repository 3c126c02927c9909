#include "lib/spec/activation_checkpointing.h"

#include "lib/base/error.h"

namespace trainwright {

ActivationCheckpointing ParseActivationCheckpointing(const std::string& text, const std::string& flag) {
  if (text == "least") return ActivationCheckpointing::kLeast;
  if (text == "no") return ActivationCheckpointing::kNo;
  if (text == "selective") return ActivationCheckpointing::kSelective;
  if (text == "full") return ActivationCheckpointing::kFull;
  throw Error(ErrorCode::kUsage, flag, "must be least, no, selective or full, not '" + text + "'");
}

}  // namespace trainwright

#include "lib/spec/offload_choice.h"

#include "lib/base/error.h"

namespace trainwright {

OffloadChoice ParseOffloadChoice(const std::string& text, const std::string& flag) {
  if (text == "no") return {};
  if (text == "activations") return {.activations = true};
  if (text == "gradients") return {.gradients = true};
  if (text == "all") return {.activations = true, .gradients = true};
  throw Error(ErrorCode::kUsage, flag, "must be no, activations, gradients or all, not '" + text + "'");
}

}  // namespace trainwright

#include "lib/report/option_need.h"

#include "lib/base/error.h"

namespace trainwright {

void RefuseWithout(const std::string& other, const std::set<std::string>& keys,
                   const std::vector<OptionValue>& options, const std::string& hint) {
  for (const OptionValue& option : options) {
    if (option.origin != OptionOrigin::kCommandLine || !keys.contains(option.key)) continue;
    throw Error(ErrorCode::kUsage, "--" + option.key, "has a meaning only with " + other, "", hint);
  }
}

}  // namespace trainwright

#include "lib/spec/ten_init.h"

#include "lib/base/error.h"

namespace trainwright {

TenInit ParseTenInit(const std::string& name, const std::string& flag) {
  for (const TenInit init : {TenInit::kLru, TenInit::kCompat}) {
    if (name == TenInitName(init)) return init;
  }
  throw Error(ErrorCode::kUsage, flag, "unknown initialization '" + name + "'", "", "use lru or compat");
}

std::string TenInitName(TenInit init) {
  return init == TenInit::kLru ? "lru" : "compat";
}

}  // namespace trainwright

#include "lib/spec/fp8_parts.h"

#include "lib/base/error.h"

namespace trainwright {

std::string Fp8PartsName(Fp8Parts parts) {
  if (parts.mlp) return parts.head ? "mlp+head" : "mlp";
  return parts.head ? "head" : "off";
}

Fp8Parts ParseFp8Parts(const std::string& text, const std::string& flag) {
  for (const Fp8Parts parts :
       {Fp8Parts{}, Fp8Parts{.mlp = true}, Fp8Parts{.head = true}, Fp8Parts{.mlp = true, .head = true}}) {
    if (text == Fp8PartsName(parts)) return parts;
  }
  throw Error(ErrorCode::kUsage, flag, "unknown value '" + text + "'", "", "off, mlp, head or mlp+head");
}

}  // namespace trainwright

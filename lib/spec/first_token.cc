#include "lib/spec/first_token.h"

#include <string>

namespace trainwright {

std::string ProblemOfFirstToken(const FamilyDescription& family, const std::string& code) {
  if (code.starts_with('b')) return "";
  return "takes the first token, which under --attn " + code +
         " sees nothing but itself: use --pooling lasttoken" +
         (family.always_causal() ? "" : ", or --attn bb" + code.substr(2));
}

}  // namespace trainwright

#include "lib/spec/compile_mode.h"

#include "lib/base/error.h"

namespace trainwright {

CompileMode ParseCompileMode(const std::string& text, const std::string& flag) {
  if (text == "off") return CompileMode::kOff;
  if (text == "graph") return CompileMode::kGraph;
  if (text == "auto") return CompileMode::kAuto;
  throw Error(ErrorCode::kUsage, flag, "must be off, graph or auto, not '" + text + "'");
}

}  // namespace trainwright

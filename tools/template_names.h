/// The names that --template takes besides files and folders, for help and completions.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// As BuiltInTemplateNames of lib/documents/chat_template.h has them, which has the texts, too, and more to
/// link than a command line needs.
inline std::vector<std::string> TemplateNames() {
  return {"plain", "chatml", "llama2", "llama3", "zephyr", "alpaca", "qa-space", "grit", "grit-lasttoken"};
}

}  // namespace trainwright

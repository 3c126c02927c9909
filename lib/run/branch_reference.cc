#include "lib/run/branch_reference.h"

#include <charconv>

#include "lib/base/error.h"
#include "lib/run/run_directory.h"

namespace trainwright {

BranchReference ParseBranchReference(const std::string& text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos || at + 1 == text.size() ||
      text.find_first_not_of("0123456789", at + 1) != std::string::npos) {
    return {text, std::nullopt};
  }
  int64_t step = 0;
  const auto result = std::from_chars(text.data() + at + 1, text.data() + text.size(), step);
  if (result.ec != std::errc()) {
    throw Error(ErrorCode::kUsage, "--branch-from", "'" + text.substr(at + 1) + "' is no step of a run");
  }
  return {text.substr(0, at), step};
}

std::string RunOf(const BranchReference& reference) {
  return RunOfCheckpoint(reference.run).value_or(reference.run);
}

}  // namespace trainwright

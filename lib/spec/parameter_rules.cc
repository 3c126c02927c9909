#include "lib/spec/parameter_rules.h"

#include <fnmatch.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "lib/base/error.h"

namespace trainwright {

bool MeansParameter(const std::string& pattern, const std::string& name) {
  for (const std::string& whole : {pattern, "*." + pattern, pattern + ".*", "*." + pattern + ".*"}) {
    if (fnmatch(whole.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

std::vector<std::string> ParsePatterns(const std::string& list, const std::string& flag) {
  std::vector<std::string> patterns;
  std::stringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) patterns.push_back(part);
  for (const std::string& pattern : patterns) {
    if (!pattern.empty()) continue;
    throw Error(ErrorCode::kUsage, flag, "has an empty pattern: " + list, "",
                "names of parameters, divided by commas: embed_tokens,layers.[0-3]");
  }
  return patterns;
}

std::vector<std::pair<std::string, double>> ParseLrScale(const std::string& list) {
  std::vector<std::pair<std::string, double>> factors;
  for (const std::string& part : ParsePatterns(list, "--lr-scale")) {
    const size_t equals = part.rfind('=');
    const std::string number = equals == std::string::npos ? "" : part.substr(equals + 1);
    char* end = nullptr;
    const double factor = std::strtod(number.c_str(), &end);
    const bool reads = equals != std::string::npos && equals > 0 && !number.empty() && *end == '\0';
    if (!reads || !std::isfinite(factor) || factor <= 0) {
      throw Error(ErrorCode::kUsage, "--lr-scale",
                  "'" + part + "' is no PATTERN=FACTOR with a factor above 0", "",
                  factor == 0 && reads ? "--freeze leaves parameters as they are" : "lm_head=0.1");
    }
    factors.emplace_back(part.substr(0, equals), factor);
  }
  return factors;
}

void CheckParameterRules(const ParameterRules& rules) {
  ParsePatterns(rules.freeze, "--freeze");
  ParsePatterns(rules.no_decay, "--no-decay");
  ParseLrScale(rules.lr_scale);
}

}  // namespace trainwright

/// How a run treats a model's parameters, by their names: which are frozen, whose learning rate is another,
/// which do not decay. Free of torch.
///
/// Names are those of model files: model.layers.0.self_attn.q_proj.weight. A pattern is a name in which *
/// stands for any characters, ? for one and [..] for one of several (fnmatch(3)). It means the parameters
/// whose name it is, or in whose name it is a sequence of whole parts between dots: embed_tokens and
/// layers.[0-3] do, too.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trainwright {

/// As the command line says them; lists are divided by commas. Empty: nothing said.
struct ParameterRules {
  std::string freeze;    ///< patterns
  std::string lr_scale;  ///< PATTERN=FACTOR; of those that mean a parameter the last one counts
  std::string no_decay;  ///< patterns
  bool operator==(const ParameterRules&) const = default;
};

/// Whether a pattern means a parameter.
bool MeansParameter(const std::string& pattern, const std::string& name);

/// \throws Error{kUsage} naming `flag` where a pattern is empty
std::vector<std::string> ParsePatterns(const std::string& list, const std::string& flag);

/// \throws Error{kUsage} on a factor that is no number above 0, or an empty pattern
std::vector<std::pair<std::string, double>> ParseLrScale(const std::string& list);

/// \throws as the functions above
void CheckParameterRules(const ParameterRules& rules);

}  // namespace trainwright

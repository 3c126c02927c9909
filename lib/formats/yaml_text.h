/// YAML of any depth as JSON, with the line and the text of each value: for files of other programs, whose
/// readers convert a value (true, 1e-4) where they need it.
///
/// The plain part of YAML is read: mappings with names as keys, lists, scalars in any style, comments. What
/// makes a text mean something else than it says (anchors, aliases, tags, merge keys, a second document)
/// is recorded as a problem, for the caller to refuse once it knows whose file it is.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace trainwright {

/// A value in such a text.
struct YamlPlace {
  int line = 0;      ///< of its key, or of the item of a list; from 1
  std::string text;  ///< of a scalar, as written, without its quotes
};

struct YamlText {
  nlohmann::json root;  ///< null for an empty text
  /// By the way to a value, names and indices joined by dots: "datasets.0.path".
  std::map<std::string, YamlPlace> places;
  std::string problem;       ///< the first; empty: none
  int problem_line = 0;      ///< its line
  std::string problem_hint;  ///< what to do about it
};

/// Plain scalars are typed as PyYAML types them (yes, on and True are true), and so is a number with an
/// exponent but no dot, which PyYAML leaves a text.
/// \throws Error{kBadInput} on what is not YAML, not UTF-8, or deeper than 32 levels
YamlText ParseYaml(std::string_view text, const std::string& path);

}  // namespace trainwright

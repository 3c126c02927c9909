/// Configuration files of other programs, of which `--config` takes the part that has a meaning here.
///
/// Such a file is known by a section of its own (`lora:`), whose keys are renamed to options of this tool. A
/// key that has no effect here is told by a notice; one that the other program does not know either is an
/// error.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/cli/config_file.h"
#include "lib/cli/option_preset.h"

namespace trainwright {

/// What becomes of one key of the other program.
struct ForeignKey {
  std::string option;  ///< ours; empty: the key has no effect
  std::string notice;  ///< a sentence for the user; empty: nothing to say
  /// Words that are said otherwise here, as {"linear", "linear"}; when not empty, any other value is refused.
  /// An empty word stands for "leave the option alone".
  std::map<std::string, std::string> words = {};
};

struct ForeignConfig {
  std::string program;                      ///< "the LoRA trainer"
  std::string section;                      ///< the section that is taken
  std::vector<std::string> other_sections;  ///< known and passed over, with a notice
  std::map<std::string, ForeignKey> keys;   ///< of the section
  /// What the other program does where the file says nothing: applied after --preset.
  OptionPreset defaults;
};

/// What came of a file.
struct TranslatedConfig {
  std::vector<ConfigEntry> entries;  ///< flat, with our keys
  std::vector<std::string> notices;
  bool is_foreign = false;  ///< the section was there: its defaults hold
};

/// \param entries of ReadConfigFile(path, foreign.section)
/// \throws Error{kUsage} on a key or a word that the other program does not know
TranslatedConfig TranslateConfig(const std::vector<ConfigEntry>& entries, const ForeignConfig& foreign,
                                 const std::string& path);

}  // namespace trainwright

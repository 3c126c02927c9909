/// What the tables of other trainers' names are made of.
#pragma once

#include <string>

#include "lib/cli/option_synonym.h"

namespace trainwright {

/// A switch that is one here, too.
inline OptionSynonym FlagHere(const std::string& key) {
  return {.key = key, .words = {{"true", "true"}, {"false", "false"}}};
}

/// A switch that is on or off here; an option of ours, which has words of its own beside these.
inline OptionSynonym OnOrOffHere(const std::string& key) {
  return {.key = key, .words = {{"true", "on"}, {"false", "off"}}};
}

/// What one may expect an effect of.
inline OptionSynonym WithoutEffect(const std::string& notice) {
  return {.key = "", .notice = notice};
}

}  // namespace trainwright

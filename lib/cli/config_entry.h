/// One key of a configuration file, and what the file is read beside.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trainwright {

struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;
  bool is_list = false;
  int line = 0;              ///< from 1
  std::string in_file = "";  ///< the key as in the file; empty: as `key`

  const std::string& name_in_file() const { return in_file.empty() ? key : in_file; }
};

/// "FILE: key 'NAME' in line N": what a message about an entry is about.
std::string PlaceOf(const ConfigEntry& entry, const std::string& path);

struct ConfigSurroundings {
  std::string path;  ///< of the file
  /// The value that one of our keys is given by what overrides the file, as text; empty: none.
  std::function<std::string(const std::string& key)> given;
  std::vector<std::string>* notices;  ///< gets sentences for the user
};

}  // namespace trainwright

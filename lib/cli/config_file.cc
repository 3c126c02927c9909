#include "lib/cli/config_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/version.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

constexpr char kFlatHint[] = "write one 'name: value' a line, the names as in --help without the dashes";

std::string AtLine(int line) {
  return "line " + std::to_string(line);
}

std::string ScalarOf(const YAML::Node& node, const std::string& path, const std::string& key, int line) {
  if (node.IsScalar()) return node.Scalar();
  const char* problem = node.IsNull() ? "has no value" : "must be a single value or a list of them";
  throw Error(ErrorCode::kUsage, path, "key '" + key + "' " + problem, AtLine(line),
              node.IsNull() ? "quote the word null, or delete the line to get the default" : kFlatHint);
}

std::vector<ConfigEntry> ReadMapping(const YAML::Node& mapping, const std::string& path,
                                     const std::optional<std::set<std::string>>& only) {
  std::vector<ConfigEntry> entries;
  for (const auto& item : mapping) {
    ConfigEntry entry;
    entry.line = item.first.Mark().line + 1;
    if (!item.first.IsScalar())
      throw Error(ErrorCode::kUsage, path, "a key is not a name", AtLine(entry.line), kFlatHint);
    entry.key = item.first.Scalar();
    if (only && !only->contains(entry.key)) continue;
    entry.is_list = item.second.IsSequence();
    if (entry.is_list) {
      for (const YAML::Node& value : item.second) {
        entry.values.push_back(ScalarOf(value, path, entry.key, entry.line));
      }
    } else {
      entry.values.push_back(ScalarOf(item.second, path, entry.key, entry.line));
    }
    const bool repeated = std::any_of(entries.begin(), entries.end(),
                                      [&](const ConfigEntry& other) { return other.key == entry.key; });
    if (repeated) {
      throw Error(ErrorCode::kUsage, path, "key '" + entry.key + "' is given twice", AtLine(entry.line),
                  "write a list for an option that may be repeated: [a, b]");
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

bool LooksLikeNumber(const std::string& text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool complete = status == std::errc() && end == text.data() + text.size();
  return complete && text.find_first_not_of("0123456789+-.eE") == std::string::npos;
}

// Numbers and booleans are written plainly only for options that hold them; a file called "1e5" stays text to
// every YAML reader.
std::string FormatScalar(const EffectiveOption& option, const std::string& value) {
  const OptionDoc& doc = option.doc;
  if (doc.is_flag() && (value == "true" || value == "false")) return value;
  const bool numeric = doc.value_name == "N" || doc.value_name == "X" ||
                       (LooksLikeNumber(doc.default_text) && doc.choices.empty());
  if (numeric && LooksLikeNumber(value)) return value;
  try {
    // A JSON string is a YAML double-quoted scalar.
    return nlohmann::json(value).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kUsage, "--print-config", "the value of '" + doc.key + "' is not UTF-8", "",
                "give it on the command line instead of in a configuration file");
  }
}

}  // namespace

std::string PlaceOf(const ConfigEntry& entry, const std::string& path) {
  return path + ": key '" + entry.name_in_file() + "' in line " + std::to_string(entry.line);
}

std::string ReadConfigText(const std::string& path) {
  if (faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) {
    throw SystemError(path, "open", errno, "--config names a YAML file; --print-config writes one");
  }
  const std::vector<uint8_t> content = ReadWholeFile(path);
  return std::string(content.begin(), content.end());
}

std::vector<ConfigEntry> ParseConfig(const std::string& text, const std::string& path,
                                     const std::optional<std::set<std::string>>& only) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    const auto second = std::find_if(documents.begin() + (documents.empty() ? 0 : 1), documents.end(),
                                     [](const YAML::Node& document) { return !document.IsNull(); });
    if (second != documents.end()) {
      const YAML::Mark mark = second->Mark();
      throw Error(ErrorCode::kUsage, path, "holds a second document, after ---",
                  mark.is_null() ? "" : AtLine(mark.line + 1), "make one document of both, without ---");
    }
    const YAML::Node root = documents.empty() ? YAML::Node() : documents[0];
    if (root.IsNull()) return {};
    if (!root.IsMap()) throw Error(ErrorCode::kUsage, path, "is not a YAML mapping", "", kFlatHint);
    return ReadMapping(root, path, only);
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::kUsage, path, "is not YAML: " + error.msg,
                error.mark.is_null() ? "" : AtLine(error.mark.line + 1), kFlatHint);
  }
}

std::vector<std::string> ParseListText(const std::string& text, const std::string& variable) {
  if (text.empty() || text.front() != '[') return {text};
  std::vector<std::string> items;
  try {
    for (const YAML::Node& item : YAML::Load(text)) items.push_back(item.as<std::string>());
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::kUsage, variable, "is not a list: " + error.msg, "", "write a list as [a, b]");
  }
  return items;
}

std::string WriteConfig(const std::string& tool, const std::vector<EffectiveOption>& options) {
  std::string text =
      "# " + tool + " " TRAINWRIGHT_VERSION ": the effective configuration; read it back with --config\n";
  for (const EffectiveOption& option : options) {
    if (!option.is_set) {
      text += "# " + option.doc.key + ": (" + (option.doc.required ? "required, " : "") + "not set)\n";
      continue;
    }
    text += option.doc.key + ": ";
    if (option.doc.repeated) {
      text += "[";
      for (size_t i = 0; i < option.values.size(); ++i) {
        text += (i == 0 ? "" : ", ") + FormatScalar(option, option.values[i]);
      }
      text += "]";
    } else {
      text += FormatScalar(option, option.values.front());
    }
    text += "\n";
  }
  return text;
}

}  // namespace trainwright

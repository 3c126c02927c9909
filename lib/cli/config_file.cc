#include "lib/cli/config_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/version.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

constexpr char kFlatHint[] = "write one 'name: value' a line, the names as in --help without the dashes";

constexpr size_t kPairLength = 12;  // in bytes, of two escaped surrogates

bool BeginsWithPair(std::string_view text) {
  return text.size() >= kPairLength && text.starts_with("\\u") && (text[2] == 'd' || text[2] == 'D') &&
         std::string_view("89abAB").find(text[3]) != std::string_view::npos;
}

/// A JSON text with the characters beyond U+FFFF themselves, where json.dump of Python writes pairs of
/// surrogates, which YAML does not have; another text as it is.
std::string WithoutSurrogatePairs(const std::string& text) {
  if (!nlohmann::json::accept(text)) return text;
  std::string plain;
  for (std::string_view rest = text; !rest.empty();) {
    // Only strings have backslashes; what follows an escaped one is no pair.
    const size_t length = BeginsWithPair(rest) ? kPairLength : rest.starts_with('\\') ? 2 : 1;
    const std::string part(rest.substr(0, length));
    plain += length == kPairLength ? nlohmann::json::parse('"' + part + '"').get<std::string>() : part;
    rest.remove_prefix(length);
  }
  return plain;
}

std::string AtLine(int line) {
  return "line " + std::to_string(line);
}

std::string ScalarOf(const YAML::Node& node, const std::string& path, const std::string& key, int line) {
  if (node.IsScalar()) return node.Scalar();
  const char* problem = node.IsNull() ? "has no value" : "must be a single value or a list of them";
  throw Error(ErrorCode::kUsage, path, "key '" + key + "' " + problem, AtLine(line),
              node.IsNull() ? "quote the word null, or delete the line to get the default" : kFlatHint);
}

/// Reads the entries of a mapping.
class MappingReader {
 public:
  MappingReader(const std::string& path, const std::optional<std::set<std::string>>& only,
                const OptionSynonyms& foreign)
      : path_(path), only_(only), foreign_(foreign) {}

  /// \param prefix of the keys: "" or "NAME."
  void Read(const YAML::Node& mapping, const std::string& prefix) {
    for (const auto& item : mapping) {
      const int line = item.first.Mark().line + 1;
      if (!item.first.IsScalar())
        throw Error(ErrorCode::kUsage, path_, "a key is not a name", AtLine(line), kFlatHint);
      const std::string key = prefix + item.first.Scalar();
      if (only_ && !only_->contains(key)) continue;
      RefuseRepeated(key, line);
      const bool is_foreign = FindSynonym(foreign_, key) != nullptr;
      if (is_foreign && item.second.IsNull()) continue;
      if (is_foreign && item.second.IsMap() && (item.second.size() > 0 || MayBeMapping(key))) {
        Read(item.second, key + ".");
      } else {
        entries_.push_back(EntryOf(key, item.second, line));
      }
    }
  }

  std::vector<ConfigEntry> entries() && { return std::move(entries_); }

 private:
  /// Of other programs' names those whose keys have names of their own, and those without effect.
  bool MayBeMapping(const std::string& key) const {
    const std::string inside = DashedName(key) + ".";
    const auto first = foreign_.lower_bound(inside);
    return FindSynonym(foreign_, key)->key.empty() ||
           (first != foreign_.end() && first->first.starts_with(inside));
  }

  void RefuseRepeated(const std::string& key, int line) {
    if (keys_.insert(key).second) return;
    throw Error(ErrorCode::kUsage, path_, "key '" + key + "' is given twice", AtLine(line),
                "write a list for an option that may be repeated: [a, b]");
  }

  ConfigEntry EntryOf(const std::string& key, const YAML::Node& value, int line) const {
    ConfigEntry entry = {.key = key, .is_list = value.IsSequence(), .line = line};
    if (!entry.is_list) {
      entry.values.push_back(ScalarOf(value, path_, key, line));
      return entry;
    }
    for (const YAML::Node& item : value) entry.values.push_back(ScalarOf(item, path_, key, line));
    return entry;
  }

  const std::string& path_;
  const std::optional<std::set<std::string>>& only_;
  const OptionSynonyms& foreign_;
  std::set<std::string> keys_;
  std::vector<ConfigEntry> entries_;
};

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
  return WithoutSurrogatePairs(std::string(content.begin(), content.end()));
}

std::vector<ConfigEntry> ParseConfig(const std::string& text, const std::string& path,
                                     const std::optional<std::set<std::string>>& only,
                                     const OptionSynonyms& foreign) {
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
    MappingReader reader(path, only, foreign);
    reader.Read(root, "");
    return std::move(reader).entries();
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

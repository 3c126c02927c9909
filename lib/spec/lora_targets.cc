#include "lib/spec/lora_targets.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "lib/base/error.h"

namespace trainwright {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

bool IsNumber(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

bool Matches(const std::string& target, const std::string& module, const LoraBlocks& blocks) {
  if (target == "all-linear") return true;
  const auto within = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), Split(NameInLayer(module), '.').front()) != names.end();
  };
  if (target == "attention" && within(blocks.attention)) return true;
  if (target == "mlp" && within(blocks.mlp)) return true;
  return module == target || module.ends_with("." + target);
}

}  // namespace

std::string NameInLayer(const std::string& module) {
  const std::vector<std::string> parts = Split(module, '.');
  size_t after = parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (IsNumber(parts[i])) after = i + 1;
  }
  std::string name;
  for (size_t i = after; i < parts.size(); ++i) name += (name.empty() ? "" : ".") + parts[i];
  return name;
}

std::vector<size_t> ChooseLoraTargets(const std::string& targets, const std::vector<std::string>& modules,
                                      const LoraBlocks& blocks) {
  std::set<size_t> chosen;
  for (const std::string& target : Split(targets, ',')) {
    bool known = false;
    for (size_t i = 0; i < modules.size(); ++i) {
      if (target.empty() || !Matches(target, modules[i], blocks)) continue;
      known = true;
      chosen.insert(i);
    }
    if (known) continue;
    std::vector<std::string> names;
    for (const std::string& module : modules) {
      const std::string name = Split(module, '.').back();
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    throw Error(ErrorCode::kUsage, "--lora-targets", "no module of the model is called '" + target + "'", "",
                "choose among all-linear, attention, mlp, " + list);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace trainwright

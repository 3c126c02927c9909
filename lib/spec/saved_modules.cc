#include "lib/spec/saved_modules.h"

#include <algorithm>
#include <sstream>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr char kFlag[] = "--lora-save-modules";

std::string LastPart(const std::string& module) {
  return module.substr(module.rfind('.') + 1);
}

std::vector<std::string> AllOf(const OuterModules& outer, bool tied) {
  std::vector<std::string> modules = outer.tables;
  modules.insert(modules.end(), outer.norms.begin(), outer.norms.end());
  if (!tied && !outer.head.empty()) modules.push_back(outer.head);
  return modules;
}

/// Whether a name says the head, by either of its names.
bool IsHead(const std::string& name, const OuterModules& outer) {
  return !outer.head.empty() && (IsNamedBy(outer.head, name) || IsNamedBy(outer.head_of_peft, name));
}

[[noreturn]] void RefuseName(const std::string& name, const OuterModules& outer, bool tied) {
  if (tied && IsHead(name, outer)) {
    throw Error(ErrorCode::kUsage, kFlag, "the model's head is its table of tokens, and no module of its own",
                "",
                "write " + LastPart(outer.tables.front()) + ", which trains both as the one matrix they are");
  }
  std::string list;
  for (const std::string& module : AllOf(outer, tied)) list += (list.empty() ? "" : ", ") + LastPart(module);
  throw Error(ErrorCode::kUsage, kFlag, "no module beside the model's layers is called '" + name + "'", "",
              list.empty() ? "leave it out: this model has none that can be trained whole"
                           : "choose among " + list + "; modules of layers get adapters (--lora-targets)");
}

}  // namespace

bool IsNamedBy(const std::string& module, const std::string& name) {
  return !name.empty() && (module == name || module.ends_with("." + name));
}

bool MeanSameModules(const std::string& names, const std::string& others) {
  const auto split = [](const std::string& list) {
    std::vector<std::string> parts;
    std::istringstream stream(list);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
  };
  const auto all_in = [](const std::vector<std::string>& some, const std::vector<std::string>& all) {
    return std::all_of(some.begin(), some.end(), [&](const std::string& name) {
      return std::any_of(all.begin(), all.end(), [&](const std::string& other) {
        return IsNamedBy(name, other) || IsNamedBy(other, name);
      });
    });
  };
  const std::vector<std::string> a = split(names), b = split(others);
  return all_in(a, b) && all_in(b, a);
}

SavedModules ChooseSavedModules(const std::string& names, const OuterModules& outer, bool tied) {
  SavedModules saved;
  if (names.empty()) return saved;
  const std::vector<std::string> all = AllOf(outer, tied);
  bool says_head = false;  // of tied embeddings, which their table must be named with
  std::istringstream stream(names + ",");
  for (std::string name; std::getline(stream, name, ',');) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const std::string& module) {
      return IsNamedBy(module, name) || (module == outer.head && IsHead(name, outer));
    });
    if (found == all.end() && tied && IsHead(name, outer)) {
      says_head = true;
      continue;
    }
    if (found == all.end()) RefuseName(name, outer, tied);
    if (std::find(saved.modules.begin(), saved.modules.end(), *found) == saved.modules.end()) {
      saved.modules.push_back(*found);
    }
  }
  for (const std::string& module : saved.modules) {
    const bool is_table = std::find(outer.tables.begin(), outer.tables.end(), module) != outer.tables.end();
    saved.tables |= is_table;
    saved.head |= module == outer.head || (tied && module == outer.tables.front());
  }
  if (says_head && !saved.head) RefuseName(outer.head, outer, tied);
  return saved;
}

}  // namespace trainwright

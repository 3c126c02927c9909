#include "lib/run/foreign_optimizer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lib/spec/built_in_optimizers.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {
namespace {

std::string In(const std::map<std::string, std::string>& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? "" : found->second;
}

/// The options that are numbers of optimizers, and how plans store them.
const std::map<std::string, std::string>& StoredNumbers() {
  static const std::map<std::string, std::string> stored = {
      {"beta1", "beta1"}, {"beta2", "beta2"}, {"adam-eps", "epsilon"}, {"weight-decay", "weight_decay"}};
  return stored;
}

/// Whether a number of SGD counts: it gives way where another optimizer overrides the file's.
/// \throws Error{kUsage} where the file's own is another one
bool CountsForSgd(bool is_sgd, const ForeignKey& key, ForeignFile* file) {
  if (!is_sgd) throw file->Refusal(key, "is a number of SGD, which the optimizer is not");
  if (!file->IsOverridden("optimizer", "sgd")) return true;
  file->GiveWay(key, "optimizer");
  return false;
}

}  // namespace

const std::map<std::string, std::string>& OptimizersByTheirNames() {
  static const std::map<std::string, std::string> names = {{kDefaultOptimizer, kDefaultOptimizer},
                                                           {"adamw_torch", kDefaultOptimizer},
                                                           {"adamw_torch_fused", kDefaultOptimizer},
                                                           {"adamw_hf", kDefaultOptimizer},
                                                           {"adamw_apex_fused", kDefaultOptimizer},
                                                           {"paged_adamw", kDefaultOptimizer},
                                                           {"paged_adamw_32bit", kDefaultOptimizer},
                                                           {"adamw_bnb_8bit", "adamw8bit"},
                                                           {"adamw_8bit", "adamw8bit"},
                                                           {"paged_adamw_8bit", "adamw8bit"},
                                                           {"lion", "lion"},
                                                           {"lion_pytorch", "lion"},
                                                           {"lion_32bit", "lion"},
                                                           {"paged_lion_32bit", "lion"},
                                                           {"muon", "muon"},
                                                           {"sgd", "sgd"}};
  return names;
}

std::string OptimizerNamed(const std::string& name) {
  return In(OptimizersByTheirNames(), name);
}

bool OptimizerTakes(const std::string& optimizer, const std::string& option) {
  const auto name = StoredNumbers().find(option);
  if (name == StoredNumbers().end()) return true;
  const std::vector<OptimizerDescription> all = BuiltInOptimizerDescriptions();
  return std::any_of(all.begin(), all.end(), [&](const OptimizerDescription& description) {
    return description.name == optimizer && description.takes.contains(name->second);
  });
}

std::string OptimizerOfClass(const std::string& name) {
  static const std::map<std::string, std::string> names = {
      {"AdamW", kDefaultOptimizer}, {"PagedAdamW", kDefaultOptimizer}, {"PagedAdamW32bit", kDefaultOptimizer},
      {"AdamW8bit", "adamw8bit"},   {"PagedAdamW8bit", "adamw8bit"},   {"SGD", "sgd"}};
  return In(names, name);
}

void TakeNamedOptimizer(const ForeignKey& key, ForeignFile* file) {
  const std::string name = SingleTextOf(key, *file), ours = OptimizerNamed(name);
  if (ours.empty()) {
    return file->Refuse(key, "optimizer", "is '" + name.substr(0, 40) + "': there is no such optimizer",
                        "give --optimizer, if one of those that there are will do: adamw, adamw8bit, lion, "
                        "muon, sgd");
  }
  GiveOptimizer(key, ours, file);
  if (file->IsOverridden("optimizer", ours)) return;
  if (ours == "sgd") GiveNoMomentum(key, file);  // transformers' has none
  if (ours == "adamw8bit") file->Tell(key, kEmbeddingsInEightBits);
}

void GiveOptimizer(const ForeignKey& key, const std::string& ours, ForeignFile* file) {
  file->Give(key, "optimizer", ours);
  if (file->IsOverridden("optimizer", ours)) return;
  std::string name = SingleTextOf(key, *file);
  name = name.substr(name.rfind('.') + 1);
  const std::string kind = ours == "lion"        ? "Lion"
                           : ours == "adamw8bit" ? "AdamW with moments in 8 bits"
                                                 : "AdamW";
  if (name.starts_with("paged_") || name.starts_with("Paged"))
    file->Tell(key, "is " + kind + " here, whose states are not paged");
}

void GiveNoMomentum(const ForeignKey& key, ForeignFile* file) {
  // The file itself may have either as a key of train's own (ForeignSource::has_ours).
  const auto is_true = [&](const char* name) {
    const auto own = file->Find(name);
    return own && *own->value == true;
  };
  const std::string given = file->Given("cycle-momentum");
  const bool cycles =
      given.empty() ? is_true("cycle-momentum") || is_true("cycle_momentum") : given == "true";
  if (!cycles && !file->Find("beta1")) file->Give(key, "beta1", "0");
}

TakeKey NumberForTaker(std::string option, std::string optimizer, std::string (*ours)(const std::string&)) {
  return [=](const ForeignKey& key, ForeignFile* file) {
    const auto chosen = file->Find(optimizer);
    std::string name = chosen ? SingleTextOf(*chosen, *file) : "";
    name = name.empty() ? kDefaultOptimizer : ours(name.substr(name.rfind('.') + 1));
    const bool may_be_taken =
        name.empty() || file->IsOverridden("optimizer", name) || OptimizerTakes(name, option);
    if (may_be_taken) return NumberFor(option)(key, file);
    CheckNumber()(key, file);
    file->Ignore(key);
  };
}

TakeKey MomentumOfSgd(bool (*is_sgd)(const ForeignFile&)) {
  return [=](const ForeignKey& key, ForeignFile* file) {
    CheckNumber()(key, file);
    if (CountsForSgd(is_sgd(*file), key, file)) NumberFor("beta1")(key, file);
  };
}

TakeKey NesterovOfSgd(bool (*is_sgd)(const ForeignFile&)) {
  return [=](const ForeignKey& key, ForeignFile* file) {
    if (!BooleanOf(key, *file)) return;
    if (CountsForSgd(is_sgd(*file), key, file)) file->Give(key, "optimizer-option", "nesterov=1");
  };
}

OnlyWith NumbersOfOptimizers() {
  const std::vector<OptimizerDescription> all = BuiltInOptimizerDescriptions();
  OnlyWith numbers;
  for (const auto& [option, stored] : StoredNumbers()) {
    std::set<std::string> takers;
    for (const OptimizerDescription& description : all) {
      if (description.takes.contains(stored)) takers.insert(description.name);
    }
    if (takers.size() == all.size()) continue;
    if (takers.contains(kDefaultOptimizer)) takers.insert("");
    numbers[option] = {"optimizer", takers};
  }
  return numbers;
}

}  // namespace trainwright

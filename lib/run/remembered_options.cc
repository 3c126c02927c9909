#include "lib/run/remembered_options.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/run/plan_codec.h"
#include "lib/run/schedule_shares.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// Options of one process.
const std::set<std::string>& ForgottenKeys() {
  static const std::set<std::string> keys = {"average",        "status",      "json",    "allow-data-change",
                                             "branch-from",    "deepspeed",   "dry-run", "explain",
                                             "find-batch",     "max-minutes", "merge",   "out",
                                             "preset",         "profile",     "report",  "resume",
                                             "replan-schedule"};
  return keys;
}

/// As --branch-from takes it.
std::string ReferenceTo(const ParentCheckpoint& parent) {
  return fs::exists(parent.run + "/checkpoints") ? parent.run + "@" + std::to_string(parent.step)
                                                 : parent.checkpoint;
}

}  // namespace

std::set<std::string> KeysOfThePlan() {
  std::set<std::string> keys = {"model", "branch-from"};
  for (const PlanOption& option : TrainPlanTable()) keys.insert(option.options.begin(), option.options.end());
  keys.erase("adapter");  // whose weights a run that has no checkpoint yet begins with
  return keys;
}

std::set<std::string> KeysOfOneRun() {
  std::set<std::string> keys = KeysOfThePlan();
  keys.insert({"adapter", "copy-to", "copy-command", "copy-compress", "copy-retries", "copy-timeout",
               "copy-queue", "delete-after-copy"});
  return keys;
}

std::string RememberOptions(const TrainSettings& settings, const std::vector<OptionValue>& options,
                            const RunRecord& record) {
  nlohmann::ordered_json values;
  // One path is a text, as it always was.
  const auto say_paths = [&](const char* key, const std::vector<std::string>& paths) {
    if (paths.size() > 1) {
      values[key] = paths;
    } else {
      values[key] = paths.front();
    }
  };
  say_paths("data", DataPaths(settings));
  if (record.parent) {
    values["branch-from"] = ReferenceTo(*record.parent);
  } else if (settings.init.empty()) {
    values["model"] = record.model_name;
  }
  if (!settings.init.empty()) values["init"] = settings.init;
  if (!settings.adapter.empty()) values["adapter"] = settings.adapter;
  values.update(PlanAsOptions(record.plan));
  // Who begins the run again with these options does not ask for what nobody asked for.
  const TrainPlan& plan = record.plan;
  if (HasUsualWarmup(plan.shares, plan.schedule)) values.erase("warmup");
  if (HasUsualDecay(plan.shares, plan.schedule)) values.erase("decay-steps");
  if (!settings.eval_data.empty()) say_paths("eval-data", settings.eval_data);
  const std::set<std::string> of_plan = KeysOfThePlan();
  for (const OptionValue& option : options) {
    if (option.origin == OptionOrigin::kDefault || option.group == kCommonGroup) continue;
    if (ForgottenKeys().contains(option.key) || of_plan.contains(option.key)) continue;
    // Those of a branch's parent may be in another place for who is here.
    const bool is_relocated = option.key == "cache-dir" || option.key == "offload-dir";
    const std::string& path = option.key == "cache-dir" ? settings.cache_dir : settings.offload_dir;
    if (!values.contains(option.key)) values[option.key] = is_relocated ? path : option.value;
  }
  std::string yaml;
  for (const auto& [key, value] : values.items()) yaml += key + ": " + value.dump() + "\n";
  return yaml;
}

bool IsFromRun(const std::vector<OptionValue>& options, const std::string& key) {
  return std::any_of(options.begin(), options.end(), [&](const OptionValue& option) {
    return option.key == key && option.origin == OptionOrigin::kRemembered;
  });
}

void RelocatePaths(const std::vector<OptionValue>& options, const std::string& working_directory,
                   TrainSettings* settings) {
  if (fs::current_path() == working_directory) return;
  const auto relocate = [&](const std::string& key, std::string* path, bool is_made) {
    if (path->empty() || *path == "-" || fs::path(*path).is_absolute() || !IsFromRun(options, key)) return;
    const fs::path there = fs::path(working_directory) / *path;
    if (!fs::exists(*path) && (is_made || fs::exists(there))) *path = there.string();
  };
  for (std::string& path : settings->data) relocate("data", &path, /*is_made=*/false);
  for (std::string& path : settings->eval_data) relocate("eval-data", &path, /*is_made=*/false);
  relocate("init", &settings->init, /*is_made=*/false);
  relocate("adapter", &settings->adapter, /*is_made=*/false);
  relocate("cache-dir", &settings->cache_dir, /*is_made=*/false);
  relocate("offload-dir", &settings->offload_dir, /*is_made=*/false);
  relocate("copy-to", &settings->copy_to, /*is_made=*/true);
}

void RelocateOwnFiles(const std::vector<OwnOption>& own, const std::string& working_directory,
                      TrainPlan* plan) {
  if (working_directory.empty()) return;
  for (const OwnOption& option : own) {
    const auto found = plan->objective_own.find(option.name);
    if (!option.names_file() || found == plan->objective_own.end()) continue;
    const fs::path path = found->second.ToString();
    if (path.empty() || path.is_absolute() || fs::exists(path)) continue;
    const fs::path there = fs::path(working_directory) / path;
    if (fs::exists(there)) found->second = there.string();
  }
}

void TakeRecordedFiles(const std::vector<OwnOption>& own, const RunRecord& record, TrainPlan* plan) {
  for (const OwnOption& option : own) {
    const auto stored = plan->objective_own.find(option.name);
    const auto recorded = record.plan.objective_own.find(option.name);
    if (!option.names_file() || stored == plan->objective_own.end()) continue;
    if (recorded == record.plan.objective_own.end()) continue;
    const fs::path path = stored->second.ToString();
    const bool is_there = fs::exists(path) || fs::exists(fs::path(record.working_directory) / path);
    if (!path.empty() && !is_there) stored->second = recorded->second;
  }
}

}  // namespace trainwright

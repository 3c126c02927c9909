#include "lib/run/instead_of_training.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

struct Job {
  bool asked;
  std::string key;
  std::set<std::string> uses = {};  ///< keys of options beside its own
};

std::vector<Job> JobsOf(const TrainSettings& settings) {
  return {{!settings.report.empty(), "report"},
          {!settings.status.empty(), "status", {"json"}},
          {!settings.merge.empty(), "merge", {"init", "out", "allow-other-base", "threads"}},
          {!settings.average.empty(), "average", {"out", "threads"}}};
}

void RefuseBeside(const std::string& job, const std::string& other, const std::string& problem) {
  throw Error(ErrorCode::kUsage, "--" + job + ", --" + other, problem, "", "leave out one of them");
}

void RefuseUnused(const Job& job, const std::vector<OptionValue>& options) {
  for (const OptionValue& option : options) {
    if (option.origin != OptionOrigin::kCommandLine || option.group == kCommonGroup) continue;
    if (option.key == job.key || job.uses.contains(option.key)) continue;
    const std::string flag = "--" + option.key;
    throw Error(ErrorCode::kUsage, flag, "has no meaning with --" + job.key + ", which trains nothing", "",
                "leave out " + flag);
  }
}

}  // namespace

void CheckInsteadOfTraining(const TrainSettings& settings, const std::vector<OptionValue>& options) {
  const Job* asked = nullptr;
  const std::vector<Job> jobs = JobsOf(settings);
  for (const Job& job : jobs) {
    if (!job.asked) continue;
    if (asked != nullptr) RefuseBeside(asked->key, job.key, "cannot both be done in one call");
    asked = &job;
  }
  if (asked == nullptr) return;
  for (const auto& [foretells, key] :
       {std::pair(settings.dry_run, "dry-run"), {settings.explain, "explain"}}) {
    const bool here = std::any_of(options.begin(), options.end(), [&](const OptionValue& option) {
      return option.key == key && option.origin == OptionOrigin::kCommandLine;
    });
    if (foretells && here)
      RefuseBeside(asked->key, key, "cannot both be given: what is foretold is a training run");
  }
  RefuseUnused(*asked, options);
}

}  // namespace trainwright

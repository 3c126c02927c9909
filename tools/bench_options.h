/// The command line of `bench`.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/bench/claims_workplace.h"
#include "lib/cli/tool.h"

namespace trainwright {

struct BenchOptions {
  std::string before, after, prepare;
  std::string stages;
  std::string ablate;  ///< empty: none
  std::string claims;  ///< empty: none
  std::string claims_only;
  ClaimScale claims_size = ClaimScale::kSmall;
  std::string by = "wall_s";
  std::vector<std::string> metrics;
  std::optional<std::string> metric_file;
  std::optional<int64_t> metric_skip;
  double budget_s = 60;
  int64_t warmup = 1, min_rounds = 8, max_rounds = 200;
  double width_percent = 1, same_within_percent = 1;
  std::optional<double> max_regression_percent;
  double timeout_s = 3600;
  bool no_shell = false, ignore_failure = false;
  std::string output_check = "warn";
  uint64_t seed = 1;
  bool json = false;
  std::string save, report;
};

const ToolInfo& BenchInfo();
void DefineBenchOptions(CLI::App& app, BenchOptions* options);

}  // namespace trainwright

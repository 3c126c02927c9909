/// Named commands in a YAML file: the stages of a pipeline with their variants, and levers to ablate.
///
///   stages:                       # or: base and levers, below
///     - name: pack
///       before: pack --level 3 tokens.tok -o {dir}/shards/
///       after: pack --level 1 tokens.tok -o {dir}/shards/
///       prepare: ...              # optional, before each run
///
///   base: train --data shards --steps 20 --out {dir}/run {levers}
///   metric-file: "{dir}/run/metrics.jsonl"   # optional
///   metrics: [step_time_s, "final:loss_nats"]
///   levers:
///     - name: bf16
///       add: --mixed-precision bf16
///     - name: lr                  # a sweep: a lever for each value
///       add: --lr {value}
///       values: [1e-4, 3e-4]
#pragma once

#include <string>
#include <vector>

#include "lib/bench/measurement.h"

namespace trainwright {

struct Stage {
  std::string name;
  Variant before, after;
};

struct Lever {
  std::string name;
  std::string add;        ///< what it puts in place of {levers} in the base command
  bool of_sweep = false;  ///< one of several values of one thing
};

struct PlanFile {
  std::vector<Stage> stages;
  std::string base, prepare;  ///< of an ablation; base empty: none
  std::vector<Lever> levers;
  MetricSource metrics;
};

/// \throws Error{kIo} when it cannot be read, Error{kUsage} naming file, line and field
PlanFile ReadPlanFile(const std::string& path);

enum class AblationMode { kOneAtATime, kCumulative };

/// The base and a variant for each lever, alone or on top of those before it.
/// \throws Error{kUsage} on a sweep whose values would be added up
std::vector<Variant> AblationVariants(const PlanFile& plan, AblationMode mode);

}  // namespace trainwright

/// What has become of a run, told from its directory alone: `train --status`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace trainwright {

enum class RunState { kComplete, kIncomplete, kDamaged, kNone };

struct RunStatus {
  std::string run;  ///< as it was named
  RunState state = RunState::kNone;
  bool running = false;                ///< a process has the run now
  int64_t steps = 0;                   ///< of the newest whole checkpoint
  std::optional<int64_t> total_steps;  ///< of the plan; absent where nothing reports it
  std::string checkpoint;              ///< its folder; empty: none
  std::optional<double> final_loss_nats;
  std::string problem;  ///< of a damaged run: what is wrong; of an incomplete one: what is skipped

  std::string hint;  ///< of a damaged run: what helps; empty: nothing is known

  /// 0 complete, 1 not complete, 3 damaged, 4 no run.
  int exit_status() const;
  /// One line.
  std::string Text() const;
};

/// Reads without a lock: also of a run that is being trained. The newest checkpoint is compared with its
/// hashes; what cannot be read is damaged.
RunStatus ReadRunStatus(const std::string& run_path);

/// {"schema": "trainwright.status/1", "run", "state": complete, incomplete, damaged or none, "running",
/// "steps", "total_steps", "final_loss_nats", "checkpoint", "problem"}; null for what is not known.
nlohmann::ordered_json EncodeRunStatus(const RunStatus& status);

}  // namespace trainwright

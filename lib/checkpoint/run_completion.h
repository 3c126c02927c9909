/// complete.json of a run directory: its presence says that the run has taken its last step and that nothing
/// of it is left to do.
///
///   {"schema": "trainwright.complete/1", "reason": "complete" or "early stop", "steps", "total_steps",
///    "tokens", "final_loss_nats", "eval_loss_nats" (null without an evaluation at the end),
///    "checkpoint": "checkpoints/step-NNNNNNNN", "weights_sha256"}
///
/// It is written atomically and last, after checkpoint, records, reports and copies, and deleted first where
/// a run is to take more steps. No clock is in it: it is that of the uninterrupted run, however often the run
/// was resumed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/run/run_directory.h"

namespace trainwright {

/// The reason of a run that took its last step, and of one that --early-stop ended.
inline constexpr char kCompleteEnd[] = "complete", kEarlyStop[] = "early stop";

/// \param step of the last checkpoint, whose metadata.json reports the rest
/// \throws Error{kBadInput, kIo}
void WriteRunCompletion(const RunDirectory& run, int64_t step, const std::string& reason);
/// The run is to take more steps.
/// \throws Error{kIo}
void RemoveRunCompletion(const RunDirectory& run);
/// \returns null for a run that is not complete
/// \throws Error{kBadInput} on a file that is no complete.json; Error{kIo}
nlohmann::ordered_json ReadRunCompletion(const std::string& run_path);

}  // namespace trainwright

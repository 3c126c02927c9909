/// What the metrics.jsonl of a run says about its upkeep: which checkpoints and copies have a record, what
/// the newest process spent, and how it ended.
///
/// A process that was killed between a deed and its record leaves the record out; who continues the run
/// finds here what to add.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace trainwright {

struct UpkeepRecords {
  bool begun = false;                                ///< there is a record
  std::set<int64_t> checkpoints;                     ///< steps whose checkpoint has a record
  std::set<std::pair<int64_t, std::string>> copies;  ///< that were made: step and place
  nlohmann::ordered_json end;                        ///< the last record if it is a run_end; else null

  // Of the newest process.
  double wall_time_s = 0;  ///< from its first record to its last
  std::optional<double> cost_per_hour;
  double save_stall_s = 0, save_wait_s = 0, writer_cpu_s = 0;
  int64_t max_memory_bytes = 0;
  std::vector<int64_t> source_tokens;  ///< of the steps that have a record; empty: one source

  /// Whether the newest process ended so, and with status 0.
  bool EndedWell(const std::string& reason) const;
  /// The fields of a run_end with this status and reason: of the one that is there, or else those that the
  /// newest process would have written, had it not been killed.
  /// \param tokens_seen of all steps
  nlohmann::ordered_json EndFields(int64_t step, int64_t tokens_seen, int exit_status,
                                   const std::string& reason) const;
};

/// \returns no records where there is no such file
/// \throws Error{kIo}; Error{kBadInput} naming the line that is no metrics record
UpkeepRecords ReadUpkeepRecords(const std::string& metrics_path);

}  // namespace trainwright

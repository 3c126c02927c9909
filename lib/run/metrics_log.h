/// metrics.jsonl of a run: man/trainwright-metrics.5, schema "trainwright.train/1", checked by
/// lib/run/metrics.schema.json.
///
/// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/report/json_lines.h"

namespace trainwright {

inline constexpr char kMetricsSchema[] = "trainwright.train/1";

/// Cuts a file of metrics back to what was written up to a checkpoint of `step`: records of later steps, the
/// run_end of the process that was stopped, and a torn last line go, so that the continued file reads as one
/// run. A missing file is left missing.
/// \param evaluated whether the checkpoint has its evaluation: else a record of one goes, which is made again
/// \throws Error{kIo}, Error{kBadInput} naming the line when something before the end is no metrics record
void CutMetrics(const std::string& path, int64_t step, bool evaluated = true);

/// Calls `visit` with each record of a file of metrics; a last line without its end is left out.
/// \throws Error{kIo}; Error{kBadInput} naming the line that is no metrics record
void ForEachMetricsRecord(const std::string& path,
                          const std::function<void(const nlohmann::ordered_json&)>& visit);

/// The same of an open file.
/// \param path for the messages
void ForEachMetricsRecord(std::istream& file, const std::string& path,
                          const std::function<void(const nlohmann::ordered_json&)>& visit);

class MetricsLog {
 public:
  /// Appends to `path`, creating it.
  /// \throws Error{kIo}
  explicit MetricsLog(const std::string& path) : lines_(path) {}
  /// Writes {"schema":...,"type":type,"time_unix_s":now, fields...}.
  /// \returns it
  /// \throws Error{kIo}
  nlohmann::ordered_json Write(const std::string& type, const nlohmann::ordered_json& fields);
  void Sync() { lines_.Sync(); }

 private:
  JsonLinesWriter lines_;
};

}  // namespace trainwright

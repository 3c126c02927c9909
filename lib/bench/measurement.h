/// Interleaved runs of several variants of a command, and where their numbers come from.
///
/// The variants of a round run in a random order and then in the reverse order (ABBA for two), so that a
/// drift that is linear over the round, a warming machine for example, falls out of every ratio. A second
/// copy of the first variant runs among them as the control: its ratio to the first shows what the same
/// method says when nothing changed.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/io/command.h"

namespace trainwright {

/// A command to compare. "{dir}" in its texts becomes an empty folder of each run, deleted after it.
struct Variant {
  std::string name;
  std::string command;
  /// Run before each run of the command, not timed; what it starts is ended after that run. Empty: nothing.
  std::string prepare;
};

/// Numbers that a command reports itself, as JSON: one object, or one a line.
struct MetricSource {
  std::vector<std::string> names;  ///< fields to take; empty: none
  std::string file = "-";          ///< "{dir}/metrics.jsonl" (MetricFile), or "-": standard output
  int64_t skip = 0;                ///< records that have the field and are left out at the start: warming up
  bool may_lack = false;           ///< a run that reports none of a name is measured without it, not refused
};

/// The field that a metric is a number of: "mfu" of "mfu", "mean:mfu", "p99:mfu", "final:mfu" and "sum:mfu".
std::string FieldOfMetric(const std::string& name);
/// The median of a field over a text's records; "mean:NAME" is the mean, "p99:NAME" the 99th percentile by
/// the nearest rank, "final:NAME" the last value, "sum:NAME" the sum of all, none skipped. NaN where a value
/// that counts is no finite number: null, NaN or an infinity, as a run that diverged reports them.
/// \throws Error{kBadInput} naming `object` when the text has no such field
double ReadMetric(const std::string& text, const std::string& name, int64_t skip, const std::string& object);
/// The same over finite numbers alone, as of a field that is null where there is nothing to report; nothing
/// when the text has none.
std::optional<double> FindMetric(const std::string& text, const std::string& name, int64_t skip);

/// Before anything runs.
/// \throws Error where a text of a variant, or the file of metrics, has "{dir}", and no folder can be made
void RequireRunFolders(const std::vector<Variant>& variants, const MetricSource& metrics);

struct MeasurementOptions {
  CommandOptions command;
  MetricSource metrics;
  /// A metric that must be a finite number in every run, and above 0 in those that are measured; empty: none.
  std::string decisive;
  int64_t warmup_rounds = 1;
  int64_t min_rounds = 8, max_rounds = 200;
  double budget_s = 60;  ///< no round begins that would probably end after it, min_rounds apart
  bool ignore_failure = false;
  bool compare_output = true;  ///< hash standard output of all variants once, in their first run
  bool keep_stopped = false;   ///< what ends the rounds leaves those before; else it is thrown
  uint64_t seed = 1;
};

/// One run's numbers by metric: wall_s, cpu_s, max_memory_bytes, read_bytes, written_bytes and the command's.
using Sample = std::map<std::string, double>;

/// Each variant's two runs of a round, in time order; index 0 is the first variant, the last the control.
struct Round {
  std::vector<std::vector<Sample>> runs;
};

struct VariantOutput {
  std::string sha256;  ///< of standard output in the first run
  uint64_t size_bytes = 0;
  int exit_status = 0;
};

struct Measurement {
  std::vector<std::string> names, commands;  ///< of the variants; the last is "control"
  std::vector<Round> rounds;
  std::vector<VariantOutput> outputs;  ///< of the variants and the control; empty without compare_output
  double measured_s = 0;
  bool budget_spent = false;
  /// With keep_stopped the Error of a signal, or of a command that failed, that ended it: rounds and outputs
  /// are those that were complete.
  std::exception_ptr stopped = nullptr;
};

/// Whether the rounds so far say enough. Called from min_rounds on, ever more seldom: an eighth more rounds
/// lie between two calls, because its cost grows with them and must not eat the budget.
using EnoughRounds = std::function<bool(const Measurement&)>;

/// \param variants at least one; a control of the first is added
/// \throws Error{kBadInput} when a command fails (unless ignore_failure), does not report a metric, or
///     reports a decisive one that cannot be compared, and the Error of a signal, both without keep_stopped
Measurement Measure(const std::vector<Variant>& variants, const MeasurementOptions& options,
                    const EnoughRounds& enough);

}  // namespace trainwright

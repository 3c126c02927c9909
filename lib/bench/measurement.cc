#include "lib/bench/measurement.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/bench/metric_file.h"
#include "lib/bench/reported_values.h"
#include "lib/bench/statistics.h"
#include "lib/bench/temporary_folder.h"
#include "lib/bench/until_stopped.h"
#include "lib/io/process_memory.h"

namespace trainwright {
namespace {

constexpr char kFolderMark[] = "{dir}";
constexpr char kFinalMark[] = "final:";
constexpr char kMeanMark[] = "mean:";
constexpr char kSlowMark[] = "p99:";
constexpr char kSumMark[] = "sum:";

/// The folder of a run, made only when a text asks for it.
class RunFolder {
 public:
  std::string Fill(std::string text) {
    for (size_t at = text.find(kFolderMark); at != std::string::npos; at = text.find(kFolderMark, at)) {
      if (!folder_) folder_.emplace();
      text.replace(at, sizeof(kFolderMark) - 1, folder_->path());
      at += folder_->path().size();
    }
    return text;
  }

 private:
  std::optional<TemporaryFolder> folder_;
};

class Runner {
 public:
  explicit Runner(const MeasurementOptions& options) : options_(options) {}

  /// \param output where the standard output's identity goes; nullptr: not asked for
  /// \param is_measured whether its numbers are compared, so that it is no run to warm up
  Sample Run(const Variant& variant, VariantOutput* output, bool is_measured) const {
    RunFolder folder;
    const bool reads_metrics = !options_.metrics.names.empty(),
               reads_stdout = reads_metrics && options_.metrics.file == "-";
    // What the preparation writes there is of this run.
    std::optional<MetricFile> metric_file;
    if (reads_metrics && !reads_stdout) metric_file.emplace(folder.Fill(options_.metrics.file));
    // What is copied at the start of a process counts as its memory.
    ReturnFreeHeap();
    LeftGroup started;
    Prepare(variant, &folder, &started);
    CommandOptions how = options_.command;
    how.ends_group = true;  // what a run leaves would slow those after it
    how.beside = &started;
    how.keep_output = reads_stdout;
    Sha256 hash;
    uint64_t size_bytes = 0;
    if (output != nullptr) {
      how.on_output = [&](std::string_view piece) {
        hash.Update(AsBytes(piece));
        size_bytes += piece.size();
      };
    }
    const CommandRun run = RunCommand(folder.Fill(variant.command), how);
    if (run.timed_out || (run.exit_status != 0 && !options_.ignore_failure)) {
      Fail(variant, "it", run, "--ignore-failure measures it all the same");
    }
    if (output != nullptr) *output = {HexEncode(hash.Digest()), size_bytes, run.exit_status};
    Sample sample = {{"wall_s", run.wall_s},
                     {"cpu_s", run.cpu_s()},
                     {"user_s", run.user_s},
                     {"system_s", run.system_s},
                     {"max_memory_bytes", static_cast<double>(run.max_memory_bytes)},
                     {"exit_status", run.exit_status}};
    if (run.read_bytes) sample["read_bytes"] = static_cast<double>(*run.read_bytes);
    if (run.written_bytes) sample["written_bytes"] = static_cast<double>(*run.written_bytes);
    if (reads_metrics) {
      const std::string text = reads_stdout ? run.output : metric_file->Read();
      for (const std::string& name : options_.metrics.names) AddMetric(variant, text, name, &sample);
    }
    if (!options_.decisive.empty()) RequireDecisive(variant, sample, is_measured);
    return sample;
  }

 private:
  /// \param started takes what the preparation starts and leaves
  void Prepare(const Variant& variant, RunFolder* folder, LeftGroup* started) const {
    if (variant.prepare.empty()) return;
    CommandOptions how = options_.command;
    how.leaves = started;
    const CommandRun run = RunCommand(folder->Fill(variant.prepare), how);
    if (run.exit_status != 0) Fail(variant, "its preparation", run, "see --prepare");
  }

  void AddMetric(const Variant& variant, const std::string& text, const std::string& name,
                 Sample* sample) const {
    const int64_t skip = options_.metrics.skip;
    if (options_.metrics.may_lack) {
      if (const auto found = FindMetric(text, name, skip)) (*sample)[name] = *found;
      return;
    }
    (*sample)[name] = ReadMetric(text, name, skip, "'" + variant.name + "'");
  }

  /// Numbers are compared by their ratio.
  void RequireDecisive(const Variant& variant, const Sample& sample, bool is_measured) const {
    const auto found = sample.find(options_.decisive);
    const bool is_finite = found != sample.end() && std::isfinite(found->second);
    if (is_finite && (found->second > 0 || !is_measured)) return;
    throw Error(ErrorCode::kBadInput, "'" + variant.name + "'",
                "reports a '" + options_.decisive + "' that is no " + (is_finite ? "positive" : "finite") +
                    " number, and it decides",
                "", "--by names another metric");
  }

  /// \param hint of a command that ended
  [[noreturn]] static void Fail(const Variant& variant, const std::string& what, const CommandRun& run,
                                const std::string& hint) {
    std::string tail = run.error_tail;
    while (!tail.empty() && tail.back() == '\n') tail.pop_back();
    const std::string how = run.timed_out ? " did not end within --timeout"
                                          : " ended with exit status " + std::to_string(run.exit_status);
    throw Error(ErrorCode::kBadInput, "'" + variant.name + "'",
                what + how + (tail.empty() ? "" : ", and said: " + tail), "",
                run.timed_out ? "raise --timeout" : hint);
  }

  const MeasurementOptions& options_;
};

/// Nothing where there is no value; NaN where one that counts is no finite number.
std::optional<double> MetricOf(const std::vector<double>& values, const std::string& name, int64_t skip) {
  if (name.starts_with(kFinalMark)) return values.empty() ? std::nullopt : std::optional(values.back());
  if (name.starts_with(kSumMark)) {
    return values.empty() ? std::nullopt : std::optional(std::accumulate(values.begin(), values.end(), 0.0));
  }
  if (static_cast<int64_t>(values.size()) <= skip) return std::nullopt;
  std::vector<double> rest(values.begin() + skip, values.end());
  for (const double value : rest) {
    if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  }
  if (name.starts_with(kSlowMark)) {
    // By the nearest rank: the smallest value that 99 % of them do not exceed.
    const size_t rank = (99 * rest.size() + 99) / 100;
    std::nth_element(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(rank - 1), rest.end());
    return rest[rank - 1];
  }
  if (!name.starts_with(kMeanMark)) return Median(rest);
  return std::accumulate(rest.begin(), rest.end(), 0.0) / static_cast<double>(rest.size());
}

}  // namespace

void RequireRunFolders(const std::vector<Variant>& variants, const MetricSource& metrics) {
  RunFolder folder;  // made by the first text that asks for it
  folder.Fill(metrics.file);
  for (const Variant& variant : variants) {
    folder.Fill(variant.prepare);
    folder.Fill(variant.command);
  }
}

std::string FieldOfMetric(const std::string& name) {
  for (const char* mark : {kFinalMark, kMeanMark, kSlowMark, kSumMark}) {
    if (name.starts_with(mark)) return name.substr(std::strlen(mark));
  }
  return name;
}

std::optional<double> FindMetric(const std::string& text, const std::string& name, int64_t skip) {
  std::vector<double> values = ReportedValues(text, FieldOfMetric(name));
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return MetricOf(values, name, skip);
}

double ReadMetric(const std::string& text, const std::string& name, int64_t skip, const std::string& object) {
  const std::vector<double> values = ReportedValues(text, FieldOfMetric(name));
  if (const auto found = MetricOf(values, name, skip)) return *found;
  throw Error(ErrorCode::kBadInput, object,
              "reports no number '" + FieldOfMetric(name) + "'" +
                  (values.empty() ? "" : " after the " + std::to_string(skip) + " that are skipped"),
              "", "see --metric, --metric-file and --metric-skip");
}

namespace {

/// Whether what a command did is wrong, not this program or its user.
bool IsOfTheRun(const Error& error) {
  return error.code() == ErrorCode::kBadInput && error.place().empty();
}

/// Runs variants, the last of them the control, in rounds.
class RoundRunner {
 public:
  RoundRunner(const std::vector<Variant>& variants, const MeasurementOptions& options, Measurement* result)
      : variants_(variants), options_(options), runner_(options), result_(*result) {}

  void Run(const EnoughRounds& enough) {
    for (int64_t round = 0; round < options_.warmup_rounds; ++round) {
      for (size_t i = 0; i < variants_.size(); ++i)
        RunOnce(i, "round " + std::to_string(round + 1) + " to warm up", /*is_measured=*/false);
    }
    const auto start = std::chrono::steady_clock::now();
    int64_t next_look = options_.min_rounds;
    for (int64_t index = 0; index < options_.max_rounds; ++index) {
      result_.rounds.push_back(RunRound(index));
      result_.measured_s = SecondsSince(start);
      const auto done = static_cast<int64_t>(result_.rounds.size());
      if (done < options_.min_rounds) continue;
      if (done >= next_look) {
        if (enough(result_)) break;
        next_look = done + std::max<int64_t>(1, done / 8);
      }
      const double round_s = result_.measured_s / static_cast<double>(done);
      if (result_.measured_s + round_s > options_.budget_s) {
        result_.budget_spent = true;
        break;
      }
    }
  }

 private:
  Round RunRound(int64_t index) {
    const size_t count = variants_.size();
    const KeyedPermutation order(count, Rng(options_.seed, "order", static_cast<uint64_t>(index)).key());
    Round round;
    round.runs.resize(count);
    for (size_t i = 0; i < 2 * count; ++i) {
      const size_t variant = order(i < count ? i : 2 * count - 1 - i);
      round.runs[variant].push_back(RunOnce(variant, "round " + std::to_string(index + 1), true));
    }
    return round;
  }

  /// The output of a variant's first run is hashed: that of a warm-up, unless there is none.
  /// \param round for messages
  Sample RunOnce(size_t i, const std::string& round, bool is_measured) {
    const bool hash = options_.compare_output && hashed_.insert(i).second;
    if (hash) result_.outputs.resize(variants_.size());
    try {
      return runner_.Run(variants_[i], hash ? &result_.outputs[i] : nullptr, is_measured);
    } catch (const Error& error) {
      if (!IsOfTheRun(error)) throw;
      throw Error(error.code(), error.object(), error.problem(), round, error.hint());
    }
  }

  const std::vector<Variant>& variants_;
  const MeasurementOptions& options_;
  const Runner runner_;
  Measurement& result_;
  std::set<size_t> hashed_;
};

}  // namespace

Measurement Measure(const std::vector<Variant>& variants, const MeasurementOptions& options,
                    const EnoughRounds& enough) {
  TRAINWRIGHT_CHECK(!variants.empty());
  std::vector<Variant> all = variants;
  all.push_back(variants.front());
  all.back().name = "control";
  Measurement measurement;
  for (const Variant& variant : all) {
    measurement.names.push_back(variant.name);
    measurement.commands.push_back(variant.command);
  }
  RoundRunner runner(all, options, &measurement);
  if (!options.keep_stopped) {
    runner.Run(enough);
    return measurement;
  }
  try {
    measurement.stopped = UntilStopped([&] { runner.Run(enough); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    measurement.stopped = std::current_exception();
  }
  if (measurement.rounds.empty()) measurement.outputs.clear();
  return measurement;
}

}  // namespace trainwright

#include "lib/bench/measurement.h"

#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "lib/base/checksum.h"
#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/bench/statistics.h"
#include "lib/bench/temporary_folder.h"

namespace trainwright {
namespace {

constexpr char kFolderMark[] = "{dir}";
constexpr char kFinalMark[] = "final:";
constexpr char kMeanMark[] = "mean:";
constexpr char kSlowMark[] = "p99:";

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

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file)
    throw Error(ErrorCode::kBadInput, path, "was not written by the command", "", "see --metric-file");
  return text.str();
}

class Runner {
 public:
  explicit Runner(const MeasurementOptions& options) : options_(options) {}

  /// \param output where the standard output's identity goes; nullptr: not asked for
  Sample Run(const Variant& variant, VariantOutput* output) const {
    RunFolder folder;
    if (!variant.prepare.empty()) {
      const CommandRun prepared = RunCommand(folder.Fill(variant.prepare), options_.command);
      if (prepared.exit_status != 0) Fail(variant, "its preparation", prepared);
    }
    CommandOptions how = options_.command;
    const bool reads_stdout = !options_.metrics.names.empty() && options_.metrics.file == "-";
    how.keep_output = output != nullptr || reads_stdout;
    const CommandRun run = RunCommand(folder.Fill(variant.command), how);
    if (run.timed_out || (run.exit_status != 0 && !options_.ignore_failure)) Fail(variant, "it", run);
    if (output != nullptr) {
      *output = {HexEncode(Sha256Of(AsBytes(run.output))), run.output.size(), run.exit_status};
    }
    Sample sample = {{"wall_s", run.wall_s},
                     {"cpu_s", run.cpu_s()},
                     {"user_s", run.user_s},
                     {"system_s", run.system_s},
                     {"max_memory_bytes", static_cast<double>(run.max_memory_bytes)},
                     {"exit_status", run.exit_status}};
    if (run.read_bytes) sample["read_bytes"] = static_cast<double>(*run.read_bytes);
    if (run.written_bytes) sample["written_bytes"] = static_cast<double>(*run.written_bytes);
    if (!options_.metrics.names.empty()) {
      const std::string text = reads_stdout ? run.output : ReadText(folder.Fill(options_.metrics.file));
      for (const std::string& name : options_.metrics.names) {
        const int64_t skip = options_.metrics.skip;
        if (!options_.metrics.may_lack) {
          sample[name] = ReadMetric(text, name, skip, "'" + variant.name + "'");
        } else if (const auto found = FindMetric(text, name, skip)) {
          sample[name] = *found;
        }
      }
    }
    return sample;
  }

 private:
  [[noreturn]] static void Fail(const Variant& variant, const std::string& what, const CommandRun& run) {
    std::string tail = run.error_tail;
    while (!tail.empty() && tail.back() == '\n') tail.pop_back();
    const std::string how = run.timed_out ? " did not end within --timeout"
                                          : " ended with exit status " + std::to_string(run.exit_status);
    throw Error(ErrorCode::kBadInput, "'" + variant.name + "'",
                what + how + (tail.empty() ? "" : ", and said: " + tail), "",
                run.timed_out ? "raise --timeout" : "--ignore-failure measures it all the same");
  }

  const MeasurementOptions& options_;
};

}  // namespace

namespace {

/// All values of a field over a text's records.
std::vector<double> FieldValues(const std::string& text, const std::string& field) {
  std::vector<double> values;
  const auto take = [&](const nlohmann::json& record) {
    if (!record.is_object()) return;
    const auto found = record.find(field);
    if (found != record.end() && found->is_number()) values.push_back(found->get<double>());
  };
  const nlohmann::json whole = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!whole.is_discarded()) {
    take(whole);
    return values;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    take(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false));
  }
  return values;
}

std::string FieldOf(const std::string& name) {
  for (const char* mark : {kFinalMark, kMeanMark, kSlowMark}) {
    if (name.starts_with(mark)) return name.substr(std::strlen(mark));
  }
  return name;
}

}  // namespace

std::optional<double> FindMetric(const std::string& text, const std::string& name, int64_t skip) {
  const std::vector<double> values = FieldValues(text, FieldOf(name));
  if (name.starts_with(kFinalMark)) return values.empty() ? std::nullopt : std::optional(values.back());
  if (static_cast<int64_t>(values.size()) <= skip) return std::nullopt;
  std::vector<double> rest(values.begin() + skip, values.end());
  if (name.starts_with(kSlowMark)) {
    // By the nearest rank: the smallest value that 99 % of them do not exceed.
    const size_t rank = (99 * rest.size() + 99) / 100;
    std::nth_element(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(rank - 1), rest.end());
    return rest[rank - 1];
  }
  if (!name.starts_with(kMeanMark)) return Median(rest);
  return std::accumulate(rest.begin(), rest.end(), 0.0) / static_cast<double>(rest.size());
}

double ReadMetric(const std::string& text, const std::string& name, int64_t skip, const std::string& object) {
  if (const auto found = FindMetric(text, name, skip)) return *found;
  const bool too_few = !FieldValues(text, FieldOf(name)).empty();
  throw Error(ErrorCode::kBadInput, object,
              "reports no number '" + FieldOf(name) + "'" +
                  (too_few ? " after the " + std::to_string(skip) + " that are skipped" : ""),
              "", "see --metric, --metric-file and --metric-skip");
}

Measurement Measure(const std::vector<Variant>& variants, const MeasurementOptions& options,
                    const EnoughRounds& enough) {
  TRAINWRIGHT_CHECK(!variants.empty());
  std::vector<Variant> all = variants;
  all.push_back(variants.front());
  all.back().name = "control";
  const size_t count = all.size();
  const Runner runner(options);
  Measurement measurement;
  for (const Variant& variant : all) {
    measurement.names.push_back(variant.name);
    measurement.commands.push_back(variant.command);
  }

  for (int64_t round = 0; round < options.warmup_rounds; ++round) {
    const bool hash = options.compare_output && round == 0;
    if (hash) measurement.outputs.resize(count);
    for (size_t i = 0; i < count; ++i) runner.Run(all[i], hash ? &measurement.outputs[i] : nullptr);
  }
  const auto start = std::chrono::steady_clock::now();
  int64_t next_look = options.min_rounds;
  for (int64_t index = 0; index < options.max_rounds; ++index) {
    const KeyedPermutation order(count, Rng(options.seed, "order", static_cast<uint64_t>(index)).key());
    Round round;
    round.runs.resize(count);
    for (size_t i = 0; i < 2 * count; ++i) {
      const size_t variant = order(i < count ? i : 2 * count - 1 - i);
      round.runs[variant].push_back(runner.Run(all[variant], nullptr));
    }
    measurement.rounds.push_back(std::move(round));
    measurement.measured_s = SecondsSince(start);
    const auto done = static_cast<int64_t>(measurement.rounds.size());
    if (done < options.min_rounds) continue;
    if (done >= next_look) {
      if (enough(measurement)) break;
      next_look = done + std::max<int64_t>(1, done / 8);
    }
    const double round_s = measurement.measured_s / static_cast<double>(done);
    if (measurement.measured_s + round_s > options.budget_s) {
      measurement.budget_spent = true;
      break;
    }
  }
  return measurement;
}

}  // namespace trainwright

#include "lib/bench/claims_ten_tables.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <fstream>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/bench/claims_ten_guide.h"
#include "lib/bench/measurement.h"
#include "lib/bench/statistics.h"
#include "lib/bench/system_claims.h"
#include "lib/bench/temporary_folder.h"
#include "lib/bench/until_stopped.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kStepTokens = 32768, kShortest = 512;
/// Of a run that compares scans: what is left out at its start, and what is timed.
constexpr int64_t kWarmupSteps = 3, kTimedSteps = 10;

/// A training run on the long document in a folder of its own, and what it says of itself.
ordered_json SummaryOf(const ClaimsWorkplace& workplace, const std::string& flags) {
  const TemporaryFolder folder;
  std::string command = workplace.Train(flags, ClaimData::kLong);
  const std::string mark = "{dir}";
  for (size_t at = command.find(mark); at != std::string::npos; at = command.find(mark)) {
    command.replace(at, mark.size(), folder.path());
  }
  const std::string path = folder.path() + "/summary.json";
  workplace.Run(command + " --summary " + path, 900);
  auto summary = ordered_json::parse(std::ifstream(path));
  std::ifstream records(folder.path() + "/run/metrics.jsonl");
  for (std::string line; std::getline(records, line) && !summary.contains("parameters");) {
    const auto record = ordered_json::parse(line);
    if (record.contains("parameters")) summary["parameters"] = record.at("parameters");
  }
  return summary;
}

/// Median over a variant's runs.
double MedianOfRuns(const Measurement& measurement, size_t variant, const std::string& metric) {
  std::vector<double> values;
  for (const Round& round : measurement.rounds) {
    for (const Sample& run : round.runs.at(variant)) values.push_back(run.at(metric));
  }
  return Median(values);
}

/// The three scans on the same samples, which take turns.
void AddScansOf(const ClaimsWorkplace& workplace, int64_t tokens, int64_t parameters, Table* table,
                ordered_json* rows) {
  // Compared with themselves are the fast ones.
  const char* kinds[] = {"fused", "chunked", "sequential"};
  const int64_t batch = kStepTokens / tokens;
  std::vector<Variant> variants;
  for (const char* kind : kinds) {
    variants.push_back({kind,
                        workplace.Train("--steps " + std::to_string(kWarmupSteps + kTimedSteps) + " --seq " +
                                            std::to_string(tokens) + " --batch " + std::to_string(batch) +
                                            " --ten-scan " + kind,
                                        ClaimData::kLong),
                        ""});
  }
  const MeasurementOptions options{
      .command = {.timeout_s = 3600},
      .metrics = {{kSpeedMetric, "step_time_s"}, "{dir}/run/metrics.jsonl", kWarmupSteps},
      .warmup_rounds = 0,
      .min_rounds = 1,
      .max_rounds = 1,
      .compare_output = false};
  const Measurement measurement = Measure(variants, options, [](const Measurement&) { return true; });
  const double slowest = MedianOfRuns(measurement, 2, kSpeedMetric);
  for (size_t i = variants.size(); i-- > 0;) {
    const double speed = MedianOfRuns(measurement, i, kSpeedMetric),
                 time_s = MedianOfRuns(measurement, i, "step_time_s"),
                 memory = MedianOfRuns(measurement, i, kMemoryMetric);
    table->AddRow({std::to_string(tokens), std::to_string(batch), kinds[i], FormatFixed(1000 * time_s, 0),
                   FormatCount(speed), FormatFixed(speed / slowest, 2) + "x",
                   FormatBytes(static_cast<uint64_t>(memory))});
    rows->push_back({{"tokens", tokens},
                     {"batch", batch},
                     {"scan", kinds[i]},
                     {"warmup_steps", kWarmupSteps},
                     {"timed_steps", kTimedSteps},
                     {"time_ms", 1000 * time_s},
                     {"throughput", speed},
                     {"memory", memory},
                     {"parameters", parameters}});
  }
}

/// \throws the Error of a signal, after which the result has what was measured before it
void AddScans(const ClaimsWorkplace& workplace, int64_t parameters, ClaimsResult* result) {
  Table table({"tokens", "samples", "scan", "ms a step", "tokens/s", "of sequential", "peak memory"});
  ordered_json rows = ordered_json::array();
  const auto measure = [&](int64_t tokens) {
    try {
      AddScansOf(workplace, tokens, parameters, &table, &rows);
    } catch (const Error& error) {
      ThrowIfStopped();
      table.AddRow({std::to_string(tokens), "-", "-", "-", "-", "-", std::string("failed: ") + error.what()});
      rows.push_back({{"tokens", tokens}, {"error", error.what()}});
    }
  };
  const std::exception_ptr stopped = UntilStopped([&] {
    for (int64_t tokens = kShortest; tokens <= kStepTokens; tokens *= 2) measure(tokens);
  });
  result->text += "\n" + FormatCount(static_cast<double>(kStepTokens)) +
                  " tokens a step, whatever their samples; the median of " + std::to_string(kTimedSteps) +
                  " steps after " + std::to_string(kWarmupSteps) + "\n\n" + table.ToString();
  result->json["scans"] = std::move(rows);
  if (stopped != nullptr) std::rethrow_exception(stopped);
}

/// \returns the model's parameters; 0 where the run failed
int64_t AddMemory(const ClaimsWorkplace& workplace, ClaimsResult* result) {
  Table table({"memory", "bytes", "of the peak"});
  try {
    const ordered_json summary = SummaryOf(workplace, "--seq 32768");
    const ordered_json& memory = summary.at("memory_bytes");
    const auto peak = memory.at("peak").get<double>();
    for (const auto& [category, bytes] : memory.items()) {
      table.AddRow({category, FormatBytes(bytes.get<uint64_t>()),
                    FormatFixed(100 * bytes.get<double>() / peak, 1) + " %"});
    }
    const double share = memory.at("total").get<double>() / peak;
    result->json["memory"] = memory;
    result->text += "\nMemory of a step of 32,768 tokens; the categories sum to " +
                    FormatFixed(100 * share, 1) + " % of the peak" +
                    (share < 0.9 || share > 1.1 ? ", NOT within 10 %" : "") + "\n\n" + table.ToString();
    return summary.value("parameters", int64_t{0});
  } catch (const Error& error) {
    ThrowIfStopped();
    result->json["memory"] = {{"error", error.what()}};
    result->text += std::string("\nMemory by category: failed: ") + error.what() + "\n";
    return 0;
  }
}

constexpr uint64_t kNumbers = 100;  ///< of two digits

/// A number, `lag` bytes that tell nothing, and the question which one it was.
std::string RecallPrompt(uint64_t number, int64_t lag) {
  return std::to_string(number / 10) + std::to_string(number % 10) +
         std::string(static_cast<size_t>(lag), '.') + "?";
}

std::string RecallName(int64_t lag) {
  return "recall-" + std::to_string(lag);
}

int64_t RecallSample(int64_t lag) {
  return lag < 1000 ? 1024 : lag < 10000 ? 2048 : 16384;
}

/// Records to train on, every number as a question, and what the answers are.
void WriteRecall(const ClaimsWorkplace& workplace, int64_t lag) {
  const std::string path = workplace.Path(RecallName(lag));
  std::ofstream prompts(path + ".prompts.jsonl"), gold(path + ".gold.jsonl");
  for (uint64_t number = 0; number < kNumbers; ++number) {
    const ordered_json question = {{"prompt", RecallPrompt(number, lag)}};
    ordered_json answer = question;
    answer["gold"] = number;
    prompts << question.dump() << '\n';
    gold << answer.dump() << '\n';
  }
  if (!prompts.flush() || !gold.flush()) throw Error(ErrorCode::kIo, path, "cannot be written");
  const int64_t records = std::max<int64_t>(200, 4'000'000 / (lag + 8));
  const Rng rng(static_cast<uint64_t>(lag), "claims recall");
  workplace.MakeShards(
      RecallName(lag), static_cast<int>(RecallSample(lag)),
      [&](std::ostream* file) {
        for (int64_t i = 0; i < records; ++i) {
          const uint64_t number = rng.Bits(static_cast<uint64_t>(i)) % kNumbers;
          const std::string prompt = RecallPrompt(number, lag);
          const ordered_json record = {{"prompt", prompt}, {"response", prompt.substr(0, 2)}};
          *file << record.dump() << '\n';
        }
      },
      "--records sft --template qa-space ");
}

/// What `evaluate --metric answers` says of a model that was trained for so long.
ordered_json Recall(const ClaimsWorkplace& workplace, int64_t lag, const std::string& init,
                    double training_s) {
  const TemporaryFolder folder;
  const std::string run = folder.path() + "/run", samples = folder.path() + "/samples.jsonl",
                    data = workplace.Path(RecallName(lag));
  workplace.Run(
      workplace.Tool("train --quiet --data ") + data + ".shards --model " + workplace.MakeLongModel(init) +
          " --seq " + std::to_string(RecallSample(lag)) + " --batch " +
          std::to_string(kStepTokens / 2 / RecallSample(lag)) +
          " --steps 100000 --schedule constant --warmup 10 --lr 3e-3 --save-every 0 --max-minutes " +
          FormatFixed(training_s / 60, 3) + " --out " + run,
      10 * training_s + 600);
  workplace.Run(workplace.Tool("generate --quiet --checkpoint ") + run + " --template qa-space --input " +
                    data + ".prompts.jsonl --batch 8 --max-tokens 2 --temperature 0 > " + samples,
                600);
  return ordered_json::parse(workplace.Run(workplace.Tool("evaluate --quiet --metric answers --samples ") +
                                               samples + " --gold " + data + ".gold.jsonl",
                                           60));
}

/// \throws likewise
void AddRecall(const ClaimsWorkplace& workplace, double training_s, ClaimsResult* result) {
  Table table({"lag", "start", "recalled", "95 % interval"});
  ordered_json rows = ordered_json::array();
  const auto percent = [](const ordered_json& share) {
    return FormatFixed(100 * share.get<double>(), 0) + " %";
  };
  const auto measure = [&](int64_t lag, const char* init) {
    try {
      if (rows.empty() || rows.back().at("lag").get<int64_t>() != lag) WriteRecall(workplace, lag);
      const ordered_json score = Recall(workplace, lag, init, training_s);
      const ordered_json& interval = score.at("exact_accuracy_interval");
      table.AddRow({std::to_string(lag), init, percent(score.at("exact_accuracy")),
                    percent(interval.at(0)) + " to " + percent(interval.at(1))});
      rows.push_back({{"lag", lag},
                      {"init", init},
                      {"accuracy", score.at("exact_accuracy")},
                      {"interval", interval},
                      {"training_s", training_s}});
    } catch (const Error& error) {
      ThrowIfStopped();
      table.AddRow({std::to_string(lag), init, "-", std::string("failed: ") + error.what()});
      rows.push_back({{"lag", lag}, {"init", init}, {"error", error.what()}});
    }
  };
  const std::exception_ptr stopped = UntilStopped([&] {
    for (const int64_t lag : {100, 1000, 10000}) {
      for (const char* init : {"compat", "lru"}) measure(lag, init);
    }
  });
  result->text += "\nTwo digits that are asked for after that many bytes, by " + FormatFixed(training_s, 0) +
                  " s of training on it; a guess is right in 1 % of the questions\n\n" + table.ToString();
  result->json["recall"] = std::move(rows);
  if (stopped != nullptr) std::rethrow_exception(stopped);
}

/// What each line of the guide says, and what becomes of it here.
void AddGuide(const ClaimsWorkplace& workplace, ClaimsResult* result) {
  const Claim profile = {"E25", "", kSpeedMetric, 1, "", "--profile 1", false};
  Table table({"guide", "it says", "here"});
  ordered_json rows = ordered_json::array();
  for (const GuideLine& line : TenGuide(AbsentFlags(profile, workplace.help()).empty())) {
    table.AddRow({line.line, line.text, line.here});
    rows.push_back({{"line", line.line}, {"text", line.text}, {"here", line.here}});
  }
  result->text += "\n" + table.ToString();
  result->json["guide"] = std::move(rows);
}

}  // namespace

void AddTenTables(const ClaimsWorkplace& workplace, double budget_s, ClaimsResult* result) {
  const int64_t parameters = AddMemory(workplace, result);
  AddScans(workplace, parameters, result);
  AddRecall(workplace, 3 * budget_s, result);
  AddGuide(workplace, result);
}

}  // namespace trainwright

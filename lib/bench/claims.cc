#include "lib/bench/claims.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "lib/base/error.h"
#include "lib/base/host.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/bench/comparison.h"
#include "lib/bench/measurement.h"
#include "lib/bench/run_figures.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

constexpr char kMemory[] = "max_memory_bytes";
constexpr char kSpeed[] = "tokens_per_s";
constexpr char kWholeRun[] = "run_tokens_per_s";
// Most steps wait for nothing and some for a whole window: only the mean tells.
constexpr char kDataWait[] = "mean:data_wait_s";
constexpr char kForward[] = "forward_s";
constexpr int64_t kWarmingSteps = 2;

constexpr Claim kClaims[] = {
    {"grit", "4 workers: loading 20-40 % faster", kDataWait, 1 / 1.2,
     "--objective grit --batch 32 --query-max-len 32 --passage-max-len 32 --workers 0",
     "--objective grit --batch 32 --query-max-len 32 --passage-max-len 32 --workers 4", false,
     ClaimData::kContrastive},
    {"grit", "compilation: forward 15-25 % faster", kForward, 1 / 1.15, "--objective grit",
     "--objective grit --compile graph", false, ClaimData::kContrastive},
    {"grit", "checkpointing: memory -10-20 %", kMemory, 0.9, "--objective grit",
     "--objective grit --checkpoint-activations full", false, ClaimData::kContrastive},
    {"grit", "everything: 25-50 % faster", kWholeRun, 1.25, "--objective grit",
     "--objective grit --preset grit-fast", false, ClaimData::kContrastive},
    {"refocused", "mixed precision: memory -50 %", kMemory, 0.5, "--mixed-precision no",
     "--mixed-precision bf16", false},
    {"refocused", "mixed precision: 2x throughput", kSpeed, 2, "--mixed-precision no",
     "--mixed-precision bf16", false},
    {"refocused", "batch 1 -> 4: utilisation 2-4x", kSpeed, 2, "--batch 1", "--batch 4", false},
    {"refocused", "4 workers: loading 20-50 % faster", kDataWait, 1 / 1.2, "--workers 0", "--workers 4",
     false},
    {"refocused", "cheap loop: Python overhead -5-15 %", kWholeRun, 1.05, "--log-every 1", "--log-every 25",
     false},
    {"refocused", "background upload: checkpoint blocks 90 % less", kSpeed, 1.5,
     "--save-every 2 --async-save off", "--save-every 2 --async-save on", false},
    {"rft", "fp16/bf16: 2-3x faster", kSpeed, 2, "--mixed-precision no", "--mixed-precision bf16", false},
    {"rft", "fp16/bf16: memory -40 %", kMemory, 0.6, "--mixed-precision no", "--mixed-precision bf16", false},
    {"rft", "checkpointing off: 20-30 % faster", kSpeed, 1.2, "--checkpoint-activations full",
     "--checkpoint-activations no", false},
    {"rft", "4 workers, pinned, prefetch 2: 1.5-2x", kSpeed, 1.5, "--workers 0 --pin off",
     "--workers 4 --pin on --prefetch 2", false},
    {"rft", "compilation: 1.2-1.5x", kSpeed, 1.2, "", "--compile graph", false},
    {"rft", "TF32: 1.2-1.5x", kSpeed, 1.2, "--tf32 off", "--tf32 on", true},
    {"rft", "all together: 3-5x a epoch", kSpeed, 3, "--preset rft-baseline", "--preset rft-fast", false},
    {"lora", "low-memory loading: RAM -20 %", kMemory, 0.8, "--lora 16 --mmap off", "--lora 16 --mmap on",
     false},
    {"lora", "checkpointing: memory -20 %", kMemory, 0.8, "--lora 16",
     "--lora 16 --checkpoint-activations full", false},
    {"lora", "pinned memory: +5 %", kSpeed, 1.05, "--pin off", "--pin on", true},
    {"lora", "cleanup every 10 steps: 5 % faster", kSpeed, 1.05, "--empty-cache-every 1",
     "--empty-cache-every 10", true},
    {"lora", "batch 4 x 2 instead of 2 x 4: epoch 80 % faster", kSpeed, 1.8, "--batch 2 --accum 4",
     "--batch 4 --accum 2", false},
    {"lora", "fewer evaluations, saves and logs: 20 % faster", kWholeRun, 1.2,
     "--save-every 50 --log-every 2 --keep 2", "--save-every 100 --log-every 5 --keep 1", false},
    {"lora", "flash attention: +30-40 %", kSpeed, 1.3, "--attn-backend math", "--attn-backend flash", true},
    {"lora", "compilation: +15-20 %", kSpeed, 1.15, "", "--compile graph", false},
    {"lora", "fp16 before bf16 GPUs: +10 %", kSpeed, 1.1, "--mixed-precision no", "--mixed-precision fp16",
     true},
    {"lora", "gradients off-loaded: memory -50 %", kMemory, 0.5, "", "--offload gradients", true},
    {"lora", "ZeRO-2: memory -30 %", kMemory, 0.7, "", "--zero 2", true},
    {"ten", "mixed precision fp16: 2x", kSpeed, 2, "--mixed-precision no", "--mixed-precision fp16", true},
    {"ten", "mixed precision: memory -50 %", kMemory, 0.5, "--mixed-precision no", "--mixed-precision bf16",
     false},
    {"ten", "4 workers: loading 3-5x", kDataWait, 1.0 / 3, "--workers 0", "--workers 4 --prefetch 4", false},
    {"ten", "TF32: 2-3x", kSpeed, 2, "--tf32 off", "--tf32 on", true},
    {"ten", "chunked instead of stepwise scan: 17,000 -> 370 ms a batch", kSpeed, 45.9,
     "--preset ten-small-32k --ten-scan stepwise", "--preset ten-small-32k --ten-scan chunked", false},
    {"ten", "fused kernel: 370 -> 200-250 ms a batch", kSpeed, 1.48,
     "--preset ten-small-32k --ten-scan chunked", "--preset ten-small-32k --ten-scan fused", true},
    {"ten", "4 GPUs: 3.8x", kSpeed, 3.8, "--nproc 1", "--nproc 4", true},
};

/// The suite of the refocused guide: single runs, reported as they are.
struct SuiteCase {
  const char* group;
  const char* flags;
};
constexpr SuiteCase kRefocusedSuite[] = {
    {"loader", "--workers 0 --pin off --prefetch 2"},
    {"loader", "--workers 2 --pin on --prefetch 2"},
    {"loader", "--workers 4 --pin on --prefetch 4"},
    {"precision", "--mixed-precision no"},
    {"precision", "--mixed-precision fp16"},
    {"precision", "--mixed-precision bf16"},
    {"accumulation", "--mixed-precision bf16 --batch 4 --accum 1"},
    {"accumulation", "--mixed-precision bf16 --batch 2 --accum 2"},
    {"accumulation", "--mixed-precision bf16 --batch 1 --accum 4"},
    {"memory", "--mixed-precision no --batch 1 --accum 1"},
    {"memory", "--mixed-precision no --batch 2 --accum 2"},
    {"memory", "--mixed-precision bf16 --batch 2 --accum 2"},
    {"memory", "--mixed-precision bf16 --batch 4 --accum 4"},
};

constexpr char kNotTestable[] = "not testable here";

struct Answer {
  std::string measured = "-", interval = "-", verdict, note;
  nlohmann::ordered_json comparison = nullptr;
  std::vector<RunFigures> figures = {};  ///< of before and after; empty: not measured
};

Answer MeasureClaim(const Claim& claim, const ClaimsWorkplace& workplace, double budget_s, int processors) {
  MeasurementOptions options;
  options.command.timeout_s = 600;
  options.compare_output = false;
  options.min_rounds = 3;
  options.budget_s = budget_s;
  const std::string metric = claim.metric;
  const bool whole_run = metric == kWholeRun;
  options.metrics = {.names = MetricsOfFigures(),
                     .file = "{dir}/run/metrics.jsonl",
                     .skip = kWarmingSteps,
                     .may_lack = true};
  if (metric != kMemory && !whole_run) options.metrics.names.push_back(metric);
  const std::string decisive = whole_run ? "wall_s" : metric;
  const Measurement measurement = Measure({{"before", workplace.Train(claim.before, claim.data), ""},
                                           {"after", workplace.Train(claim.after, claim.data), ""}},
                                          options, [](const Measurement&) { return false; });
  const auto comparison = Compare(measurement, 0, 1, decisive, {});
  Answer answer;
  for (const size_t variant : {size_t{0}, size_t{1}}) {
    answer.figures.push_back(FiguresOf(measurement, variant, processors));
  }
  if (!comparison) {
    answer.verdict = kNotTestable;
    answer.note = "not every run tells a " + decisive + " above 0";
    return answer;
  }
  // Of a whole run the time stands for its tokens, the same on both sides.
  double ratio = comparison->ratio(), low = comparison->ratio_low(), high = comparison->ratio_high();
  if (whole_run) {
    ratio = 1 / ratio;
    std::swap(low, high);
    low = 1 / low;
    high = 1 / high;
  }
  answer.measured = FormatFixed(ratio, 2) + "x";
  answer.interval = FormatFixed(low, 2) + "-" + FormatFixed(high, 2);
  const bool met = HigherIsBetter(metric) ? low >= claim.ratio : high <= claim.ratio;
  answer.verdict = met ? "met" : "not met";
  answer.comparison = ToJson(*comparison);
  return answer;
}

Answer AnswerTo(const Claim& claim, const ClaimsWorkplace& workplace, double budget_s, bool gpu,
                int processors) {
  Answer answer;
  if (const auto absent = AbsentFlags(claim, workplace.help()); !absent.empty()) {
    answer.verdict = "not met";
    for (const std::string& flag : absent) {
      answer.note += (answer.note.empty() ? "feature absent: " : ", ") + flag;
    }
    return answer;
  }
  for (const char* flags : {claim.before, claim.after}) {
    if (workplace.Takes(flags)) continue;
    answer.verdict = "not met";
    answer.note = std::string("feature absent: ") + flags;
    return answer;
  }
  if (claim.needs_gpu && !gpu) {
    answer.verdict = kNotTestable;
    answer.note = "needs a GPU";
    return answer;
  }
  try {
    return MeasureClaim(claim, workplace, budget_s, processors);
  } catch (const Error& error) {
    ThrowIfStopped();
    answer.verdict = "not met";
    answer.note = error.what();
    return answer;
  }
}

/// The rows of both variants of a claim, as tables and JSON have them.
void AddVariants(const Claim& claim, const Answer& answer, Table* table, nlohmann::ordered_json* rows) {
  const auto told = [](const std::optional<double>& value, const auto& format) {
    return value ? format(*value) : std::string("-");
  };
  for (size_t i = 0; i < answer.figures.size(); ++i) {
    const RunFigures& figures = answer.figures[i];
    const char* name = i == 0 ? "before" : "after";
    const char* flags = i == 0 ? claim.before : claim.after;
    table->AddRow({claim.text, name, told(figures.samples_per_s, FormatCount),
                   told(figures.max_memory_bytes,
                        [](double bytes) { return FormatBytes(static_cast<uint64_t>(bytes)); }),
                   told(figures.epoch_time_s, FormatDuration),
                   told(figures.utilization, [](double share) { return FormatFixed(100 * share, 0) + " %"; }),
                   flags});
    nlohmann::ordered_json row = {{"claim", claim.text}, {"variant", name}, {"flags", flags}};
    row.update(ToJson(figures));
    rows->push_back(std::move(row));
  }
}

/// The table and JSON of the refocused suite; a failing case is reported and the rest goes on.
void RunSuite(const ClaimsWorkplace& workplace, ClaimsResult* result) {
  Table table({"suite", "flags", "tokens/s", "s a step", "peak memory", "samples a step"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const MeasurementOptions options{
      .command = {.timeout_s = 600},
      .metrics = {{kSpeed, "step_time_s", "effective_batch"}, "{dir}/run/metrics.jsonl", kWarmingSteps},
      .warmup_rounds = 0,
      .min_rounds = 2,
      .max_rounds = 2,
      .compare_output = false};
  for (const SuiteCase& suite_case : kRefocusedSuite) {
    try {
      const Measurement measurement = Measure({{"case", workplace.Train(suite_case.flags), ""}}, options,
                                              [](const Measurement&) { return true; });
      const auto median = [&](const std::string& metric) {
        std::vector<double> values;
        for (const Round& round : measurement.rounds) {
          for (const auto& runs : round.runs) {
            for (const Sample& run : runs) values.push_back(run.at(metric));
          }
        }
        return Median(values);
      };
      table.AddRow({suite_case.group, suite_case.flags, FormatCount(median(kSpeed)),
                    FormatFixed(median("step_time_s"), 4),
                    FormatBytes(static_cast<uint64_t>(median(kMemory))),
                    FormatFixed(median("effective_batch"), 0)});
      rows.push_back({{"group", suite_case.group},
                      {"flags", suite_case.flags},
                      {"tokens_per_s", median(kSpeed)},
                      {"step_time_s", median("step_time_s")},
                      {"max_memory_bytes", median(kMemory)},
                      {"effective_batch", median("effective_batch")}});
    } catch (const Error& error) {
      ThrowIfStopped();
      table.AddRow(
          {suite_case.group, suite_case.flags, "-", "-", "-", std::string("failed: ") + error.what()});
      rows.push_back({{"group", suite_case.group}, {"flags", suite_case.flags}, {"error", error.what()}});
    }
  }
  result->text += "\n" + table.ToString();
  result->json["suite"] = rows;
}

}  // namespace

std::vector<Claim> ClaimsOf(const std::string& system) {
  std::vector<Claim> claims;
  for (const Claim& claim : kClaims) {
    if (system == claim.system) claims.push_back(claim);
  }
  return claims;
}

std::vector<std::string> AbsentFlags(const Claim& claim, const std::string& help) {
  std::vector<std::string> absent;
  std::istringstream words(std::string(claim.before) + " " + claim.after);
  for (std::string word; words >> word;) {
    if (!word.starts_with("--") || std::find(absent.begin(), absent.end(), word) != absent.end()) continue;
    bool listed = false;
    for (size_t at = help.find(word); at != std::string::npos && !listed; at = help.find(word, at + 1)) {
      const char next = at + word.size() < help.size() ? help[at + word.size()] : ' ';
      listed = next != '-' && std::isalnum(static_cast<unsigned char>(next)) == 0;
    }
    if (!listed) absent.push_back(word);
  }
  return absent;
}

ClaimsResult CheckClaims(const std::string& system, double budget_s, ProgressMode progress_mode) {
  const std::vector<Claim> claims = ClaimsOf(system);
  TRAINWRIGHT_CHECK(!claims.empty());
  const HostFacts host = ReadHostFacts();
  const bool gpu = HasGpu();
  const std::string hardware =
      host.cpu + ", " + std::to_string(host.processors) + " processors" + (gpu ? ", a GPU" : ", no GPU");
  ClaimsResult result;
  const bool contrastive = std::any_of(
      claims.begin(), claims.end(), [](const Claim& claim) { return claim.data == ClaimData::kContrastive; });
  const ClaimsWorkplace workplace(contrastive);
  Progress progress(progress_mode, "claims", claims.size(), "claims", /*plain_lines=*/true);
  const std::string column = std::to_string(host.processors) + (gpu ? " CPUs, GPU" : " CPUs");
  Table table({"claim", "claimed", "measured", "95 % interval", "hardware", "verdict", ""});
  Table variants(
      {"claim", "variant", "samples/s", "peak memory", "an epoch", gpu ? "GPU busy" : "CPUs busy", "flags"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), variant_rows = rows;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    progress.Update(i);
    const Answer answer = AnswerTo(claim, workplace, budget_s, gpu, std::max(1, host.processors));
    AddVariants(claim, answer, &variants, &variant_rows);
    const bool more_is_better = HigherIsBetter(claim.metric);
    table.AddRow({claim.text, std::string(more_is_better ? ">= " : "<= ") + FormatFixed(claim.ratio, 2) + "x",
                  answer.measured, answer.interval, column, answer.verdict, answer.note});
    rows.push_back({{"claim", claim.text},
                    {"metric", claim.metric},
                    {"claimed_ratio", claim.ratio},
                    {"before", claim.before},
                    {"after", claim.after},
                    {"verdict", answer.verdict},
                    {"note", answer.note},
                    {"hardware", hardware},
                    {"comparison", answer.comparison}});
    if (answer.verdict != "met") result.exit_status = static_cast<int>(ErrorCode::kNo);
  }
  result.json = {{"schema", "trainwright.claims/1"}, {"system", system}, {"hardware", hardware},
                 {"load_1min", host.load_1min},      {"claims", rows},   {"variants", variant_rows}};
  result.text = hardware + "; train --model llama-1m, 12 steps of " +
                (contrastive ? "16 queries" : "2 samples of 256 tokens") + "\n\n" + table.ToString();
  if (!variant_rows.empty()) result.text += "\n" + variants.ToString();
  if (system == "refocused") RunSuite(workplace, &result);
  return result;
}

}  // namespace trainwright

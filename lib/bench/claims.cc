#include "lib/bench/claims.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>

#include "lib/base/error.h"
#include "lib/base/host.h"
#include "lib/base/rng.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/bench/comparison.h"
#include "lib/bench/measurement.h"
#include "lib/bench/temporary_folder.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kMemory[] = "max_memory_bytes";
constexpr char kSpeed[] = "tokens_per_s";
constexpr char kWholeRun[] = "run_tokens_per_s";
constexpr char kDataWait[] = "data_wait_s";
constexpr char kForward[] = "forward_s";
constexpr int64_t kWarmingSteps = 2;

constexpr Claim kClaims[] = {
    {"grit", "4 workers: loading 20-40 % faster", kDataWait, 1 / 1.2, "--objective grit --workers 0",
     "--objective grit --workers 4", false, ClaimData::kContrastive},
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

/// Made-up words.
class Words {
 public:
  explicit Words(const char* stream) : rng_(1, stream) {}
  /// \returns so many, with a space behind each
  std::string Take(uint64_t count) {
    std::string text;
    for (uint64_t word = 0; word < count; ++word) {
      const uint64_t letters = 2 + rng_.Bits(counter_++) % 7;
      for (uint64_t i = 0; i < letters; ++i) text += static_cast<char>('a' + rng_.Bits(counter_++) % 26);
      text += ' ';
    }
    return text;
  }
  /// From `least` on, the fewer the more often.
  uint64_t Length(uint64_t least, uint64_t most) {
    const double share = rng_.Uniform(counter_++);
    return least + static_cast<uint64_t>(share * share * static_cast<double>(most - least));
  }

 private:
  Rng rng_;
  uint64_t counter_ = 0;
};

/// A document a line.
void WriteText(std::ostream* file) {
  Words words("claims text");
  for (int line = 0; line < 400; ++line) *file << words.Take(120) << '\n';
}

/// Queries with one text each that they shall be close to and far from, of unlike lengths.
void WriteContrastive(std::ostream* file) {
  Words words("claims records");
  const auto text = [&](uint64_t least, uint64_t most) { return words.Take(words.Length(least, most)); };
  for (int line = 0; line < 1000; ++line) {
    nlohmann::ordered_json record;
    record["query"] = text(2, 12);
    record["pos"].push_back(text(4, 40));
    record["neg"].push_back(text(4, 40));
    *file << record.dump() << '\n';
  }
}

/// The tools, and a folder with the data of the runs.
class Workplace {
 public:
  /// \param contrastive whether some runs train on such records
  explicit Workplace(bool contrastive) {
    std::error_code unknown;
    const fs::path self = fs::read_symlink("/proc/self/exe", unknown);
    tools_ = !unknown && fs::exists(self.parent_path() / "train") ? self.parent_path().string() + "/" : "";
    MakeShards("text", &WriteText, "");
    if (contrastive) MakeShards("contrastive", &WriteContrastive, "--records contrastive --template grit ");
    const CommandRun helped = RunCommand(tools_ + "train --help", {.timeout_s = 60, .keep_output = true});
    if (helped.exit_status != 0) Refuse("train --help", helped);
    help_ = helped.output;
  }
  const std::string& help() const { return help_; }
  /// Whether train knows the flags and their values.
  bool Takes(const std::string& flags) const {
    return RunCommand(tools_ + "train " + flags + " --print-config", {.timeout_s = 60}).exit_status == 0;
  }
  /// The training run with some flags. Those given replace the ones here: the last of several counts.
  std::string Train(const std::string& flags, ClaimData data = ClaimData::kText) const {
    const bool text = data == ClaimData::kText;
    return tools_ + "train --quiet --data " + folder_.path() +
           (text ? "/text.shards --seq 256 --batch 2" : "/contrastive.shards --batch 16") +
           " --model llama-1m --steps 12 --lr 1e-4 --save-every 0 --log-every 1 --out {dir}/run " + flags;
  }

 private:
  void MakeShards(const std::string& name, void (*write)(std::ostream*), const std::string& flags) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream file(path);
    write(&file);
    if (!file.flush()) throw Error(ErrorCode::kIo, path, "cannot be written");
    const CommandRun made = RunCommand(tools_ + "pretokenize --quiet " + flags + path + " | " + tools_ +
                                           "pack --quiet --chunk 1024 -o " + path + ".shards/",
                                       {.timeout_s = 60});
    if (made.exit_status != 0) Refuse("pretokenize | pack", made);
  }
  [[noreturn]] static void Refuse(const std::string& what, const CommandRun& run) {
    throw Error(ErrorCode::kBadInput, what, "does not run here: " + run.error_tail, "",
                "build and install all tools of the suite; bench looks beside itself and in PATH");
  }
  TemporaryFolder folder_;
  std::string tools_, help_;
};

bool HasGpu() {
  for (int i = 0; i < 16; ++i) {
    if (access(("/dev/nvidia" + std::to_string(i)).c_str(), F_OK) == 0) return true;
  }
  return false;
}

constexpr char kNotTestable[] = "not testable here";

struct Answer {
  std::string measured = "-", interval = "-", verdict, note;
  nlohmann::ordered_json comparison = nullptr;
};

Answer MeasureClaim(const Claim& claim, const Workplace& workplace, double budget_s) {
  MeasurementOptions options;
  options.command.timeout_s = 600;
  options.compare_output = false;
  options.min_rounds = 3;
  options.budget_s = budget_s;
  const std::string metric = claim.metric;
  const bool whole_run = metric == kWholeRun;
  if (metric != kMemory && !whole_run) {
    options.metrics = {
        .names = {metric}, .file = "{dir}/run/metrics.jsonl", .skip = kWarmingSteps, .may_lack = true};
  }
  const std::string decisive = whole_run ? "wall_s" : metric;
  const Measurement measurement = Measure({{"before", workplace.Train(claim.before, claim.data), ""},
                                           {"after", workplace.Train(claim.after, claim.data), ""}},
                                          options, [](const Measurement&) { return false; });
  const auto comparison = Compare(measurement, 0, 1, decisive, {});
  Answer answer;
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

Answer AnswerTo(const Claim& claim, const Workplace& workplace, double budget_s, bool gpu) {
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
    return MeasureClaim(claim, workplace, budget_s);
  } catch (const Error& error) {
    ThrowIfStopped();
    answer.verdict = "not met";
    answer.note = error.what();
    return answer;
  }
}

/// The table and JSON of the refocused suite; a failing case is reported and the rest goes on.
void RunSuite(const Workplace& workplace, ClaimsResult* result) {
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
  const Workplace workplace(contrastive);
  Progress progress(progress_mode, "claims", claims.size(), "claims", /*plain_lines=*/true);
  const std::string column = std::to_string(host.processors) + (gpu ? " CPUs, GPU" : " CPUs");
  Table table({"claim", "claimed", "measured", "95 % interval", "hardware", "verdict", ""});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    progress.Update(i);
    const Answer answer = AnswerTo(claim, workplace, budget_s, gpu);
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
  result.json = {{"schema", "trainwright.claims/1"},
                 {"system", system},
                 {"hardware", hardware},
                 {"load_1min", host.load_1min},
                 {"claims", rows}};
  result.text = hardware + "; train --model llama-1m, 12 steps of " +
                (contrastive ? "16 queries" : "2 samples of 256 tokens") + "\n\n" + table.ToString();
  if (system == "refocused") RunSuite(workplace, &result);
  return result;
}

}  // namespace trainwright

#include "lib/bench/claims.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/host.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/bench/claim_runs.h"
#include "lib/bench/comparison.h"
#include "lib/bench/guide_models.h"
#include "lib/bench/measurement.h"
#include "lib/bench/run_figures.h"
#include "lib/bench/statistics.h"
#include "lib/bench/system_claims.h"
#include "lib/bench/time_shares.h"
#include "lib/bench/until_stopped.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

constexpr int64_t kWarmingSteps = 2;

constexpr char kMet[] = "met", kNotMet[] = "not met", kUndecided[] = "undecided",
               kNotTestable[] = "not testable here";

struct Answer {
  std::string measured = "-", interval = "-", verdict, note;
  nlohmann::ordered_json comparison = nullptr;
  std::vector<RunFigures> figures = {};  ///< of before and after; empty: not measured
};

/// Of an absolute claim: met where all runs are as good as claimed, not met where none is.
void JudgeAlone(const Claim& claim, const Measurement& measurement, Answer* answer) {
  std::vector<double> values;
  for (const Round& round : measurement.rounds) {
    for (const auto& runs : round.runs) {
      for (const Sample& run : runs) {
        if (const auto found = run.find(claim.metric); found != run.end()) values.push_back(found->second);
      }
    }
  }
  if (values.empty()) {
    answer->verdict = kNotTestable;
    answer->note = std::string("no run reports a ") + claim.metric;
    return;
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  answer->verdict = VerdictOfClaim(HigherIsBetter(claim.metric), *low, *high, claim.ratio);
  answer->interval = FormatCount(*low) + "-" + FormatCount(*high);
  answer->measured = FormatCount(Median(values));
}

MeasurementOptions OptionsAt(ClaimScale scale) {
  MeasurementOptions options;
  options.command.timeout_s = scale == ClaimScale::kGuide ? 4 * 3600 : 600;
  options.compare_output = false;
  options.min_rounds = 3;
  // Such a run is long enough to warm up by itself.
  if (scale == ClaimScale::kGuide) options.warmup_rounds = 0;
  return options;
}

/// \param metrics that decide the claims about these commands
Measurement RunCommands(const Claim& claim, const std::vector<std::string>& metrics,
                        const ClaimsWorkplace& workplace, ClaimScale scale, double budget_s) {
  MeasurementOptions options = OptionsAt(scale);
  options.budget_s = budget_s;
  options.metrics = {.names = MetricsOfFigures(),
                     .file = "{dir}/run/metrics.jsonl",
                     .skip = kWarmingSteps,
                     .may_lack = true};
  for (const std::string& metric : metrics) {
    if (metric == kMemoryMetric || metric == kWholeRunMetric) continue;
    options.metrics.names.push_back(ReportedFor(metric));
  }
  std::vector<Variant> variants;
  if (!claim.absolute) {
    variants.push_back({"before", workplace.Train(claim.before, claim.data, claim.guide), ""});
  }
  variants.push_back({"after", workplace.Train(claim.after, claim.data, claim.guide), ""});
  Measurement measurement = Measure(variants, options, [](const Measurement&) { return false; });
  for (const std::string& metric : metrics) AddShare(metric, &measurement);
  return measurement;
}

Answer Judge(const Claim& claim, const std::string& metric, const Measurement& measurement, int processors) {
  const bool whole_run = metric == kWholeRunMetric;
  const std::string decisive = whole_run ? "wall_s" : metric;
  Answer answer;
  const size_t variants = claim.absolute ? 1 : 2;
  for (size_t variant = 0; variant < variants; ++variant) {
    answer.figures.push_back(FiguresOf(measurement, variant, processors));
  }
  if (claim.absolute) {
    JudgeAlone(claim, measurement, &answer);
    return answer;
  }
  const auto comparison = Compare(measurement, 0, 1, decisive, {});
  if (!comparison) {
    answer.verdict = kNotTestable;
    answer.note = "not every run reports a " + decisive + " above 0";
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
  answer.verdict = VerdictOfClaim(HigherIsBetter(metric), low, high, claim.ratio);
  answer.comparison = ToJson(*comparison);
  return answer;
}

Answer AnswerTo(const Claim& claim, const ClaimsWorkplace& workplace, ClaimRuns& runs, bool gpu,
                int processors) {
  Answer answer;
  if (const Unmeasured why = WhyUnmeasured(claim, workplace.help(), gpu); !why.verdict.empty()) {
    answer.verdict = why.verdict;
    answer.note = why.note;
    return answer;
  }
  for (const char* flags : {claim.before, claim.after}) {
    if (workplace.Takes(flags, claim.data)) continue;
    answer.verdict = kNotMet;
    answer.note = std::string("feature absent: ") + flags;
    return answer;
  }
  try {
    return Judge(claim, DecisiveMetric(claim, gpu), runs.Of(claim), processors);
  } catch (const Error& error) {
    ThrowIfStopped();
    answer.verdict = kNotMet;
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
    const bool before = i == 0 && !claim.absolute;
    const char* name = before ? "before" : "after";
    const char* flags = before ? claim.before : claim.after;
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

/// The table and JSON of single runs; a failing one is reported and the rest goes on.
/// \throws the Error of a signal, after which both have the runs before it
void RunSuite(const std::vector<SuiteCase>& suite, const ClaimsWorkplace& workplace, ClaimScale scale,
              ClaimsResult* result) {
  Table table({"suite", "flags", "tokens/s", "s a step", "peak memory", "samples a step"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const int64_t rounds = scale == ClaimScale::kGuide ? 1 : 2;
  const MeasurementOptions options{
      .command = OptionsAt(scale).command,
      .metrics = {{kSpeedMetric, "step_time_s", "effective_batch"}, "{dir}/run/metrics.jsonl", kWarmingSteps},
      .warmup_rounds = 0,
      .min_rounds = rounds,
      .max_rounds = rounds,
      .compare_output = false};
  const auto measure = [&](const SuiteCase& suite_case) {
    try {
      const Measurement measurement =
          Measure({{"case", workplace.Train(suite_case.flags, suite_case.data, suite_case.guide), ""}},
                  options, [](const Measurement&) { return true; });
      const auto median = [&](const std::string& metric) {
        std::vector<double> values;
        for (const Round& round : measurement.rounds) {
          for (const auto& runs : round.runs) {
            for (const Sample& run : runs) values.push_back(run.at(metric));
          }
        }
        return Median(values);
      };
      table.AddRow({suite_case.group, suite_case.flags, FormatCount(median(kSpeedMetric)),
                    FormatFixed(median("step_time_s"), 4),
                    FormatBytes(static_cast<uint64_t>(median(kMemoryMetric))),
                    FormatFixed(median("effective_batch"), 0)});
      rows.push_back({{"group", suite_case.group},
                      {"flags", suite_case.flags},
                      {"tokens_per_s", median(kSpeedMetric)},
                      {"step_time_s", median("step_time_s")},
                      {"max_memory_bytes", median(kMemoryMetric)},
                      {"effective_batch", median("effective_batch")}});
    } catch (const Error& error) {
      ThrowIfStopped();
      table.AddRow(
          {suite_case.group, suite_case.flags, "-", "-", "-", std::string("failed: ") + error.what()});
      rows.push_back({{"group", suite_case.group}, {"flags", suite_case.flags}, {"error", error.what()}});
    }
  };
  const std::exception_ptr stopped =
      UntilStopped([&] { std::for_each(suite.begin(), suite.end(), measure); });
  result->text += "\n" + table.ToString();
  result->json["suite"] = rows;
  if (stopped != nullptr) std::rethrow_exception(stopped);
}

/// What the runs of a table train.
std::string DescribeRuns(bool contrastive, bool long_document, ClaimScale scale) {
  if (scale == ClaimScale::kGuide) {
    return "train with the models, batches and lengths that the guide names, " + std::to_string(kGuideSteps) +
           " steps unless the flags say otherwise";
  }
  if (long_document) return "train with a recurrent model of 0.7M parameters, 4 steps of 8,192 tokens";
  if (contrastive) return "train --model llama-1m, 12 steps of 16 queries";
  return "train --model llama-1m, 12 steps of 2 samples of 256 tokens";
}

SystemClaims ClaimsOfSystem(const std::string& system) {
  if (system == "grit") return GritClaims();
  if (system == "refocused") return RefocusedClaims();
  if (system == "rft") return RftClaims();
  if (system == "lora") return LoraClaims();
  if (system == "ten") return TenClaims();
  return {};
}

bool IsAboutOneOf(const Contradiction& contradiction, const std::vector<Claim>& claims) {
  const std::string_view about = contradiction.about;
  return !about.empty() && std::any_of(claims.begin(), claims.end(), [about](const Claim& claim) {
    return std::string_view(claim.text).find(about) != std::string_view::npos;
  });
}

/// The table and JSON of what speaks against the guide.
void AddContradictions(const std::vector<Contradiction>& contradictions, ClaimsResult* result) {
  Table table({"of the guide", "contradiction"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Contradiction& contradiction : contradictions) {
    const std::string about = contradiction.about;
    table.AddRow({about.empty() ? "as a whole" : about, contradiction.text});
    rows.push_back({{"about", about}, {"text", contradiction.text}});
  }
  if (!rows.empty()) result->text += "\n" + table.ToString();
  result->json["contradictions"] = std::move(rows);
}

/// The claims whose text holds `only`, with what contradicts them, and nothing else of the system.
/// \throws Error{kUsage} where there are none
SystemClaims Selected(SystemClaims all, const std::string& only) {
  TRAINWRIGHT_CHECK(!all.claims.empty());
  if (only.empty()) return all;
  std::string texts;
  SystemClaims selected;
  for (const Claim& claim : all.claims) {
    texts += (texts.empty() ? "" : "; ") + std::string(claim.text);
    if (std::string_view(claim.text).find(only) != std::string_view::npos) selected.claims.push_back(claim);
  }
  std::copy_if(
      all.contradictions.begin(), all.contradictions.end(), std::back_inserter(selected.contradictions),
      [&](const Contradiction& contradiction) { return IsAboutOneOf(contradiction, selected.claims); });
  if (!selected.claims.empty()) return selected;
  throw Error(ErrorCode::kUsage, "--claims-only " + only, "no claim has that in its text", "",
              "the claims are: " + texts);
}

std::string ClaimedText(const Claim& claim) {
  const std::string number = claim.absolute ? FormatCount(claim.ratio) : FormatFixed(claim.ratio, 2) + "x";
  return (HigherIsBetter(claim.metric) ? ">= " : "<= ") + number;
}

}  // namespace

std::vector<Claim> ClaimsOf(const std::string& system) {
  return ClaimsOfSystem(system).claims;
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

Unmeasured WhyUnmeasured(const Claim& claim, const std::string& help, bool gpu) {
  if (claim.needs_gpu && !gpu) return {kNotTestable, "needs a GPU"};
  std::string note;
  for (const std::string& flag : AbsentFlags(claim, help)) {
    note += (note.empty() ? "feature absent: " : ", ") + flag;
  }
  return {note.empty() ? "" : "not met", note};
}

bool NamesSizes(const std::string& system) {
  const std::vector<Claim> claims = ClaimsOf(system);
  return std::any_of(claims.begin(), claims.end(), [](const Claim& claim) { return *claim.guide != 0; });
}

std::string DecisiveMetric(const Claim& claim, bool gpu) {
  return gpu && claim.metric == std::string(kMemoryMetric) ? "final:max_device_memory_bytes" : claim.metric;
}

ClaimsResult CheckClaims(const ClaimsRequest& request, ProgressMode progress_mode) {
  const ClaimScale scale = request.scale;
  if (scale == ClaimScale::kGuide && !NamesSizes(request.system)) {
    throw Error(ErrorCode::kUsage, "--claims-size guide",
                "the guide of " + request.system + " names no sizes", "", "refocused, rft and lora do");
  }
  const SystemClaims of_system = Selected(ClaimsOfSystem(request.system), request.only);
  const std::vector<Claim>& claims = of_system.claims;
  const HostFacts host = ReadHostFacts();
  const bool gpu = HasGpu();
  const std::string hardware =
      host.cpu + ", " + std::to_string(host.processors) + " processors" + (gpu ? ", a GPU" : ", no GPU");
  ClaimsResult result;
  const auto reads = [&](ClaimData data) {
    return std::any_of(claims.begin(), claims.end(),
                       [data](const Claim& claim) { return claim.data == data; });
  };
  const bool contrastive = reads(ClaimData::kContrastive), long_document = reads(ClaimData::kLong);
  const ClaimsWorkplace workplace(contrastive, long_document, scale);
  std::vector<std::pair<Claim, std::string>> with_metrics;
  for (const Claim& claim : claims) with_metrics.emplace_back(claim, DecisiveMetric(claim, gpu));
  ClaimRuns runs(with_metrics, [&](const Claim& claim, const std::vector<std::string>& metrics) {
    return RunCommands(claim, metrics, workplace, scale, request.budget_s);
  });
  Progress progress(progress_mode, "claims", claims.size(), "claims", /*plain_lines=*/true);
  const std::string column = std::to_string(host.processors) + (gpu ? " CPUs, GPU" : " CPUs");
  Table table({"claim", "claimed", "measured", "95 % interval", "hardware", "verdict", ""});
  Table variants(
      {"claim", "variant", "samples/s", "peak memory", "an epoch", gpu ? "GPU busy" : "CPUs busy", "flags"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), variant_rows = rows;
  std::vector<std::string> verdicts;
  const auto measure = [&](const Claim& claim) {
    const Answer answer = AnswerTo(claim, workplace, runs, gpu, std::max(1, host.processors));
    AddVariants(claim, answer, &variants, &variant_rows);
    table.AddRow({claim.text, ClaimedText(claim), answer.measured, answer.interval, column, answer.verdict,
                  answer.note});
    rows.push_back({{"claim", claim.text},
                    {"metric", DecisiveMetric(claim, gpu)},
                    {"guide", scale == ClaimScale::kGuide ? claim.guide : ""},
                    {claim.absolute ? "claimed" : "claimed_ratio", claim.ratio},
                    {"before", claim.before},
                    {"after", claim.after},
                    {"verdict", answer.verdict},
                    {"note", answer.note},
                    {"hardware", hardware},
                    {"comparison", answer.comparison}});
    verdicts.push_back(answer.verdict);
  };
  result.stopped = UntilStopped([&] {
    for (size_t i = 0; i < claims.size(); ++i) {
      progress.Update(i);
      measure(claims[i]);
    }
  });
  result.json = {{"schema", "trainwright.claims/1"}, {"system", request.system}, {"hardware", hardware},
                 {"load_1min", host.load_1min},      {"claims", rows},           {"variants", variant_rows}};
  result.text = hardware + "; " + DescribeRuns(contrastive, long_document, scale) + "\n\n" + table.ToString();
  if (!variant_rows.empty()) result.text += "\n" + variants.ToString();
  AddContradictions(of_system.contradictions, &result);
  result.exit_status = StatusOfClaims(verdicts);
  if (result.stopped == nullptr) {
    result.stopped = UntilStopped([&] {
      if (!of_system.suite.empty()) RunSuite(of_system.suite, workplace, scale, &result);
      if (of_system.add_tables != nullptr) of_system.add_tables(workplace, request.budget_s, &result);
    });
  }
  if (result.stopped != nullptr) result.json["stopped"] = true;
  return result;
}

std::string VerdictOfClaim(bool higher_is_better, double low, double high, double claimed) {
  const double worst = higher_is_better ? low : -high, best = higher_is_better ? high : -low;
  const double limit = higher_is_better ? claimed : -claimed;
  if (worst >= limit) return kMet;
  return best < limit ? kNotMet : kUndecided;
}

int StatusOfClaims(const std::vector<std::string>& verdicts) {
  int status = 0;
  for (const std::string& verdict : verdicts) {
    if (verdict == kNotMet) return static_cast<int>(ErrorCode::kNo);
    if (verdict != kMet) status = static_cast<int>(ErrorCode::kUndecided);
  }
  return status;
}

}  // namespace trainwright

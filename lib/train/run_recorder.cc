#include "lib/train/run_recorder.h"

#include <sys/resource.h>

#include <cmath>
#include <sstream>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/log.h"
#include "lib/base/shell_word.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/base/version.h"
#include "lib/checkpoint/checkpoint_records.h"
#include "lib/checkpoint/run_completion.h"
#include "lib/formats/json_text.h"
#include "lib/io/process_memory.h"
#include "lib/run/html_report.h"
#include "lib/run/plan_codec.h"
#include "lib/spec/config_json.h"
#include "lib/train/outlier_records.h"

namespace trainwright {
namespace {

constexpr int kSignalStatus = 128;  // and the signal's number

/// Processor time of this process so far, all threads together.
double ProcessCpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double Now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

nlohmann::ordered_json EncodeSources(const std::vector<DataSource>& sources) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const DataSource& source : sources) {
    json.push_back({{"path", source.path},
                    {"share", source.share},
                    {"chunks", source.chunks},
                    {"tokens", source.tokens}});
  }
  return json;
}

/// What evaluate needs to measure each of the sets that the run was evaluated on, or, of what it held out,
/// those that have some of it.
std::vector<std::string> DataOfEvaluations(const RunFacts& facts) {
  const std::optional<DocumentSplit>& split = facts.plan.eval_split;
  std::string flags;
  if (split) flags = " --eval-split " + split->asked;
  if (split && split->seed != 0) flags += " --eval-split-seed " + std::to_string(split->seed);
  std::vector<std::string> data;
  for (size_t i = 0; i < facts.data_to_evaluate.size(); ++i) {
    const std::string& path = facts.data_to_evaluate[i];
    const std::vector<uint64_t>& labels = facts.held_out.labels_of_parts;
    if (split && i < labels.size() && labels[i] == 0) continue;
    data.push_back(" --data " + (path == "-" ? "SHARDS" : ShellWord(path)) + flags);
  }
  return data;
}

std::string OnRanks(const TrainPlan& plan) {
  return plan.ranks > 1 ? " on each of " + std::to_string(plan.ranks) + " ranks" : "";
}

void EncodeWaits(const RankWaits& waits, double time_s, nlohmann::ordered_json* fields) {
  if (!waits) return;
  (*fields)["slowest_rank"] = waits.slowest();
  (*fields)["rank_wait_share"] = waits.ShareOf(time_s);
}

/// What only some steps take time for.
void EncodeTimes(const StepReport& report, int64_t ranks, nlohmann::ordered_json* fields) {
  if (ranks > 1) (*fields)["exchange_wait_s"] = report.exchange_wait_s;
  if (report.host.cleanup_s) (*fields)["cleanup_s"] = *report.host.cleanup_s;
}

void EncodeTexts(const StepReport& report, nlohmann::ordered_json* fields) {
  if (report.tokens_if_padded > 0) (*fields)["tokens_if_padded"] = report.tokens_if_padded;
  if (report.texts == TextCounts{}) return;
  (*fields)["queries"] = report.texts.queries;
  (*fields)["passages"] = report.texts.passages;
  (*fields)["generative_rows"] = report.texts.generative_rows;
}

/// Why a step changed no weight.
std::string DescribeSkip(const StepReport& report) {
  if (report.labels == 0) return "the step's samples hold no label: weights unchanged";
  if (report.outlier.of_loss || report.outlier.of_norm) {
    return "step " + std::to_string(report.step) +
           " skipped: " + DescribeOutlier(report.outlier, report.loss_nats, report.grad_norm);
  }
  return "fp16 overflow at loss scale " + FormatCount(report.loss_scale) + ": step skipped";
}

/// What the watchdog says of a step's loss; without a label the step has none, which is nothing to say.
std::optional<std::string> Observe(const StepReport& report, LossWatchdog* watchdog) {
  return report.labels > 0 ? watchdog->Observe(report.step, report.loss_nats) : std::nullopt;
}

/// "12.3 % waiting for rank 3": of all ranks' time.
std::string DescribeWaits(const RankWaits& waits, double time_s, const RankRecords& ranks) {
  return FormatFixed(100 * waits.ShareOf(time_s), 1) + " % waiting for " + ranks.NameOf(waits.slowest());
}

nlohmann::ordered_json EncodeOffload(const OffloadCounts& counts) {
  return {{"out_bytes", counts.out_bytes}, {"in_bytes", counts.in_bytes}, {"time_s", counts.time_s}};
}

void PrintOffload(const OffloadCounts& counts, double training_s) {
  LogInfo("offload: " + FormatBytes(static_cast<uint64_t>(counts.out_bytes)) + " out and " +
          FormatBytes(static_cast<uint64_t>(counts.in_bytes)) + " in took " + FormatFixed(counts.time_s, 2) +
          " s, " + FormatFixed(100 * counts.time_s / training_s, 1) + " % of the steps' time");
}

/// What the run is, for its first record.
nlohmann::ordered_json EncodeRun(const RunFacts& facts, const RunDirectory& run,
                                 const std::optional<double>& cost_per_hour) {
  const TrainPlan& plan = facts.plan;
  nlohmann::ordered_json fields = {{"step", facts.first_step},
                                   {"version", TRAINWRIGHT_VERSION},
                                   {"run", run.path()},
                                   {"argv", facts.argv},
                                   {"plan", EncodePlan(plan)},
                                   {"model", nlohmann::ordered_json::parse(EncodeConfigJson(facts.model))},
                                   {"parameters", facts.parameters},
                                   {"data_sha256", facts.data_sha256},
                                   {"data_tokens", facts.data_tokens},
                                   {"data_documents", facts.data_documents},
                                   {"data_sources", EncodeSources(facts.sources)},
                                   {"held_out_tokens", facts.held_out.held_out_tokens},
                                   {"held_out_documents", facts.held_out.held_out_documents},
                                   {"tokenizer_sha256", facts.tokenizer_sha256},
                                   {"device", facts.compute.device},
                                   {"peak_tflops", ValueOrNull(facts.peak_tflops)},
                                   {"cpu_capability", facts.compute.cpu_capability},
                                   {"torch_build", facts.compute.torch_build},
                                   {"threads", facts.compute.threads},
                                   {"kernels", facts.kernels},
                                   {"tf32", facts.compute.tf32},
                                   {"residual_stream", facts.compute.residual_stream},
                                   {"ranks", plan.ranks},
                                   {"cost_per_hour", ValueOrNull(cost_per_hour)}};
  if (facts.types) fields["dtypes"] = ToJson(*facts.types);
  if (facts.tf32_error) fields["tf32_error"] = facts.tf32_error->relative;
  return fields;
}

void EncodeDevice(const RunFacts& facts, const RunRecorderOptions& options, nlohmann::ordered_json* fields) {
  if (facts.types) (*fields)["dtypes"] = ToJson(*facts.types);
  if (options.device_bytes) (*fields)["max_device_memory_bytes"] = options.device_bytes();
}

/// Those that there are.
void EncodeLosses(const RunTotals& totals, nlohmann::ordered_json* fields) {
  const auto add = [&](const std::string& name, const std::optional<double>& value) {
    if (value) (*fields)[name] = *value;
  };
  for (const auto& [kind, losses] :
       {std::pair("loss_nats", totals.loss_nats()), {"eval_loss_nats", totals.eval_nats()}}) {
    add(std::string("first_") + kind, losses.first);
    add(std::string("last_") + kind, losses.last);
    add(std::string("best_") + kind, losses.best);
  }
}

void PrintProfile(const StepProfile& profile, const std::string& run) {
  LogInfo("profile of steps " + std::to_string(profile.first_step) + " to " +
          std::to_string(profile.last_step) +
          (profile.trace.empty() ? "" : "; open " + run + "/" + profile.trace + " in ui.perfetto.dev"));
  std::istringstream lines(FormatStepProfile(profile));
  for (std::string line; std::getline(lines, line);) LogInfo(line.empty() ? "" : "  " + line);
}

/// The same in short, for the console.
void TellRun(const RunFacts& facts) {
  const TrainPlan& plan = facts.plan;
  LogInfo(FormatCount(static_cast<double>(facts.parameters)) + " parameters, " +
          FormatCount(static_cast<double>(facts.data_tokens)) + " tokens of data, " +
          std::to_string(plan.schedule.total_steps) + " steps of " + std::to_string(plan.accum) + " x " +
          std::to_string(plan.batch) + " samples" + OnRanks(plan) + " of at most " +
          std::to_string(plan.sequence_tokens) + " tokens" +
          (plan.max_batch_tokens > 0
               ? " in micro-batches of at most " + std::to_string(plan.max_batch_tokens) + " tokens"
               : "") +
          ", " + PrecisionName(plan.precision) + (facts.types ? " (" + facts.types->text() + ")" : ""));
  LogInfo("kernels: " + facts.kernels);
  if (facts.compute.residual_stream != ComputeIdentity().residual_stream) {
    LogInfo("residual stream and its gradient stored in " + facts.compute.residual_stream);
  }
  if (facts.tf32_error) LogInfo("TF32: fp32 GEMMs differ from fp32 by " + facts.tf32_error->text());
}

/// Whether the model is trained to embed, and not to generate.
bool EmbedsAlone(const TrainPlan& plan) {
  const auto mode = plan.objective_own.find("mode");
  return mode != plan.objective_own.end() && mode->second == OwnValue("embedding");
}

}  // namespace

RunRecorder::RunRecorder(const RunDirectory* run, RunFacts facts, const RunRecorderOptions& options)
    : run_(run),
      facts_(std::move(facts)),
      options_(options),
      metrics_(run->metrics_path()),
      // What earlier processes evaluated before the first step stays when this one begins behind it.
      tensorboard_(run->tensorboard_path(), facts_.first_step == 0 ? 0 : facts_.first_step + 1, Now()),
      loss_watchdog_(options.watchdog_ratio, options.watchdog == WatchdogMode::kStop),
      totals_(facts_.first_step, facts_.tokens_before),
      seen_cpu_s_(ProcessCpuSeconds()),
      seen_at_(std::chrono::steady_clock::now()) {
  if (totals_.step() > 0) report_.AddFile(run_->metrics_path());
  Write("run_begin", EncodeRun(facts_, *run_, options_.cost_per_hour));
  TellRun(facts_);
  progress_ = std::make_unique<Progress>(options.progress, "training",
                                         static_cast<uint64_t>(facts_.plan.schedule.total_steps), "steps",
                                         /*plain_lines=*/true);
}

bool RunRecorder::Logs(int64_t step) const {
  return step % options_.log_every == 0 || step >= facts_.plan.schedule.total_steps;
}

std::optional<double> RunRecorder::Mfu(double model_flops_per_s) const {
  if (!facts_.peak_tflops) return std::nullopt;
  const int64_t devices = ranks_.devices > 0 ? ranks_.devices : facts_.plan.ranks;
  return model_flops_per_s / (*facts_.peak_tflops * 1e12 * static_cast<double>(devices));
}

void RunRecorder::Write(const std::string& type, const nlohmann::ordered_json& fields) {
  report_.Add(metrics_.Write(type, fields));
}

void RunRecorder::WriteReport() const {
  WriteRunReports(run_->path());
}

std::optional<double> RunRecorder::Cost() const {
  if (!options_.cost_per_hour) return std::nullopt;
  return *options_.cost_per_hour * SecondsSince(facts_.start) / 3600;
}

void RunRecorder::WriteStep(const StepReport& report, double epochs, bool saving) {
  const TrainPlan& plan = facts_.plan;
  const double tokens_per_s = static_cast<double>(report.tokens) / report.step_time_s;
  const double model_flops_per_s = facts_.flops.Of(report.counts()) / report.step_time_s;
  const std::optional<double> mfu = Mfu(model_flops_per_s);
  const int64_t resident_bytes = ResidentBytes();
  // Since the record before: evaluations and saves between steps count, too.
  const double cpu_s = ProcessCpuSeconds(), wall_s = SecondsSince(seen_at_);
  const double cpu_cores = wall_s > 0 ? (cpu_s - seen_cpu_s_) / wall_s : 0;
  seen_cpu_s_ = cpu_s;
  seen_at_ = std::chrono::steady_clock::now();
  nlohmann::ordered_json fields = {{"step", report.step},
                                   {"epoch", epochs},
                                   {"tokens_seen", totals_.tokens_seen()},
                                   {"loss_nats", report.loss_nats},
                                   {"lr", report.lr},
                                   {"grad_norm", report.grad_norm},
                                   {"tokens", report.tokens},
                                   {"labels", report.labels},
                                   {"effective_batch", plan.samples_per_step()},
                                   {"accum", plan.accum},
                                   {"precision", PrecisionName(plan.precision)},
                                   {"loss_scale", report.loss_scale},
                                   {"skipped", report.skipped},
                                   {"step_time_s", report.step_time_s},
                                   {"host_time_s", report.host.step_s},
                                   {"steps_per_s", 1 / report.step_time_s},
                                   {"tokens_per_s", tokens_per_s},
                                   {"model_flops_per_s", model_flops_per_s},
                                   {"mfu", ValueOrNull(mfu)},
                                   {"data_wait_s", report.data_wait_s},
                                   {"cpu_cores", cpu_cores},
                                   {"saving", saving},
                                   {"resident_bytes", resident_bytes},
                                   {"max_memory_bytes", PeakResidentBytes()}};
  EncodeDevice(facts_, options_, &fields);
  EncodeTimes(report, plan.ranks, &fields);
  EncodeWaits(report.rank_waits, report.step_time_s, &fields);
  if (const auto cost = Cost()) fields["cost"] = *cost;
  if (!report.source_tokens.empty()) fields["source_tokens"] = report.source_tokens;
  EncodeTexts(report, &fields);
  EncodeOutliers(report.outlier, &fields);
  const std::optional<double> gpu_use = options_.gpu_use ? options_.gpu_use() : std::nullopt;
  if (gpu_use) fields["gpu_util"] = *gpu_use;
  for (const LossTerm& term : facts_.loss_terms) {
    if (!term.recorded || report.terms.empty()) continue;
    (term.curve ? fields["loss_terms"] : fields)[term.name] = report.term(term.name);
  }
  Write("step", fields);
  const double device_bytes =
      static_cast<double>(options_.device_bytes ? options_.device_bytes() : resident_bytes);
  std::vector<TensorboardScalar> scalars = {
      {"loss/train", report.loss_nats},
      {"lr", report.lr},
      {"grad_norm", report.grad_norm},
      {"throughput/tokens_per_second", tokens_per_s},
      {"memory/resident_gb", static_cast<double>(resident_bytes) / 1e9},
      // By the names of the guide of TEN, for dashboards that were made for it.
      {"Loss/train", report.loss_nats},
      {"Throughput/tokens_per_sec", tokens_per_s},
      {"Memory/allocated_gb", device_bytes / 1e9},
      {"data_wait_s", report.data_wait_s},
      {"cpu_cores", cpu_cores},
  };
  if (mfu) scalars.push_back({"throughput/mfu", *mfu});
  if (gpu_use) scalars.push_back({"gpu_util", *gpu_use});
  for (const LossTerm& term : facts_.loss_terms) {
    if (term.recorded && term.curve && !report.terms.empty()) {
      scalars.push_back({"loss/" + term.name, report.term(term.name)});
    }
  }
  tensorboard_.WriteScalars(Now(), report.step, scalars);
  if (options_.watchdog != WatchdogMode::kOff) Watch(report, resident_bytes, gpu_use);
}

void RunRecorder::Watch(const StepReport& report, int64_t resident_bytes,
                        const std::optional<double>& gpu_use) {
  if (const auto problem = Observe(report, &loss_watchdog_)) {
    Warn(*problem);
    if (options_.watchdog == WatchdogMode::kStop) stop_reason_ = "watchdog: " + *problem;
  }
  const std::optional<std::string> problems[] = {
      idle_monitors_.data_wait.Observe(report.step, report.step_time_s, report.data_wait_s),
      gpu_use ? idle_monitors_.gpu_use.Observe(report.step, *gpu_use) : std::nullopt};
  for (const auto& problem : problems) {
    if (problem) Warn(*problem);
  }
  const int64_t steps_here = report.step - facts_.first_step;
  if (const auto problem = memory_monitor_.Observe(report.step, steps_here, resident_bytes)) Warn(*problem);
}

void RunRecorder::RecordStep(const StepReport& report, double epochs, bool saving) {
  totals_.AddStep(report, facts_.flops.Of(report.counts()));
  if (Logs(totals_.step())) WriteStep(report, epochs, saving);
  if (report.skipped && report.read) {
    Warn(DescribeSkip(report));
  }
  // The first step warms caches up; the second one shows the pace.
  const int64_t steps_here = report.step - facts_.first_step;
  if (steps_here == 2 || (steps_here == 1 && report.step_time_s > 5)) PrintPace(report);
  if (progress_) {
    const RankWaits& waits = totals_.rank_waits();
    progress_->Update(static_cast<uint64_t>(totals_.step()),
                      "loss " + FormatFixed(totals_.loss_nats().last.value_or(NAN), 3) + ", " +
                          FormatCount(totals_.tokens_per_s()) + " tokens/s" +
                          (waits ? ", " + DescribeWaits(waits, totals_.training_s(), ranks_) : ""));
  }
}

void RunRecorder::PrintPace(const StepReport& report) const {
  const int64_t left = facts_.plan.schedule.total_steps - report.step;
  const std::optional<double> mfu = Mfu(facts_.flops.Of(report.counts()) / report.step_time_s);
  LogInfo(FormatCount(static_cast<double>(report.tokens)) + " tokens a step, " +
          FormatDuration(report.step_time_s) + " a step, " +
          FormatCount(static_cast<double>(report.tokens) / report.step_time_s) + " tokens/s" +
          (mfu ? ", " + FormatFixed(100 * *mfu, 1) + " % MFU" : "") + "; " + std::to_string(left) +
          (left == 1 ? " step" : " steps") + " left: about " +
          FormatDuration(static_cast<double>(left) * report.step_time_s) +
          (options_.cost_per_hour
               ? ", cost " +
                     FormatFixed(
                         *options_.cost_per_hour * static_cast<double>(left) * report.step_time_s / 3600, 2)
               : ""));
}

void RunRecorder::RecordEvaluation(const Evaluation& evaluation, double eval_time_s) {
  const double loss_nats = evaluation.loss_nats;
  totals_.AddEvaluation(loss_nats);
  nlohmann::ordered_json fields = {
      {"step", totals_.step()}, {"tokens_seen", totals_.tokens_seen()}, {"loss_nats", loss_nats}};
  std::vector<TensorboardScalar> scalars = {{kEvaluationTag, loss_nats}};
  std::string text;
  for (const EvaluationMeasure& measure : evaluation.measures) {
    fields[measure.name] = ValueOrNull(measure.value);
    if (measure.value) scalars.push_back({measure.name + "/eval", *measure.value});
    if (measure.value) text += ", " + measure.text;
  }
  fields["tokens"] = evaluation.tokens;
  fields["documents"] = evaluation.documents;
  fields["eval_time_s"] = eval_time_s;
  Write("eval", fields);
  tensorboard_.WriteScalars(Now(), totals_.step(), scalars);
  if (!std::exchange(evaluated_, true)) memory_monitor_.RaiseBaseline(ResidentBytes());
  LogInfo("step " + std::to_string(totals_.step()) + ": evaluation loss " + FormatFixed(loss_nats, 4) +
          " nats" + text);
}

void RunRecorder::RecordCheckpoint(const FinishedSave& save) {
  const auto& [saved, times] = save;
  Write("checkpoint", CheckpointRecord(saved, times));
  totals_.AddSave(times);
  if (!std::exchange(saved_, true)) memory_monitor_.RaiseBaseline(ResidentBytes());
  LogDebug("saved " + saved.path);
}

void RunRecorder::RecordProfile(const StepProfile& profile, const std::string& trace_problem) {
  told_.profile = profile;
  told_.profile->trace = trace_problem.empty() ? kRunTraceFile : "";
  nlohmann::ordered_json fields = {{"step", totals_.step()}};
  fields.update(EncodeStepProfile(*told_.profile));
  Write("profile", fields);
  if (!trace_problem.empty()) Warn("the profile has no trace: " + trace_problem);
}

void RunRecorder::RecordCopy(const CopyResult& result) {
  Write("copy", CopyRecord(result));
  if (result.copied) {
    totals_.AddCopy();
    LogDebug("copied step " + std::to_string(result.step) + " to " + result.place);
  } else {
    Warn("no copy of step " + std::to_string(result.step) + ": " + result.problem);
  }
}

void RunRecorder::Warn(const std::string& message) {
  LogWarning(message);
  RecordWarning(message);
}

void RunRecorder::RecordWarning(const std::string& message) {
  Write("warning", {{"step", totals_.step()}, {"message", message}});
}

void RunRecorder::RecordEnd(int exit_status, const std::string& reason) {
  progress_.reset();
  complete_ = reason.starts_with(kCompleteEnd) || reason.starts_with(kEarlyStop);
  nlohmann::ordered_json fields = {{"step", totals_.step()},
                                   {"exit_status", exit_status},
                                   {"reason", reason},
                                   {"tokens_seen", totals_.tokens_seen()},
                                   {"wall_time_s", SecondsSince(facts_.start)},
                                   {"save_stall_s", totals_.save_stall_s()},
                                   {"save_wait_s", totals_.save_wait_s()},
                                   {"writer_cpu_s", totals_.writer_cpu_s()},
                                   {"cost", ValueOrNull(Cost())},
                                   {"max_memory_bytes", PeakResidentBytes()}};
  if (told_.memory) fields["memory_bytes"] = EncodeMemory(told_.memory->first, told_.memory->second);
  if (told_.offload) fields["offload"] = EncodeOffload(*told_.offload);
  if (told_.graphs) fields["graphs"] = EncodeGraphCounts(*told_.graphs);
  if (!totals_.source_tokens().empty()) fields["source_tokens"] = totals_.source_tokens();
  EncodeWaits(totals_.rank_waits(), totals_.training_s(), &fields);
  EncodeRanks(ranks_, &fields);
  EncodeLosses(totals_, &fields);
  Write("run_end", fields);
  WriteReport();
}

nlohmann::ordered_json RunRecorder::Summary(const SavedCheckpoint& saved) const {
  nlohmann::ordered_json summary = {{"run", run_->path()},
                                    {"steps", totals_.step()},
                                    {"total_steps", facts_.plan.schedule.total_steps},
                                    {"tokens", totals_.tokens_seen()},
                                    {"tokens_per_s", totals_.tokens_per_s()},
                                    {"steps_per_s", totals_.steps_per_s()},
                                    {"model_flops_per_s", totals_.model_flops_per_s()},
                                    {"mfu", ValueOrNull(Mfu(totals_.model_flops_per_s()))},
                                    {"effective_batch", facts_.plan.samples_per_step()},
                                    {"accum", facts_.plan.accum},
                                    {"ranks", facts_.plan.ranks},
                                    {"precision", PrecisionName(facts_.plan.precision)},
                                    {"save_stall_s", totals_.save_stall_s()},
                                    {"save_wait_s", totals_.save_wait_s()},
                                    {"writer_cpu_s", totals_.writer_cpu_s()},
                                    {"copies", totals_.copies()},
                                    {"checkpoint", saved.path},
                                    {"weights_sha256", saved.weights_sha256}};
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) summary[name] = *value;
  };
  EncodeWaits(totals_.rank_waits(), totals_.training_s(), &summary);
  EncodeRanks(ranks_, &summary);
  add("cost", Cost());
  add("total_cost", report_.cost());
  if (told_.memory) summary["memory_bytes"] = EncodeMemory(told_.memory->first, told_.memory->second);
  if (told_.offload) summary["offload"] = EncodeOffload(*told_.offload);
  EncodeLosses(totals_, &summary);
  return summary;
}

void RunRecorder::PrintReport(int exit_status, const SavedCheckpoint& saved) const {
  if (!complete_) {
    // The signal may have come to another rank, of which only the status is known here.
    const bool by_signal = exit_status > kSignalStatus;
    const int signal_number = StopSignal() != 0 ? StopSignal() : exit_status - kSignalStatus;
    LogInfo((stop_reason_ ? "stopped by --watchdog"
             : by_signal  ? std::string("stopped by ") + StopSignalName(signal_number)
                          : std::string("time is up")) +
            " after step " + std::to_string(totals_.step()) + " of " +
            std::to_string(facts_.plan.schedule.total_steps) + "; everything is saved");
  }
  const auto arrow = [](const std::optional<double>& from, const std::optional<double>& to) {
    return FormatFixed(from.value_or(NAN), 4) + " -> " + FormatFixed(to.value_or(NAN), 4) + " nats";
  };
  const std::optional<double> mfu = Mfu(totals_.model_flops_per_s());
  LogInfo("steps " + std::to_string(facts_.first_step + 1) + " to " + std::to_string(totals_.step()) + ": " +
          FormatCount(static_cast<double>(totals_.tokens_here())) + " tokens in " +
          FormatDuration(totals_.training_s()) + ", " + FormatCount(totals_.tokens_per_s()) + " tokens/s, " +
          (mfu ? FormatFixed(100 * *mfu, 1) + " % MFU, " : "") + "peak memory " +
          FormatBytes(static_cast<uint64_t>(PeakResidentBytes())));
  if (const RankWaits& waits = totals_.rank_waits()) {
    LogInfo("ranks: " + DescribeWaits(waits, totals_.training_s(), ranks_) + ", which waited least; " +
            ranks_.DescribeMemory());
  }
  if (told_.memory) LogInfo("memory: " + FormatMemory(told_.memory->first, told_.memory->second));
  if (told_.offload) PrintOffload(*told_.offload, totals_.training_s());
  if (told_.graphs) LogInfo(FormatGraphCounts(*told_.graphs));
  if (told_.profile) PrintProfile(*told_.profile, run_->path());
  if (totals_.loss_nats().first)
    LogInfo("training loss " + arrow(totals_.loss_nats().first, totals_.loss_nats().last));
  if (totals_.eval_nats().first)
    LogInfo("evaluation loss " + arrow(totals_.eval_nats().first, totals_.eval_nats().last));
  if (const auto cost = Cost()) {
    LogInfo("cost " + FormatFixed(*cost, 2) + ", of the whole run " +
            FormatFixed(report_.cost().value_or(*cost), 2));
  }
  LogInfo("report " + run_->path() + "/report.html" + "; curves: tensorboard --logdir " +
          ShellWord(run_->tensorboard_path()));
  LogInfo("checkpoint " + saved.path);
  LogInfo("weights sha256 " + saved.weights_sha256);
  if (!complete_) return LogInfo("next: train --resume --out " + ShellWord(run_->path()));
  const std::string checkpoint = " --checkpoint " + ShellWord(saved.path);
  if (EmbedsAlone(facts_.plan)) return LogInfo("next: embed" + checkpoint + " texts.jsonl");
  LogInfo("next: generate" + checkpoint + " \"...\"");
  for (const std::string& data : DataOfEvaluations(facts_)) LogInfo("      evaluate" + checkpoint + data);
}

}  // namespace trainwright

#include "lib/run/settings_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/loading/mixture_weights.h"
#include "lib/run/allocator_conf.h"
#include "lib/run/save_interval.h"
#include "lib/run/training_data.h"
#include "lib/run/world_settings.h"
#include "lib/spec/offload_choice.h"
#include "lib/spec/parameter_rules.h"

namespace trainwright {
namespace {

void Require(bool holds, const char* flag, const char* problem) {
  if (!holds) throw Error(ErrorCode::kUsage, flag, problem);
}

void CheckSaving(const TrainSettings& settings) {
  Require(settings.log_every.value_or(1) >= 1, "--log-every", "must be at least 1 step");
  Require(settings.profile.value_or(1) >= 1, "--profile", "must be at least 1 step");
  Require(settings.empty_cache_every >= 0, "--empty-cache-every", "must be at least 0 steps");
  if (!settings.alloc_conf.empty()) CheckAllocatorConf(settings.alloc_conf, "--alloc-conf");
  Require(settings.keep >= 0, "--keep", "must be at least 0 checkpoints");
  Require(settings.keep_best >= 0, "--keep-best", "must be at least 0 checkpoints");
  const bool copies = !settings.copy_to.empty() || !settings.copy_command.empty();
  Require(!settings.copy_compress || !settings.copy_to.empty(), "--copy-compress", "needs --copy-to");
  Require(!settings.delete_after_copy || copies, "--delete-after-copy", "needs --copy-to or --copy-command");
  Require(settings.copy_retries >= 0, "--copy-retries", "must be at least 0");
  Require(settings.copy_queue >= 1, "--copy-queue", "must be at least 1 checkpoint");
  Require(ParseSaveInterval(settings.copy_timeout, "--copy-timeout").time_s > 0, "--copy-timeout",
          "must be a time with its unit: 90s, 10m, 1.5h");
}

void CheckNumbers(const TrainSettings& settings) {
  Require(settings.peak_tflops.value_or(1) > 0 && std::isfinite(settings.peak_tflops.value_or(1)),
          "--peak-tflops", "must be a number above 0");
  Require(settings.cost_per_hour.value_or(0) >= 0 && std::isfinite(settings.cost_per_hour.value_or(0)),
          "--cost-per-hour", "must be a number of at least 0");
  Require(settings.max_minutes >= 0, "--max-minutes", "must be at least 0");
  Require(settings.watchdog_ratio > 1, "--watchdog-ratio", "must be more than 1");
  Require(settings.ddp_bucket_mb >= 1.0 / (1 << 10) && settings.ddp_bucket_mb <= 1 << 20, "--ddp-bucket-mb",
          "must be from a 1024th to 1048576 MiB");
  if (!settings.save_every.empty()) ParseSaveInterval(settings.save_every, "--save-every");
  CheckParameterRules({settings.freeze, settings.lr_scale, settings.no_decay});
  Require(settings.freeze.empty() || (!settings.lora && settings.adapter.empty()), "--freeze",
          "has no meaning with adapters, which alone are trained");
  Require(settings.eval_every.value_or(0) >= 0, "--eval-every", "must be at least 0 steps");
  Require(settings.early_stop.value_or(1) >= 1, "--early-stop", "must be at least 1 evaluation");
  Require(settings.eval_tokens.value_or(1) >= 1, "--eval-tokens", "must be at least 1");
}

void CheckData(const TrainSettings& settings) {
  const std::vector<std::string> data = DataPaths(settings);
  const std::vector<std::string>& evaluated = settings.eval_data;
  const auto pipes = std::count(data.begin(), data.end(), "-");
  const auto evaluated_pipes = std::count(evaluated.begin(), evaluated.end(), "-");
  if (pipes + evaluated_pipes > 1) {
    const char* const both = evaluated_pipes > 1 ? "--eval-data" : "--data, --eval-data";
    throw Error(ErrorCode::kUsage, pipes > 1 ? "--data" : both, "cannot both be standard input");
  }
  if (!settings.data_weights.empty()) ParseMixtureWeights(settings.data_weights, data.size());
  Require(settings.eval_data.empty() || settings.eval_split.empty(), "--eval-data, --eval-split",
          "cannot both be given: one says what to evaluate on, the other holds it out of --data");
  if (!settings.resume) RequireSplitOfSeed(settings);
}

void CheckExactWorld(const TrainSettings& settings) {
  if (!settings.exact_world) return;
  const int64_t exact = *settings.exact_world;
  Require(exact >= 0 && (exact & (exact - 1)) == 0, "--exact-world", "must be a power of two, or 0 for none");
  CheckStepDivision(settings, {.exact_world = exact});
}

void CheckRankNumbers(const TrainSettings& settings) {
  Require(settings.nproc >= 1, "--nproc", "must be at least 1 process");
  Require(settings.dist_timeout_s >= 1 && std::isfinite(settings.dist_timeout_s), "--dist-timeout",
          "must be at least 1 second");
  CheckExactWorld(settings);
}

/// Whether the user, and not a preset, gave --eval-every.
bool AsksForEvalEvery(const std::vector<OptionValue>& options) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [](const OptionValue& value) { return value.key == "eval-every"; });
  return found == options.end() || found->origin > OptionOrigin::kPreset;
}

}  // namespace

void RequireSplitOfSeed(const TrainSettings& settings) {
  Require(!settings.eval_split_seed || !settings.eval_split.empty(), "--eval-split-seed",
          "has a meaning only with --eval-split");
}

void CheckScheduleOptions(const TrainSettings& settings, const std::vector<OptionValue>& options) {
  // What a resumed run repeats is compared with its plan, and a file that a run wrote may have both.
  if (settings.resume || settings.schedule != "constant") return;
  // With either of these nothing is asked of it that it does not do, or its own default is named.
  const double ratio = settings.min_lr_ratio.value_or(0);
  if (ratio == 0 || ratio == 1) return;
  const auto found = std::find_if(options.begin(), options.end(),
                                  [](const OptionValue& value) { return value.key == "min-lr-ratio"; });
  if (found != options.end() && found->origin != OptionOrigin::kCommandLine) return;
  throw Error(ErrorCode::kUsage, "--min-lr-ratio", "has no meaning with --schedule constant", "",
              "constant stays at the peak; leave out one of the two");
}

void CheckTrainSettings(const TrainSettings& settings) {
  if (!settings.init.empty() && !settings.model.empty()) {
    throw Error(ErrorCode::kUsage, "--init, --model",
                "cannot both be given: the model of --init has its shape", "", "leave out --model");
  }
  Require(!settings.find_batch || !settings.resume, "--find-batch",
          "has no meaning with --resume: --batch and --accum split the run's steps otherwise");
  Require(!settings.find_batch || settings.branch_from.empty(), "--find-batch",
          "has no meaning with --branch-from: a branch has its parent's step, or --batch and --accum");
  Require(!settings.find_batch || settings.max_tokens_per_batch.value_or(0) == 0,
          "--find-batch, --max-tokens-per-batch",
          "cannot both be given: samples of a micro-batch are what the one finds and the other leaves open");
  Require(settings.world.empty() || settings.max_tokens_per_batch.value_or(0) == 0,
          "--world, --max-tokens-per-batch",
          "cannot both be given: what is foretold are micro-batches of --batch samples");
  Require(!settings.replan_schedule || settings.resume, "--replan-schedule",
          "has a meaning only with --resume");
  CheckSaving(settings);
  CheckNumbers(settings);
  CheckData(settings);
  CheckRankNumbers(settings);
  CheckRanks(settings, settings.nproc);
  ParseWorldSettings(settings);
  if (!settings.zero_accum.empty()) ParseZeroAccumulation(settings.zero_accum, "--zero-accum");
}

void CheckStepDivision(const TrainSettings& settings, const StepDivision& division) {
  if (division.exact_world > 0 && settings.auto_oom) {
    throw Error(ErrorCode::kUsage, "--exact-world, --auto-oom",
                "cannot both be in force: a step with smaller micro-batches has other bits", "",
                "find a --batch that fits with --find-batch, or leave out --auto-oom");
  }
  if (division.exact_world > 0 && division.max_batch_tokens > 0) {
    throw Error(ErrorCode::kUsage, "--exact-world, --max-tokens-per-batch",
                "cannot both be in force: equal parts of a step have as many micro-batches", "",
                "leave out one of them");
  }
  const bool exchanged = division.ranks > 1;
  if ((exchanged || division.exact_world > 0) &&
      ParseOffloadChoice(settings.offload, "--offload").gradients) {
    throw Error(ErrorCode::kUsage, "--offload " + settings.offload,
                std::string(exchanged ? "the ranks of a run add up" : "--exact-world adds up") +
                    " gradients that lie in memory until the end of the step, and here those of one layer "
                    "take the place of another's",
                "", "use --offload activations");
  }
}

void CheckSharding(const TrainSettings& settings, const TrainPlan& plan) {
  if (plan.sharding() == Sharding::kNone) return;
  const std::string flag = "--zero " + std::to_string(plan.zero);
  if (settings.compress_state || settings.compress_model) {
    throw Error(ErrorCode::kUsage,
                std::string(settings.compress_state ? "--compress-state" : "--compress-model") + ", " + flag,
                "cannot both be in force: compression takes tensors whole, and no rank has one whole", "",
                "compress what is finished with ckpt-compress, or copies with --copy-compress");
  }
  if (settings.async_save == "on") {
    throw Error(ErrorCode::kUsage, "--async-save on, " + flag,
                "cannot both be in force: the ranks send their parts of a checkpoint as it is written, and "
                "train on afterwards",
                "", "leave out --async-save on");
  }
  if (plan.max_batch_tokens > 0 && plan.gives_gradients_away()) {
    throw Error(ErrorCode::kUsage, "--max-tokens-per-batch, " + flag,
                "cannot both be in force with --zero-accum reduce: ranks exchange the gradients of each "
                "micro-batch, and have different numbers of them",
                "", "add --zero-accum keep");
  }
  const bool asks_to_reduce =
      !settings.zero_accum.empty() &&
      ParseZeroAccumulation(settings.zero_accum, "--zero-accum") == ZeroAccumulation::kReduce;
  if (asks_to_reduce && plan.zero == 2 && plan.exact_world > 0 && plan.accum > 1) {
    throw Error(ErrorCode::kUsage, "--zero-accum reduce, --exact-world " + std::to_string(plan.exact_world),
                "cannot both be in force with --accum " + std::to_string(plan.accum) +
                    ": the order of what is added up would depend on the ranks",
                "", "leave out --zero-accum, or take --accum 1");
  }
}

void CheckRanks(const TrainSettings& settings, int64_t ranks) {
  if (ranks == 1) return;
  const std::string several = std::to_string(ranks) + " processes";
  const std::vector<std::string> data = DataPaths(settings);
  const std::vector<std::string>& evaluated = settings.eval_data;
  const bool evaluates_pipe = std::count(evaluated.begin(), evaluated.end(), "-") > 0;
  if (evaluates_pipe || std::count(data.begin(), data.end(), "-") > 0) {
    throw Error(ErrorCode::kUsage, evaluates_pipe ? "--eval-data -" : "--data -",
                several + " cannot all read what comes from one pipe", "",
                "write the shards to a folder first: pack -o DIR/, and name it");
  }
  CheckStepDivision(settings, {.ranks = ranks});
  TrainPlan divided;
  divided.ranks = ranks;
  divided.zero = settings.zero.value_or(0);
  CheckSharding(settings, divided);
  const int64_t exact = settings.exact_world.value_or(0);
  if (exact > 0 && (ranks > exact || exact % ranks != 0)) {
    throw Error(ErrorCode::kUsage, "--exact-world",
                several + " cannot share " + std::to_string(exact) + " equal parts of a step", "",
                "train with a power of two of processes, at most " + std::to_string(exact));
  }
}

void CheckEvaluations(const TrainSettings& settings, const std::vector<OptionValue>& options,
                      bool evaluates) {
  constexpr char kHint[] = "name it with --eval-data, or hold some of the data out with --eval-split 0.05";
  if (settings.keep_best > 0 && !evaluates) {
    throw Error(ErrorCode::kUsage, "--keep-best", "needs data to evaluate on", "", kHint);
  }
  if (settings.early_stop && (!evaluates || settings.eval_every == 0)) {
    throw Error(
        ErrorCode::kUsage, "--early-stop", "counts evaluations of --eval-every, and there are none", "",
        "name data with --eval-data, or hold some out with --eval-split 0.05, and leave out --eval-every 0");
  }
  if (settings.eval_every && !evaluates && AsksForEvalEvery(options)) {
    throw Error(ErrorCode::kUsage, "--eval-every", "needs data to evaluate on", "", kHint);
  }
}

}  // namespace trainwright

#include "tools/train_options.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "lib/run/branch_reference.h"
#include "lib/run/deepspeed_config.h"
#include "lib/run/foreign_optimizer.h"
#include "lib/run/recipe_config.h"
#include "lib/run/remembered_options.h"
#include "lib/run/remembered_run.h"
#include "lib/run/run_directory.h"
#include "lib/spec/built_in_families.h"
#include "lib/spec/built_in_objectives.h"
#include "lib/spec/built_in_optimizers.h"
#include "lib/spec/family_options.h"
#include "lib/spec/objective_names.h"
#include "lib/spec/ten_family.h"
#include "tools/compute_options.h"
#include "tools/guides.h"
#include "tools/tool_texts.h"
#include "tools/train_absent_options.h"
#include "tools/train_joint_options.h"
#include "tools/train_presets.h"
#include "tools/train_synonym_options.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// The names that an option takes.
/// \param names before them
template <typename Description>
std::vector<std::string> NamesOf(const std::vector<Description>& descriptions,
                                 std::vector<std::string> names = {}) {
  for (const Description& description : descriptions) names.push_back(description.name);
  return names;
}

RememberedOptions RememberedByParent(const std::string& branch_from) {
  const std::string run = RunOf(ParseBranchReference(branch_from));
  if (run.empty()) return {};
  const std::optional<OptionsOfRun> options = ReadOptionsOfRun(run);
  if (!options) return {};
  return {options->path, options->text, KeysOfOneRun()};
}

/// Of the run that is resumed, or else branched from: all but its plan, which is in its record and its
/// checkpoints. A run of before there were records has no other place for its plan until its first
/// checkpoint.
RememberedOptions RememberedByRun(const std::function<std::string(const std::string&)>& given) {
  if (given("resume") == "true") {
    std::string run = given("out");
    if (run.empty()) run = RunDirectory::Newest(kRunsFolder).value_or("");
    const std::optional<OptionsOfRun> options = run.empty() ? std::nullopt : ReadOptionsOfRun(run);
    if (options) {
      return {options->path, options->text, HoldsRun(run) ? KeysOfThePlan() : std::set<std::string>()};
    }
  }
  return RememberedByParent(given("branch-from"));
}

/// What a preset, or a file of another program, says of optimizers and schedules, if flags choose others.
OnlyWith MeaningsOfTrain() {
  OnlyWith meanings = NumbersOfOptimizers();
  meanings["min-lr-ratio"] = {"schedule", {"", "cosine", "linear", "constant", "wsd"}};
  return meanings;
}

/// The text file, with the guides and the presets as this build has them behind what it says of presets.
ToolText TrainText() {
  ToolText text = ParseToolText(kTrainText);
  for (ToolSection& section : text.sections) {
    if (section.title == "PRESETS")
      section.text += "\n\n" + DescribeGuides() + "\n" + DescribePresets(TrainPresets());
  }
  return text;
}

/// Options that only an objective or a family has are variables of its own name, TRAINWRIGHT_GRIT_TEMPERATURE
/// or TRAINWRIGHT_TEN_SELECTIVE: what is set for generate --temperature is not about training.
std::map<std::string, std::string> VariablesOfOwnOptions() {
  std::map<std::string, std::string> variables;
  const auto name_after = [&](const std::string& owner, const std::vector<OwnOption>& options) {
    for (const OwnOption& own : options) {
      if (own.has_flag() && !own.flag().starts_with(owner + "-")) {
        variables[own.flag()] = owner + "-" + own.flag();
      }
    }
  };
  for (const ObjectiveDescription& objective : BuiltInObjectiveDescriptions()) {
    name_after(objective.name, objective.own);
  }
  const FamilyList families = BuiltInDescriptions();
  for (const FamilyDescription* family : families.all()) name_after(family->model_type(), family->options());
  return variables;
}

}  // namespace

const ToolInfo& TrainInfo() {
  static const ToolInfo info = {
      .name = "train",
      .summary = "train a language model on packed shards",
      .text = TrainText(),
      .see_also = {"pretokenize(1)", "pack(1)", "evaluate(1)", "generate(1)", "embed(1)",
                   "trainwright-checkpoint(5)", "trainwright-sample-order(5)", "trainwright-metrics(5)",
                   "trainwright-glossary(7)"},
      .filter = false,
      .stdout_is_data = false,
      .tells_notices = false,
      .presets = TrainPresets(),
      .exclusive = {{"eval-data", "eval-split"},
                    {"steps", "epochs", "tokens"},
                    {"model", "init"},
                    {"warmup", "warmup-ratio"},
                    {"beta1", "cycle-momentum"},
                    {"copy-to", "copy-command"},
                    {"lora", "adapter"},
                    {"lora-alpha", "adapter"},
                    {"lora-targets", "adapter"},
                    {"rslora", "adapter"},
                    {"dora", "adapter"},
                    {"lora-save-modules", "adapter"}},
      .only_with = MeaningsOfTrain(),
      .variables = VariablesOfOwnOptions(),
      .values_of_others = {{"quant", {"int8"}}},
      .suggestions = {{"model", BuiltInDescriptions().PresetNames()}},
      .absent = OptionsThatTrainLacks(),
      .synonyms = SynonymsOfTrain(),
      .settle_keys = SettleKeysOfTrainers,
      .foreign_config = ReadRecipe,
      .settings_file = {.option = "deepspeed", .read = ReadDeepSpeedConfig},
      .remembered = RememberedByRun,
  };
  return info;
}

namespace {

void DefineDataOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Input and output";
  AddPresetOptions(app, TrainPresets(), &settings->preset, group);
  app.add_option("--deepspeed", settings->deepspeed,
                 "take the options that are not given from this DeepSpeed JSON file; see DEEPSPEED FILES. "
                 "Flags, environment and --config take precedence")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--data", settings->data,
                 "shards to train on: a folder, a file, or - for standard input (default: shards). Given "
                 "several times, the sets are mixed")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--data-weights", settings->data_weights,
                 "shares of the sets of --data, in their order: 0.7,0.3 (default: by their sizes, so that "
                 "each chunk comes once an epoch)")
      ->type_name("W,W,...")
      ->group(group);
  app.add_option("--out", settings->out,
                 "run directory (default: the first free runs/MODEL-NNN; with --resume the newest run)")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--resume", settings->resume,
               "continue a run from its newest whole checkpoint, with all its options; see RESUMING")
      ->group(group);
  app.add_option("--branch-from", settings->branch_from,
                 "begin a new run with weights, moments, options and place in the data of this run's newest "
                 "checkpoint, or of that of a step; other options take precedence; see RESUMING")
      ->type_name("RUN[@STEP]")
      ->group(group);
  app.add_flag("--allow-data-change", settings->allow_data_change,
               "resume although the data is not what the run was started on; it is read from its beginning")
      ->group(group);
}

void DefineEvaluationOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Input and output";
  app.add_option("--eval-data", settings->eval_data,
                 "shards to evaluate on, before, during and after training. Given several times, on all of "
                 "them together")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--eval-split", settings->eval_split,
                 "hold out a share (0.05) or a number (200) of the documents of --data, and evaluate on "
                 "them; see HOLDING OUT")
      ->type_name("SHARE|COUNT")
      ->excludes("--eval-data")
      ->group(group);
  app.add_option("--eval-split-seed", settings->eval_split_seed,
                 "another choice of the documents that --eval-split holds out (default: 0, whatever --seed)")
      ->group(group);
  app.add_option(
         "--eval-every", settings->eval_every,
         "steps between evaluations; 0: only before and after (default: a tenth of the run, 10 to 500)")
      ->group(group);
  app.add_option(
         "--early-stop", settings->early_stop,
         "end the run, saved, once this many consecutive evaluations of --eval-every were no better than the "
         "best before them (default: never)")
      ->type_name("PATIENCE")
      ->group(group);
  app.add_option("--eval-tokens", settings->eval_tokens,
                 "evaluate on about this many tokens of --eval-data or --eval-split (default: all)")
      ->group(group);
}

void DefineSavingOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Input and output";
  app.add_option("--save-every", settings->save_every,
                 "steps (200) or time (90s, 10m, 1.5h) between checkpoints, or epoch: after each pass over "
                 "the data; 0: only at the end (default: a tenth of the run, 10 to 500 steps)")
      ->type_name("N|TIME")
      ->group(group);
  app.add_option("--async-save", settings->async_save,
                 "whether a background thread writes checkpoints, from a copy of weights and moments; auto: "
                 "on where memory has room for the copy and steps are left to train beside it")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->group(group);
  app.add_option("--keep", settings->keep, "newest checkpoints to keep; 0: all")->group(group);
  app.add_option(
         "--keep-best", settings->keep_best,
         "besides these, keep the checkpoints of this many lowest evaluation losses; each checkpoint is then "
         "evaluated, and the link best points to the first of them; needs --eval-data or --eval-split")
      ->group(group);
  app.add_flag("--save-model-only", settings->save_model_only,
               "checkpoints hold the model alone, a third of the size; no run resumes from them")
      ->group(group);
  app.add_flag("--compress-state", settings->compress_state,
               "compress trainwright_state.safetensors of each checkpoint without loss, as ckpt-compress "
               "does; the model's files stay plain")
      ->group(group);
  app.add_flag("--compress-model", settings->compress_model,
               "compress model.safetensors of each checkpoint likewise; our tools read it, transformers does "
               "not before ckpt-compress -d")
      ->group(group);
}

void DefineCopyOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Checkpoint copies";
  app.add_option("--copy-to", settings->copy_to,
                 "folder that gets a verified copy of every checkpoint, in the background; see COPIES")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--copy-command", settings->copy_command,
                 "shell command that copies a checkpoint, in the background: its path is in "
                 "TRAINWRIGHT_CHECKPOINT, and the last argument unless the command names that variable")
      ->type_name("CMD")
      ->excludes("--copy-to")
      ->group(group);
  app.add_flag("--copy-compress", settings->copy_compress,
               "copies of --copy-to are step-NNNNNNNN.twc, for ckpt-compress -d")
      ->group(group);
  app.add_option("--copy-retries", settings->copy_retries, "further attempts when a copy fails")
      ->group(group);
  app.add_option("--copy-timeout", settings->copy_timeout,
                 "time (90s, 10m, 1.5h) after which --copy-command is stopped and has failed")
      ->type_name("TIME")
      ->group(group);
  app.add_option(
         "--copy-queue", settings->copy_queue,
         "checkpoints that may wait for their copies; beyond that, the oldest is copied at the end, if "
         "--keep has left it")
      ->group(group);
  app.add_flag("--delete-after-copy", settings->delete_after_copy,
               "delete a checkpoint once its copy is verified (of a command: has ended with 0), but for the "
               "newest one and the best")
      ->group(group);
}

void DefineReportOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Input and output";
  app.add_option("--log-every", settings->log_every,
                 "steps between step records in metrics.jsonl (default: 1 on a CPU; 10 on a GPU, where "
                 "reading a step's numbers waits for the GPU)")
      ->group(group);
  app.add_option("--profile", settings->profile,
                 "time the parts of N optimizer steps after the first two: a trace in profile/trace.json of "
                 "the run, a table at the end; see PROFILE")
      ->type_name("N")
      ->group(group);
  app.add_option("--report", settings->report,
                 "make report.svg, report.html and training_metrics.json of a run directory again from its "
                 "metrics.jsonl, and nothing else")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--cache-dir", settings->cache_dir,
                 "folder on a fast disk that shards of another file system are copied to, for this run and "
                 "later ones; "
                 "and where --data - keeps its shards in a nameless file (default: no copies; $TMPDIR, or "
                 "/var/tmp)")
      ->type_name("DIR")
      ->group(group);
}

/// "(default: 32; 1 or more)". Empty where the help says it itself.
std::string DefaultOf(const OwnOption& own) {
  const std::string initial = own.initial.ToString();
  if (initial.empty() || own.help.find("(default") != std::string::npos) return "";
  std::string range;
  if (std::isfinite(own.least)) {
    const std::string least = OwnValue(own.least).ToString();
    range = own.most >= 1e9 ? "; " + least + " or more"
                            : "; from " + least + " to " + OwnValue(own.most).ToString();
  }
  return " (default: " + initial + range + ")";
}

/// The flag of an option that only an objective or a family has.
void AddOwnOption(CLI::App& app, const OwnOption& own, const std::string& group,
                  const std::function<void(const std::string&)>& take) {
  CLI::Option* option =
      app.add_option_function<std::string>("--" + own.flag(), take, own.help + DefaultOf(own));
  if (!own.choices.empty()) option->check(CLI::IsMember(own.choices));
  if (!own.type_name.empty()) option->type_name(own.type_name);
  option->group(group);
}

void DefineModelOptions(CLI::App& app, TrainSettings* settings) {
  app.add_option("--model", settings->model,
                 BuiltInDescriptions().DescribePresets() +
                     "; or the path of a config.json of one of these families (default: by device)")
      ->type_name("PRESET|FILE")
      ->group("Model");
  app.add_option("--init", settings->init,
                 "start a new run from the weights and the shape of this model: a folder of Hugging Face "
                 "transformers, a checkpoint, or a run directory; takes the place of --model. Its tokenizer "
                 "must be the data's. A run that is resumed has its own weights")
      ->type_name("DIR")
      ->group("Model");
}

/// Which shape a preset has, by what only its family has; and how a recurrence is computed.
void DefineFamilyOptions(CLI::App& app, TrainSettings* settings) {
  const FamilyList families = BuiltInDescriptions();
  for (const FamilyDescription* family : families.all()) {
    for (const OwnOption& own : family->options()) {
      AddOwnOption(app, own, FlagGroupOf(*family), [settings, name = own.name](const std::string& value) {
        settings->family_options[name] = value;
      });
    }
  }
  app.add_option(
         "--ten-scan", settings->ten_scan,
         "how the recurrence is computed. fused: by our kernels; chunked: by LibTorch's operators, all "
         "chunks at once; sequential: by them, a token at a time. Results differ by rounding (default: "
         "fused)")
      ->check(CLI::IsMember({"sequential", "chunked", "fused"}))
      ->group(FlagGroupOf(TenFamily()));
}

void DefineParameterOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Model";
  app.add_option("--freeze", settings->freeze,
                 "leave these parameters as they are: names or patterns with commas between them, such as "
                 "embed_tokens,layers.[0-3]; see PARAMETERS")
      ->type_name("NAMES")
      ->group(group);
  app.add_option("--lr-scale", settings->lr_scale,
                 "multiply the learning rate of parameters: NAME=FACTOR with commas between them, such as "
                 "lm_head=0.1,norm=2")
      ->type_name("NAME=FACTOR")
      ->group(group);
  app.add_option("--no-decay", settings->no_decay,
                 "parameters without weight decay, besides norms and biases: names as of --freeze")
      ->type_name("NAMES")
      ->group(group);
}

void DefineAdapterOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Model";
  app.add_option("--lora", settings->lora,
                 "train low-rank adapters of this rank and nothing else, see ADAPTERS")
      ->type_name("RANK")
      ->group(group);
  app.add_option("--lora-alpha", settings->lora_alpha,
                 "adapters are scaled by this over the rank (default: twice the rank)")
      ->group(group);
  app.add_option("--lora-dropout", settings->lora_dropout,
                 "probability of dropping an element of an adapter's input in training (default: 0)")
      ->group(group);
  app.add_option("--lora-targets", settings->lora_targets,
                 "matrices that get an adapter: all-linear, attention, mlp, or names with commas between "
                 "them, such as q_proj,v_proj (default: all-linear)")
      ->type_name("NAMES")
      ->group(group);
  app.add_flag("--rslora", settings->rslora,
               "scale adapters by --lora-alpha over the root of the rank (rsLoRA), not over the rank")
      ->group(group);
  app.add_flag("--dora", settings->dora,
               "train a magnitude for each output of a matrix with an adapter, too (DoRA), see ADAPTERS")
      ->group(group);
  app.add_option(
         "--lora-save-modules", settings->lora_save_modules,
         "modules beside the layers that are trained whole beside adapters and stored with them, with "
         "commas between them: embed_tokens,lm_head (default: none)")
      ->type_name("NAMES")
      ->group(group);
  app.add_option(
         "--quant", settings->quant,
         "keep the frozen matrices beside adapters in 4 bits: nf4 with double quantisation (default: none)")
      ->check(CLI::IsMember({"none", "nf4"}))
      ->group(group);
  app.add_option(
         "--adapter", settings->adapter,
         "continue training this adapter in peft's layout, with a new optimizer; its base is --init, or the "
         "folder that its adapter_config.json names")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--merge", settings->merge,
                 "instead of training, add this adapter to the weights of its base (--init, or the folder "
                 "that its adapter_config.json names) and write the sum as a model folder to --out")
      ->type_name("DIR")
      ->group(group);
  app.add_option(
         "--average", settings->average,
         "instead of training, write the mean of the weights of this model and of others, checkpoints "
         "of one run say, as a model folder to --out. Given once for each")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--allow-other-base", settings->allow_other_base,
               "with --adapter or --merge, take the adapter although its metadata.json records the sha256 of "
               "another base")
      ->group(group);
}

void DefinePrecisionOptions(CLI::App& app, TrainSettings* settings) {
  app.add_option(
         "--mixed-precision", settings->mixed_precision,
         "no, bf16, fp16 (with dynamic loss scaling), or auto: bf16 where the device is faster at it, "
         "fp16 on a GPU without bf16 (default: no)")
      ->check(CLI::IsMember({"no", "bf16", "fp16", "auto"}))
      ->group("Model");
  app.add_option("--residual-stream", settings->residual_stream,
                 "type in which a transformer's residual stream and its gradient are stored. bf16 (with "
                 "--mixed-precision bf16) halves their memory and traffic, see RESIDUAL STREAM")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->group("Model");
  app.add_option(
         "--fp8", settings->fp8,
         "with --mixed-precision bf16, compute the GEMMs of the layers' MLPs, of the head, or of both "
         "in fp8, with a scale for each operand; on a CPU only its rounding is simulated, see FP8 (default: "
         "off)")
      ->check(CLI::IsMember({"off", "mlp", "head", "mlp+head"}))
      ->group("Model");
  app.add_option("--seed", settings->seed,
                 "seed of the initial weights and the order of the data (default: 0)")
      ->group("Model");
}

void DefineLengthOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Length";
  app.add_option("--steps", settings->steps, "optimizer steps (default: one epoch, at least 100)")
      ->group(group);
  app.add_option("--epochs", settings->epochs, "passes over the data")->group(group);
  app.add_option("--tokens", settings->tokens, "tokens to train on, rounded up to whole steps")->group(group);
  app.add_option(
         "--max-minutes", settings->max_minutes,
         "save and stop after the step in which this time ends; the schedule does not change; 0: no limit")
      ->group(group);
}

void DefineWatchOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Length";
  app.add_option("--watchdog", settings->watchdog,
                 "when the loss diverges: warn, or stop (save and exit with 6); off also silences the "
                 "warnings of slow data, an idle GPU and growing memory")
      ->check(CLI::IsMember({"off", "warn", "stop"}))
      ->group(group);
  app.add_option("--watchdog-ratio", settings->watchdog_ratio,
                 "a loss diverges when three in a row exceed this many times its moving average")
      ->group(group);
  app.add_option("--cost-per-hour", settings->cost_per_hour,
                 "price of an hour of this machine, in any currency: metrics and reports then show the cost")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
}

void DefineStepOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Step";
  app.add_option(
         "--batch", settings->batch,
         "samples in a micro-batch (default: about 2,048 tokens on a CPU, 16,384 on a GPU, or fewer with "
         "more accumulation where a GPU's memory is too small)")
      ->group(group);
  app.add_option("--accum", settings->accum, "micro-batches in an optimizer step (default: 1)")->group(group);
  app.add_option("--max-tokens-per-batch", settings->max_tokens_per_batch,
                 "tokens in a micro-batch, at most: a step keeps its batch x accum samples, and has as many "
                 "micro-batches as that takes; a longer sample is an error (default: 0, no limit)")
      ->type_name("N")
      ->group(group);
  app.add_option(
         "--seq", settings->seq,
         "most tokens in a sample; longer documents are split (default: the model's context, at most 2048)")
      ->group(group);
  app.add_option("--tbptt", settings->tbptt,
                 "tokens of a micro-batch that are computed at once, in the memory of that many (truncated "
                 "backpropagation through time): the state is carried over, the gradient is not. Of models "
                 "that have a state (ten); see MEMORY (default: 0, all of them)")
      ->type_name("N")
      ->group(group);
}

void DefineScheduleOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Optimizer";
  app.add_option(
         "--lr", settings->lr,
         "peak learning rate (default: 0.5 / hidden size, at most 0.003, see OPTIMIZERS for others than "
         "adamw)")
      ->group(group);
  app.add_option("--schedule", settings->schedule,
                 "learning rate over the run, see SCHEDULES (default: cosine)")
      ->check(CLI::IsMember({"cosine", "linear", "constant", "wsd", "one-cycle"}))
      ->group(group);
  app.add_option("--warmup", settings->warmup,
                 "steps of warm-up (default: a twentieth of the run, at most 1000; one-cycle: a tenth)")
      ->group(group);
  app.add_option("--warmup-ratio", settings->warmup_ratio,
                 "warm-up as a share of the run, rounded up to whole steps, in place of --warmup")
      ->group(group);
  app.add_option("--decay-steps", settings->decay_steps,
                 "last steps of the run in which wsd decays (default: a fifth of the run)")
      ->group(group);
  app.add_option("--min-lr-ratio", settings->min_lr_ratio,
                 "learning rate at the last step over the peak (default: 0.1; wsd: 0); not for one-cycle and "
                 "constant")
      ->group(group);
  app.add_flag("--replan-schedule", settings->replan_schedule,
               "with --resume and a greater length, let the steps to come follow the schedule of the longer "
               "run; constant and wsd do not need this")
      ->group(group);
  app.add_flag("--cycle-momentum", settings->cycle_momentum,
               "with one-cycle, move beta1 from 0.95 to 0.85 and back, against the learning rate")
      ->group(group);
}

void DefineAdamOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Optimizer";
  app.add_option("--optimizer", settings->optimizer,
                 "what updates the weights, see OPTIMIZERS (default: adamw)")
      ->check(CLI::IsMember(NamesOf(BuiltInOptimizerDescriptions())))
      ->group(group);
  app.add_option("--optimizer-option", settings->optimizer_options,
                 "an option that only the optimizer has, see OPTIMIZERS; may be repeated")
      ->type_name("NAME=VALUE")
      ->group(group);
  app.add_option("--beta1", settings->beta1, "decay of the first moment, or of a momentum (default: 0.9)")
      ->group(group);
  app.add_option("--beta2", settings->beta2,
                 "decay of the second moment, or of lion's momentum (default: 0.95; "
                 "lion: 0.99)")
      ->group(group);
  app.add_option("--adam-eps", settings->adam_eps, "AdamW's epsilon (default: 1e-8)")->group(group);
  app.add_option("--optimizer-states", settings->optimizer_states,
                 "how AdamW's two moments are kept: fp32 (default), or bf16, stochastically rounded, in half "
                 "the memory")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->group(group);
  app.add_option("--weight-decay", settings->weight_decay,
                 "decay of the matrices, embeddings among them; norms have none (default: 0.1; "
                 "lion: 1; sgd: 0)")
      ->group(group);
  app.add_option("--clip", settings->clip, "largest gradient norm; 0: no clipping (default: 1)")
      ->group(group);
  app.add_option("--ema", settings->ema,
                 "keep a moving average of the weights with this decay (0.999) and save it in the folder "
                 "average of every checkpoint; 0: none (default)")
      ->group(group);
  app.add_option("--skip-loss-z", settings->skip_loss_z,
                 "skip the update of a step whose loss is more than this many standard deviations above the "
                 "mean of 128 steps; 0: none (default)")
      ->group(group);
  app.add_option("--skip-grad-z", settings->skip_grad_z,
                 "likewise, of a step whose gradient norm is; 0: none (default)")
      ->group(group);
}

void DefineLossOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Loss";
  app.add_option(
         "--objective", settings->objective,
         "training objective. lm: to predict every token; sft: to predict of conversations (pretokenize "
         "--records sft) what --loss-on says; grit: to embed texts (pretokenize --records contrastive), to "
         "predict them, or both; auto: grit if contrastive records are among the data, sft if it holds "
         "conversations, else lm")
      ->check(CLI::IsMember(NamesOf(BuiltInObjectiveDescriptions(), {"auto"})))
      ->group(group);
  app.add_option("--objective-option", settings->objective_options,
                 "an option that only the objective has; may be repeated (lm and sft have none, those of "
                 "grit have flags of their own)")
      ->type_name("NAME=VALUE")
      ->group(group);
  app.add_option(
         "--loss-on", settings->loss_on,
         "with --objective sft: assistant for the answers and their end-of-turn tokens, all for every "
         "token (default: assistant)")
      ->check(CLI::IsMember({"assistant", "all"}))
      ->group(group);
  app.add_option("--z-loss", settings->z_loss,
                 "adds this times log^2 Z to the loss of a label, Z the softmax's denominator (default: 0)")
      ->group(group);
  app.add_option("--label-smoothing", settings->label_smoothing,
                 "share of a label's probability that is spread evenly over all tokens (default: 0)")
      ->group(group);
}

/// A flag for each option that only an objective has: one more of those that --objective-option takes. Its
/// values stand in the same list, which is why that flag, which sets the whole list, is defined before.
void DefineObjectiveOptions(CLI::App& app, const ObjectiveDescription& objective, TrainSettings* settings) {
  for (const OwnOption& own : objective.own) {
    if (!own.has_flag()) continue;
    AddOwnOption(app, own, FlagGroupOf(objective.name),
                 [settings, name = own.name](const std::string& value) {
                   settings->objective_options.push_back(name + "=" + value);
                 });
  }
}

void DefineLoaderOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Loader";
  app.add_option("--workers", settings->workers,
                 "threads that decode and cut samples ahead; 0: the training thread does it; auto: by device "
                 "and size of the data")
      ->group(group);
  app.add_option("--prefetch", settings->prefetch,
                 "windows of 64 chunks in flight or ready per worker (default: 1 on a CPU, 2 on a GPU)")
      ->group(group);
  app.add_option("--pin", settings->pin,
                 "whether micro-batches are copied to a GPU asynchronously, through pinned memory; no effect "
                 "on a CPU")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->group(group);
  app.add_flag("--drop-last", settings->drop_last,
               "skip the last samples of an epoch that do not fill a step, so that no step mixes two epochs")
      ->group(group);
  app.add_option("--packing", settings->packing,
                 "off: each sample is one document, or a piece of one longer than --seq; on: as many as fit "
                 "are packed end to end, and each attends to itself alone (default: on)")
      ->check(CLI::IsMember({"on", "off"}))
      ->group(group);
  app.add_flag("--group-by-length", settings->group_by_length,
               "samples of similar length come together, in groups of 64 within a window of the data; an "
               "epoch has the same samples")
      ->group(group);
  app.add_option(
         "--shuffle-block", settings->shuffle_block,
         "chunks that follow each other in the data and stay together when it is shuffled (default: 1)")
      ->type_name("N")
      ->group(group);
  app.add_option("--data-cache", settings->data_cache,
                 "bytes of decoded shards to keep for random access, as 64MiB or 1GB; auto: 64 MiB where "
                 "chunks share frames, else none")
      ->type_name("SIZE")
      ->group(group);
  app.add_option("--skip-bad-chunks", settings->skip_bad_chunks,
                 "train on when up to this many chunks cannot be read: others take their places")
      ->type_name("N")
      ->group(group);
  app.add_option("--data-timeout", settings->data_timeout_s,
                 "seconds to wait for data that --workers read before the run ends and names the chunk that "
                 "does not arrive; 0: no limit")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("SECONDS")
      ->group(group);
}

void DefineInsteadOptions(CLI::App& app, TrainSettings* settings) {
  app.add_flag("--dry-run", settings->dry_run,
               "report memory, steps, tokens, time and disk of the run by running one micro-batch, and stop")
      ->group("Instead of training");
  app.add_flag("--explain", settings->explain, "print every option, its value, who gave it and why, and stop")
      ->group("Instead of training");
  CLI::Option* const status =
      app.add_option("--status", settings->status,
                     "report the state of a run: exit status 0 complete, 1 not complete, 3 damaged, 4 no "
                     "run there; see COMPLETE RUNS")
          ->type_name("DIR")
          ->group("Instead of training");
  app.add_flag("--json", settings->status_json, "with --status, one JSON object on standard output")
      ->needs(status)
      ->group("Instead of training");
}

void DefineWorldOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Ranks on paper";
  app.add_option(
         "--world", settings->world,
         "with --dry-run, estimate bytes, time and memory of a rank for this many ranks that are not here; "
         "see PARALLELISM")
      ->type_name("N,N,...")
      ->group(group);
  app.add_option(
         "--bandwidth", settings->bandwidth,
         "with --world: what a rank sends and receives at once, in bytes or bits a second: 50GB, 400Gbit")
      ->type_name("RATE")
      ->group(group);
  app.add_option("--latency", settings->latency, "with --world: latency of a message (default: 20us)")
      ->type_name("TIME")
      ->group(group);
  app.add_option("--device-tflops", settings->device_tflops,
                 "with --world: compute rate of a rank in 1e12 operations a second (default: as measured "
                 "here)")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--device-memory", settings->device_memory,
                 "with --world: memory of a rank's GPU, as 80GiB (default: a rank has what this machine has)")
      ->type_name("SIZE")
      ->group(group);
}

void DefineMemoryOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Memory";
  app.add_flag(
         "--auto-oom", settings->auto_oom,
         "where memory runs out, halve the micro-batch, accumulate over twice as many, and continue with "
         "the same samples a step")
      ->group(group);
  app.add_flag("--find-batch", settings->find_batch,
               "measure, for at most about 20 s, the smallest --batch that trains about as fast as any that "
               "fits; with --batch or --accum a step keeps its number of samples, else --accum makes it 16 "
               "at least")
      ->group(group);
  app.add_option("--mem-fraction", settings->mem_fraction,
                 "fail with status 5 when more than this share of the memory that is available at the start "
                 "would be used; of a GPU, of its total memory")
      ->type_name("F")
      ->group(group);
  app.add_option("--empty-cache-every", settings->empty_cache_every,
                 "every N steps release the GPU memory that torch caches, and allocate it again in the next "
                 "step; 0: never")
      ->type_name("N")
      ->group("Memory");
  app.add_option("--checkpoint-activations", settings->checkpoint_activations,
                 "which activations of the layers are recomputed in the backward pass instead of kept. "
                 "least: the outputs of norms; no: those of SwiGLU or GELU, too; selective: the inner "
                 "activations of the MLP; full: all but the layers' inputs")
      ->check(CLI::IsMember({"least", "no", "selective", "full"}))
      ->group(group);
  app.add_option("--offload", settings->offload,
                 "what is offloaded to pinned host memory (GPU) or to a file (CPU) until it is needed. "
                 "activations: what the layers keep for the backward pass; gradients: those of the layers "
                 "that are not being computed; all: both")
      ->check(CLI::IsMember({"no", "activations", "gradients", "all"}))
      ->group(group);
  app.add_option("--offload-dir", settings->offload_dir,
                 "folder of that file, which has no name (default: $TMPDIR, or /var/tmp)")
      ->type_name("DIR")
      ->group(group);
}

void DefineDeviceOptions(CLI::App& app, TrainSettings* settings) {
  AddDeviceOptions(app, "Device", &settings->device, &settings->attn_backend, &settings->threads,
                   &settings->kernels);
  app.add_option("--tf32", settings->tf32,
                 "on: a GPU's fp32 GEMMs (--mixed-precision no) round their inputs to TF32, 10 bits of "
                 "mantissa, and are faster: the relative error of one is reported when a run begins; off: "
                 "fp32 is fp32")
      ->check(CLI::IsMember({"on", "off"}))
      ->group("Device");
  app.add_option(
         "--compile", settings->compile,
         "graph: on a GPU repeat the passes of a micro-batch as one launch (a CUDA graph); auto: do so "
         "where launches bound the step; off: kernel by kernel (see COMPILATION)")
      ->check(CLI::IsMember({"off", "graph", "auto"}))
      ->group("Device");
  app.add_flag("--deterministic", settings->deterministic,
               "use only deterministic GPU algorithms, and fail where there is none; on a CPU runs are equal "
               "bit for bit anyway")
      ->group("Device");
  app.add_option("--alloc-conf", settings->alloc_conf,
                 "settings of torch's GPU memory allocator, in place of the variable PYTORCH_CUDA_ALLOC_CONF "
                 "and in its syntax: expandable_segments:True,max_split_size_mb:512")
      ->type_name("CONF")
      ->group("Device");
  app.add_option("--peak-tflops", settings->peak_tflops,
                 "peak rate of the device in 1e12 operations a second, for mfu in the records (default: the "
                 "published dense rate of a GPU that is known by name; see UTILISATION)")
      ->check(CLI::PositiveNumber)
      ->group("Device");
}

void DefineRankOptions(CLI::App& app, TrainSettings* settings) {
  const std::string group = "Several processes";
  AddRankOptions(app, group, &settings->nproc, &settings->dist_timeout_s);
  app.add_option("--exact-world", settings->exact_world,
                 "make the weights the same, bit for bit, on 1, 2, 4 and so on up to N processes; N is a "
                 "power of two (default: 0, the same within rounding)")
      ->type_name("N")
      ->group(group);
  app.add_option("--zero", settings->zero,
                 "what is sharded over the processes. 0: nothing; 1: moments and master weights; 2: "
                 "gradients, too (default: 0)")
      ->type_name("STAGE")
      ->group(group);
  app.add_option("--zero-accum", settings->zero_accum,
                 "with --zero 2 and --accum: reduce the gradients to their owners after each micro-batch "
                 "(reduce), or accumulate them in a full buffer first (keep) (default: reduce)")
      ->check(CLI::IsMember({"reduce", "keep"}))
      ->group(group);
  app.add_option("--ddp-bucket-mb", settings->ddp_bucket_mb,
                 "MiB of gradients in a bucket, which the processes reduce at once, overlapped with the "
                 "backward pass")
      ->type_name("MB")
      ->group(group);
}

}  // namespace

void DefineTrainOptions(CLI::App& app, TrainSettings* settings) {
  DefineDataOptions(app, settings);
  DefineEvaluationOptions(app, settings);
  DefineSavingOptions(app, settings);
  DefineCopyOptions(app, settings);
  DefineReportOptions(app, settings);
  DefineModelOptions(app, settings);
  DefineParameterOptions(app, settings);
  DefineAdapterOptions(app, settings);
  DefinePrecisionOptions(app, settings);
  DefineFamilyOptions(app, settings);
  DefineLengthOptions(app, settings);
  DefineWatchOptions(app, settings);
  DefineStepOptions(app, settings);
  DefineScheduleOptions(app, settings);
  DefineAdamOptions(app, settings);
  DefineLossOptions(app, settings);
  for (const ObjectiveDescription& objective : BuiltInObjectiveDescriptions()) {
    DefineObjectiveOptions(app, objective, settings);
  }
  DefineLoaderOptions(app, settings);
  DefineInsteadOptions(app, settings);
  DefineWorldOptions(app, settings);
  DefineMemoryOptions(app, settings);
  DefineDeviceOptions(app, settings);
  DefineRankOptions(app, settings);
}

}  // namespace trainwright

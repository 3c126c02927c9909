/// What a user asks of `train`, as parsed. Free of torch: the command line is built from it.
///
/// Optional fields, and strings that are empty, are those whose default depends on the data, the device or
/// the run that is resumed; they keep "not asked for" apart from "asked for the default", which a resumed run
/// must know to refuse a conflict.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/spec/own_options.h"

namespace trainwright {

struct TrainSettings {
  std::string preset;     ///< whose values the others hold where nobody gave any; empty: none
  std::string deepspeed;  ///< a file of DeepSpeed's that was read into the others; empty: none

  // Input and output.
  std::vector<std::string> data;   ///< sealed folders, files, or "-"; empty: shards/
  std::string data_weights;        ///< as ParseMixtureWeights takes it; empty: each chunk once an epoch
  std::string out;                 ///< run directory; empty: runs/<preset>-NNN, or the newest run to resume
  std::optional<int64_t> profile;  ///< optimizer steps whose time is divided among its parts; absent: none
  std::string report;        ///< a run directory whose reports are made again, and nothing else; or empty
  std::string status;        ///< a run directory whose state is reported, and nothing else; or empty
  bool status_json = false;  ///< as JSON
  bool resume = false;
  bool allow_data_change = false;
  std::string branch_from;  ///< a checkpoint that a new run begins with: RUN or RUN@STEP; empty: none
  std::string cache_dir;    ///< of copies of the data; empty: of piped data alone, in $TMPDIR or /var/tmp
  std::vector<std::string> eval_data;  ///< shard sets to evaluate on, together; empty: none
  std::string eval_split;  ///< as ParseDocumentSplit takes it: held out of the data; empty: nothing
  std::optional<uint64_t> eval_split_seed;  ///< absent: 0
  std::optional<int64_t> eval_every;        ///< optimizer steps; 0: at start and end only
  std::optional<int64_t> early_stop;   ///< end after this many evaluations without a better one; absent: no
  std::optional<int64_t> eval_tokens;  ///< evaluate on about this many tokens of it; absent: all

  // Model.
  std::string model;          ///< preset or config.json
  std::string init;           ///< model folder or run whose weights a new run starts from; empty: none
  OwnOptions family_options;  ///< what was said of a preset's shape, as ChooseShape takes it

  // What of it is trained. Without `lora` and `adapter`: everything.
  std::optional<int64_t> lora;  ///< rank of low-rank adapters
  std::optional<double> lora_alpha, lora_dropout;
  std::string lora_targets;                ///< as in LoraOptions; empty: all-linear
  bool rslora = false;                     ///< adapters are scaled by alpha over the rank's root
  bool dora = false;                       ///< outputs with an adapter have a magnitude that is trained
  std::string lora_save_modules;           ///< as ChooseSavedModules takes them; empty: none
  std::string quant;                       ///< "nf4" or "none": of the frozen matrices; empty: none
  std::string adapter;                     ///< a folder in peft's layout to continue with; empty: none
  bool allow_other_base = false;           ///< than the one that `adapter` or `merge` was trained on
  std::string freeze, lr_scale, no_decay;  ///< as in ParameterRules; empty: nothing said
  std::string merge;  ///< an adapter that is merged into its base, and nothing else; empty: none
  std::vector<std::string> average;  ///< models whose mean is written, and nothing else; empty: none

  // The plan: how long, how much at once, how fast. One of steps, epochs, tokens.
  std::optional<int64_t> steps;
  std::optional<double> epochs;
  std::optional<int64_t> tokens;
  std::optional<int64_t> batch;                 ///< samples of a micro-batch
  std::optional<int64_t> accum;                 ///< micro-batches of a step
  std::optional<int64_t> max_tokens_per_batch;  ///< of a micro-batch; absent or 0: `batch` samples
  std::optional<int64_t> seq;                   ///< tokens of a sample, at most
  std::optional<double> lr;
  std::optional<double> min_lr_ratio;
  std::string schedule;
  std::optional<int64_t> warmup;       ///< steps
  std::optional<double> warmup_ratio;  ///< the same as a share of the run
  std::optional<int64_t> decay_steps;  ///< of the wsd schedule
  bool cycle_momentum = false;         ///< beta1 along the one-cycle schedule
  bool replan_schedule = false;        ///< see ExtendRun
  std::optional<double> beta1, beta2, adam_eps;
  std::optional<double> weight_decay;
  std::string optimizer;                       ///< its name in the registry; empty: adamw
  std::vector<std::string> optimizer_options;  ///< that only it has, as ParseOwnOptions takes them
  std::string optimizer_states;                ///< as ParseOptimizerStates takes it; empty: fp32
  std::optional<double> clip;
  std::optional<double> ema;                       ///< decay of the weights' moving average; absent: none
  std::optional<double> skip_loss_z, skip_grad_z;  ///< see UpdateRules
  std::string objective = "auto";              ///< its name in the registry, or auto: by the data's records
  std::vector<std::string> objective_options;  ///< that only it has, as ParseOwnOptions takes them
  std::string loss_on;                         ///< as ParseLossOn takes it; empty: assistant
  std::optional<double> z_loss, label_smoothing;
  std::optional<int64_t> tbptt;          ///< see StepDivision; 0: off
  bool drop_last = false;                ///< no step mixes two epochs
  std::optional<int64_t> shuffle_block;  ///< chunks that stay together; absent: 1
  bool group_by_length = false;          ///< samples of about one length come together
  std::string packing;                   ///< as ParsePacking takes it; empty: on
  std::optional<uint64_t> seed;
  std::string mixed_precision;
  std::string fp8;  ///< as ParseFp8Parts takes it; empty: off

  // The loader; changes no result.
  std::string workers = "auto";     ///< a number of threads, or "auto"
  std::optional<int64_t> prefetch;  ///< windows a worker
  std::string pin = "auto";         ///< "on", "off" or "auto": through pinned memory to a GPU
  std::string data_cache = "auto";  ///< bytes of decoded frames, or "auto"
  int64_t skip_bad_chunks = 0;      ///< most chunks that may be unreadable
  double data_timeout_s = 1800;     ///< longest wait for a window; 0: none is too long

  // Instead of training.
  bool dry_run = false;  ///< say what the run would take
  bool explain = false;  ///< say what every option resolved to, and why

  // Of a dry run on paper; see WorldSettings.
  std::string world;                    ///< numbers of ranks: "8,64,512"; empty: none
  std::string bandwidth;                ///< as ParseBandwidth takes it
  std::string latency;                  ///< as ParseLatency takes it; empty: 20us
  std::optional<double> device_tflops;  ///< that a rank computes at; absent: as measured here
  std::string device_memory;            ///< of a rank's GPU, as ParseBytes takes it; empty: as this machine's

  // Where and how it runs; changes no result beyond rounding.
  int threads = 0;  ///< 0: usable physical cores
  std::string device = "auto";
  std::string kernels = "auto";        ///< of GEMMs on a CPU: auto, usual, or as ParseCpuGemms takes it
  std::optional<double> peak_tflops;   ///< of the device, 1e12 operations a second; absent: by its name
  bool auto_oom = false;               ///< halve the micro-batch where memory runs out
  std::optional<double> mem_fraction;  ///< cap on memory, of what is free at the start
  bool find_batch = false;             ///< measure the micro-batch that trains fastest
  std::string checkpoint_activations = "no";  ///< as ParseActivationCheckpointing takes it
  std::string offload = "no";                 ///< as ParseOffloadChoice takes it
  std::string offload_dir;                    ///< of a CPU's: where; empty: $TMPDIR or /var/tmp
  std::string tf32 = "off";                   ///< on or off: fp32 GEMMs of a GPU round to TF32
  std::string compile = "off";                ///< as ParseCompileMode takes it
  bool deterministic = false;                 ///< of a GPU: only algorithms with the same bits every time
  std::string alloc_conf;                     ///< as CheckAllocatorConf takes it; empty: the environment's
  int64_t empty_cache_every = 0;              ///< steps; 0: what torch keeps free of a GPU's memory stays
  std::string attn_backend = "auto";          ///< as ParseAttentionBackend takes it
  std::string residual_stream = "fp32";       ///< fp32 or bf16: see ComputeKinds::residual
  std::string ten_scan;                       ///< as ParseScanKind takes it; empty: fused
  std::string save_every;                     ///< as ParseSaveInterval takes it; empty: a tenth of the run
  std::string async_save = "auto";   ///< on, off or auto: checkpoints are written by a thread of their own
  int64_t keep = 3;                  ///< checkpoints; 0: all
  int64_t keep_best = 0;             ///< checkpoints of the lowest evaluation loss that stay besides
  bool save_model_only = false;      ///< checkpoints without what a run resumes from
  bool compress_state = false;       ///< trainwright_state.safetensors, without loss
  bool compress_model = false;       ///< model.safetensors, without loss; transformers does not open it then
  std::string copy_to;               ///< folder that gets a copy of every checkpoint; empty: none
  std::string copy_command;          ///< run after every checkpoint; empty: none
  bool copy_compress = false;        ///< copies in copy_to, as ckpt-compress does
  int copy_retries = 2;              ///< of a copy that fails
  std::string copy_timeout = "1h";   ///< of the command, as ParseSaveInterval takes times
  int64_t copy_queue = 4;            ///< checkpoints that may wait for their copies
  bool delete_after_copy = false;    ///< delete checkpoints that have a verified copy
  std::optional<int64_t> log_every;  ///< steps between metrics records; absent: by the device
  double max_minutes = 0;            ///< 0: no limit
  std::string watchdog = "warn";     ///< off, warn or stop, when the loss diverges
  std::optional<double> cost_per_hour;  ///< of the machine, for the metrics; absent: not reported
  double watchdog_ratio = 1.5;          ///< of the loss to its moving average

  // Ranks.
  int64_t nproc = 1;                   ///< that this program starts on this machine
  std::optional<int64_t> exact_world;  ///< see TrainPlan::exact_world; 0: off
  double ddp_bucket_mb = 25;           ///< 2^20 bytes of gradients that travel together
  std::optional<int64_t> zero;         ///< of ZeRO's stages: 0, 1 or 2
  std::string zero_accum;              ///< reduce or keep: see TrainPlan::gives_gradients_away; empty: reduce
  double dist_timeout_s = 60;          ///< within which a rank at fault ends all others
};

/// "a, b": for messages.
inline std::string JoinedPaths(const std::vector<std::string>& paths) {
  std::string names;
  for (const std::string& path : paths) names += (names.empty() ? "" : ", ") + path;
  return names;
}

/// The paths of --data, or the default.
inline std::vector<std::string> DataPaths(const TrainSettings& settings) {
  return settings.data.empty() ? std::vector<std::string>{"shards"} : settings.data;
}

/// Those of --ddp-bucket-mb.
inline int64_t BucketBytes(const TrainSettings& settings) {
  constexpr double kLeast = 4, kMost = 1e15;
  return static_cast<int64_t>(std::clamp(settings.ddp_bucket_mb * (1 << 20), kLeast, kMost));
}

}  // namespace trainwright

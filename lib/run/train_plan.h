/// What a training run will do, decided once at its start and stored in every checkpoint: two runs with equal
/// plans, data and weights are the same run. Each option of it is a row of the table in lib/run/plan_table.h.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "lib/loading/document_split.h"
#include "lib/loading/micro_batch_rule.h"
#include "lib/loading/sample_stream.h"
#include "lib/run/schedule_shares.h"
#include "lib/spec/fine_tuning.h"
#include "lib/spec/fp8_parts.h"
#include "lib/spec/objective_names.h"
#include "lib/spec/optimizer_options.h"
#include "lib/spec/precision.h"
#include "lib/spec/schedule.h"
#include "lib/spec/sharding.h"

namespace trainwright {

/// What is added to the cross-entropy of labels.
struct LossAddends {
  double z_loss = 0, label_smoothing = 0;
};

/// How the samples of an optimizer step are divided.
struct StepDivision {
  int64_t batch = 1;  ///< samples of a micro-batch
  int64_t accum = 1;  ///< micro-batches of a step in each rank
  int64_t ranks = 1;  ///< processes that share each step, in equal parts
  /// Equal parts of each step, of consecutive micro-batches, whose gradients and losses are added up as a
  /// balanced tree: bits are the same on any number of ranks that divides it. A power of two; 0: not so.
  int64_t exact_world = 0;
  /// Tokens of a micro-batch that are computed at once: see LanguageModel::set_tbptt. 0: all.
  int64_t tbptt = 0;
  /// Most tokens of a micro-batch: then they alone, and not `batch`, divide the samples of a step. 0: no
  /// limit.
  int64_t max_batch_tokens = 0;

  MicroBatchRule micro_batches() const { return {.samples = batch, .max_tokens = max_batch_tokens}; }
  int64_t samples_per_rank() const { return batch * accum; }  ///< of a step
  int64_t samples_per_step() const { return samples_per_rank() * ranks; }
};

/// How samples are made of the data, besides their length.
struct SampleMaking {
  Packing packing = Packing::kOn;  ///< of documents
  bool group_by_length = false;    ///< see SampleOrderOptions
  uint64_t block_chunks = 1;       ///< that stay together
};

/// The numbers that the passes compute with.
struct NumberTypes {
  Precision precision = Precision::kFp32;
  Fp8Parts fp8 = {};  ///< whose GEMMs are in fp8, beside a precision of bf16
};

/// What may come between the gradients of a step and its update.
struct UpdateRules {
  double clip = 1.0;  ///< largest gradient norm; 0: none
  /// The z-scores of a step's loss and gradient norm above which its update is skipped; 0: none is.
  double skip_loss_z = 0, skip_grad_z = 0;
};

/// The initial values are the defaults of options that depend on nothing else.
struct TrainPlan : StepDivision, NumberTypes, UpdateRules {
  int64_t sequence_tokens = 512;
  uint64_t window_chunks = 64;
  uint64_t seed = 0;
  ScheduleOptions schedule;  ///< its total_steps is the length of the run
  ScheduleShares shares;     ///< of it
  OptimizerOptions optimizer;
  std::string objective = kDefaultObjective;  ///< its name in the registry
  LossOn loss_on = LossOn::kAssistant;        ///< see labels_on
  LossAddends loss_addends;
  OwnOptions objective_own = {};  ///< options that only the objective has
  /// What is trained. Its `embedding` follows from the objective's own options and is not stored, as `takes`.
  FineTuning tuning;
  std::optional<DocumentSplit> eval_split;  ///< of the data, whose held-out documents are evaluated on
  bool drop_last = false;                   ///< skip the samples left of an epoch that do not fill a step
  SampleMaking samples;
  int64_t zero = 0;  ///< what of the state each rank keeps only its part of: the number of a Sharding
  ZeroAccumulation zero_accumulation = ZeroAccumulation::kReduce;
  std::string data_weights;  ///< as ParseMixtureWeights takes it; empty: each chunk once an epoch
  /// What fixed the number of steps: "steps 100", "epochs 2", "tokens 1000000", "default".
  std::string length_rule;
  /// Which of the options that not all objectives and optimizers take these take, by their names in a state.
  /// Not stored: who knows them says so (lib/run/plan_choices.h).
  std::set<std::string> takes;

  /// Whether its objective or its optimizer takes an option; those of this library are known without `takes`.
  bool Takes(const std::string& stored) const;
  /// What of records that say so the labels are, in training and in evaluation.
  LossOn labels_on() const { return Takes("loss_on") ? loss_on : LossOn::kAll; }
  SampleStreamOptions stream_options() const;
  /// Of a micro-batch.
  int64_t most_batch_tokens() const {
    return max_batch_tokens > 0 ? max_batch_tokens : batch * sequence_tokens;
  }
  /// Of its ranks: one alone has nothing to divide.
  Sharding sharding() const { return ranks > 1 ? static_cast<Sharding>(zero) : Sharding::kNone; }
  bool gives_gradients_away() const {
    const int64_t most_micro_batches = max_batch_tokens > 0 ? samples_per_rank() : accum;
    return GivesGradientsAway(sharding(), zero_accumulation, most_micro_batches, exact_world > 0);
  }
};

}  // namespace trainwright

/// The whole of `evaluate`: checkpoint + shards or raw text -> one JSON object.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/device/process_setup.h"
#include "lib/dist/world.h"
#include "lib/loading/sample_stream.h"
#include "lib/model/model_family.h"
#include "lib/objective/objective_registry.h"
#include "lib/report/progress.h"

namespace trainwright {

struct EvaluateJobOptions {
  std::string checkpoint;
  std::string adapter;            ///< in peft's layout, beside the checkpoint; empty: none
  bool allow_other_base = false;  ///< than the one that the adapter was trained on
  std::string data;               ///< shards or text; "-" is standard input
  std::string format = "auto";    ///< auto, shards, lines, jsonl, paragraphs, nul, file, parquet
  std::vector<std::string> keys;  ///< of JSON lines; empty: "text"
  /// Of raw text, as pretokenize's; nothing said: as the checkpoint's training data was written.
  std::optional<bool> add_bos, add_eos;
  std::string
      flag_of_text;  ///< of these three, or their opposites, one that shards are refused with; or empty
  bool allow_other_tokenizer = false;
  LossOn loss_on = LossOn::kAssistant;  ///< of shards of sft records
  std::string eval_split;               ///< of shards, as ParseDocumentSplit takes it: only these; empty: all
  uint64_t eval_split_seed = 0;
  int64_t sequence_tokens = 0;  ///< 0: the model's context
  int64_t batch_sequences = 8;
  /// Of a micro-batch, but for what its last sequence has beyond them; 0: as many as its sequences may have.
  int64_t most_batch_tokens = 32768;
  std::string mixed_precision = "no";
  std::string quant = "none";  ///< as ParseWeightFormat takes it
  ProcessSetup process;
  std::string attn_backend = "auto";  ///< as ParseAttentionBackend takes it
  std::string logits_path;  ///< file or device that gets the first micro-batch's logits; empty: none
  /// Whether records whose tokens are not predicted are measured without logits; else they are refused.
  bool logits_if_any = false;
  World* world = Solo();  ///< whose ranks divide the work and have the same options
};

/// Text, conversations: how well each next token is predicted. Shards of other records, not on a pipe: what
/// the objective measures that the checkpoint was trained for, with its options, or the first that takes
/// them, of vectors as the model's folder says that it makes them. Several ranks have the result of one with
/// as many threads as each of them; the writer alone writes logits and says what was measured.
/// \returns loss_nats, perplexity, bits_per_byte, bits_per_token (of other records: what the objective
///     measures in place of these, and where it makes vectors, "embedding"), tokens, docs, and what they were
///     measured with and on: model, adapter and data with their hashes
/// \throws Error: kBadInput (data, checkpoint, other tokenizer), kUsage (also where a rank has another model
///     or other data, and where logits would replace what is read, or are asked for of records whose tokens
///     are not predicted, unless logits_if_any), kIo (also where another rank failed), kDevice, kNonFinite
nlohmann::ordered_json RunEvaluate(const ModelFamilies& families, const ObjectiveRegistry& objectives,
                                   const EvaluateJobOptions& options, ProgressMode progress);

}  // namespace trainwright

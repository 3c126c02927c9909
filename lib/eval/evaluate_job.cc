#include "lib/eval/evaluate_job.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/device/memory_error.h"
#include "lib/dist/equal_facts.h"
#include "lib/dist/shared_work.h"
#include "lib/documents/document_reader.h"
#include "lib/documents/document_text.h"
#include "lib/embedding/embedding_settings.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/embedding/text_embedder.h"
#include "lib/eval/identity.h"
#include "lib/eval/rank_input.h"
#include "lib/formats/json_text.h"
#include "lib/formats/provenance.h"
#include "lib/formats/record_kind.h"
#include "lib/formats/safetensors.h"
#include "lib/formats/shard_set.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/formats/zstd_frame.h"
#include "lib/io/byte_sink.h"
#include "lib/loading/document_split.h"
#include "lib/model/open_model.h"
#include "lib/nn/precision_option.h"
#include "lib/objective/perplexity.h"
#include "lib/spec/objective_names.h"
#include "lib/spec/weight_format.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxDocumentBytes = uint64_t{1} << 30;

bool IsShards(const EvaluateJobOptions& options) {
  if (options.format != "auto") return options.format == "shards";
  if (std::filesystem::is_directory(options.data)) return true;
  if (std::filesystem::path(options.data).extension() == ".tws") return true;
  if (!std::filesystem::is_regular_file(options.data)) return false;
  uint32_t first = 0;  // `pack -o FILE` takes any name
  std::ifstream(options.data, std::ios::binary).read(reinterpret_cast<char*>(&first), sizeof(first));
  return first == kHeaderFrameMagic;
}

void CheckTokenizer(const Checkpoint& checkpoint, const TokenizerIdentity& data,
                    const EvaluateJobOptions& options) {
  const auto warn = [&](const std::string& message) {
    if (options.world->is_writer()) LogWarning(message);
  };
  if (checkpoint.tokenizer == nullptr) {
    warn(checkpoint.folder +
         ": holds no tokenizer that this build knows; the data's is not checked against it");
    return;
  }
  if (data.kind == kUnknownTokenizerKind) {
    warn(options.data + ": was packed without its tokenizer (pack --tokenizer): that its ids are those of " +
         checkpoint.folder + " is not checked");
    return;
  }
  const Sha256Digest& expected = checkpoint.tokenizer->identity().sha256;
  if (data.sha256 == expected) return;
  const std::string problem = "was made with another tokenizer (sha256 " + HexEncode(data.sha256) +
                              ") than the checkpoint's (" + HexEncode(expected) + ")";
  if (!options.allow_other_tokenizer) {
    throw Error(ErrorCode::kBadInput, options.data, problem, "",
                "pretokenize it with the checkpoint's tokenizer, or pass --allow-other-tokenizer");
  }
  warn(options.data + ": " + problem);
}

/// Writes tokens, spans and logits of one micro-batch, for comparison with other implementations.
void DumpLogits(ByteSink* sink, LanguageModel* model, const ModelInput& input) {
  const at::Tensor logits = model->Logits(input).cpu().contiguous();
  const auto bytes_of = [](const void* data, size_t size) {
    return ByteSpan{static_cast<const uint8_t*>(data), size};
  };
  const int64_t tokens = logits.size(0);
  const auto spans = static_cast<int64_t>(input.span_starts.size());
  WriteSafetensors(
      sink,
      {{"tokens", "I64", {tokens}, bytes_of(input.tokens_n.const_data_ptr(), tokens * sizeof(int64_t))},
       {"logits", "F32", {tokens, logits.size(1)}, bytes_of(logits.const_data_ptr(), logits.nbytes())},
       {"span_starts", "I32", {spans}, bytes_of(input.span_starts.data(), spans * sizeof(int32_t))}},
      {});
  sink->Commit();
}

/// What a checkpoint's provenance has of a field: its adapter's, where that says something, for that was
/// trained last.
nlohmann::ordered_json RecordOfTraining(const Checkpoint& checkpoint, const std::string& field) {
  if (!checkpoint.adapter_identity.is_null()) {
    const auto adapter = checkpoint.adapter_identity.at("path").get<std::string>();
    nlohmann::ordered_json own = ReadCheckpointProvenance(adapter, field);
    if (!own.is_null()) return own;
  }
  return ReadCheckpointProvenance(checkpoint.named, field);
}

/// Calls read(object) with a field of a checkpoint's provenance that is an object, as the plan that it was
/// trained by is.
/// \returns whether it has one
template <typename Read>
bool ReadOfTraining(const Checkpoint& checkpoint, const std::string& field, const Read& read) {
  const nlohmann::ordered_json object = RecordOfTraining(checkpoint, field);
  if (!object.is_object()) return false;
  try {
    read(object);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, checkpoint.named + "/" + kCheckpointMetadataFile,
                "its training " + field + " cannot be read: " + error.what());
  }
  return true;
}

/// What a checkpoint's run held out of its data, or, of a model that was made of checkpoints, what theirs
/// did; nullopt: nothing, or nobody says it.
std::optional<DocumentSplit> SplitOfTraining(const Checkpoint& checkpoint) {
  std::optional<DocumentSplit> trained;
  const auto read = [&](const nlohmann::ordered_json& split) {
    trained = DecodeSplit(nlohmann::json(split));
  };
  const bool has_plan = ReadOfTraining(checkpoint, "plan", [&](const nlohmann::ordered_json& plan) {
    const auto split = plan.find(kEvalSplitField);
    if (split != plan.end() && !split->is_null()) read(*split);
  });
  if (!has_plan) ReadOfTraining(checkpoint, kEvalSplitField, read);
  return trained;
}

bool AsksForNumber(const DocumentSplit& split) {
  return split.asked.find_first_not_of("0123456789") == std::string::npos;
}

/// What --eval-split asks for: where the checkpoint's run held out the same, the very documents of that run,
/// whatever its data was; else what a run on this set alone would hold out.
/// \param set null: it comes through a pipe
std::optional<DocumentSplit> SplitOf(const Checkpoint& checkpoint, const EvaluateJobOptions& options,
                                     const ShardSet* set) {
  if (options.eval_split.empty()) return std::nullopt;
  const std::optional<DocumentSplit> trained = SplitOfTraining(checkpoint);
  if (trained && trained->asked == options.eval_split && trained->seed == options.eval_split_seed) {
    return trained;
  }
  const DocumentSplit split =
      ParseDocumentSplit(options.eval_split, options.eval_split_seed, set, /*skip_bad=*/false,
                         trained ? trained->key : SplitKey::kQuestion);
  const auto warn = [&](const std::string& message) {
    if (options.world->is_writer()) LogWarning("--eval-split: " + message);
  };
  if (trained && (trained->seed != split.seed || trained->bound < split.bound)) {
    warn("documents that " + checkpoint.named + " was trained on are among these: its run held out " +
         trained->asked + " with --eval-split-seed " + std::to_string(trained->seed));
  } else if (!trained && AsksForNumber(split)) {
    warn(checkpoint.named + " does not say what a run held out: these are " + split.asked + " documents of " +
         options.data + " alone, and a run on other data holds out others; a share is the same of all data");
  }
  return split;
}

/// \param set null: they come through a pipe
/// \returns the SHA-256 of the set's content
Sha256Digest AddShards(const Checkpoint& checkpoint, const EvaluateJobOptions& options, const ShardSet* set,
                       ProgressMode mode, PerplexityMeter* meter) {
  if (set == nullptr) {
    ShardStreamReader reader(OpenSource("-"));
    CheckTokenizer(checkpoint, reader.header().tokenizer, options);
    meter->set_masked(IsMasked(reader.header(), options.loss_on));
    meter->set_split(SplitOf(checkpoint, options, nullptr));
    Progress progress(mode, "evaluate", 0, "tokens");
    for (Chunk chunk; reader.Next(&chunk);) {
      meter->AddChunk(chunk);
      progress.Update(meter->sums().tokens);
    }
    Sha256 content;  // as ShardSet has it
    for (const ShardInfo& shard : reader.shards()) content.Update(shard.content_sha256);
    return content.Digest();
  }
  CheckTokenizer(checkpoint, set->header().tokenizer, options);
  meter->set_masked(IsMasked(set->header(), options.loss_on));
  meter->set_split(SplitOf(checkpoint, options, set));
  Progress progress(mode, "evaluate", set->totals().tokens, "tokens");
  meter->AddSet(*set, /*max_tokens=*/0, [&](uint64_t tokens) { progress.Update(tokens); });
  return set->content_sha256();
}

/// The id that documents of text begin or end with, or kNoId.
/// \param asked what the user says; nullopt: as those of the training data do
/// \param trained the provenance of these
/// \param name of the flag
/// \throws Error{kUsage} where one is asked for that the tokenizer has not
uint32_t MarkOf(const std::optional<bool>& asked, const nlohmann::ordered_json& trained,
                const std::string& name, uint32_t id) {
  if (asked.value_or(false) && id == kNoId)
    throw Error(ErrorCode::kUsage, "--" + name, "the checkpoint's tokenizer has no such id");
  return asked.value_or(FlagInProvenance(trained, "pretokenize", name).value_or(false)) ? id : kNoId;
}

/// \returns the SHA-256 of the bytes read
std::string AddText(const Checkpoint& checkpoint, const EvaluateJobOptions& options, ProgressMode mode,
                    PerplexityMeter* meter) {
  if (checkpoint.tokenizer == nullptr) {
    throw Error(ErrorCode::kBadInput, checkpoint.folder, checkpoint.tokenizer_problem, "",
                "put its tokenizer.model or tokenizer.json there, or evaluate on shards");
  }
  const Tokenizer& tokenizer = *checkpoint.tokenizer;
  const nlohmann::ordered_json trained = RecordOfTraining(checkpoint, "data_provenance");
  const uint32_t bos = MarkOf(options.add_bos, trained, "bos", tokenizer.identity().bos_id);
  const uint32_t eos = MarkOf(options.add_eos, trained, "eos", tokenizer.identity().eos_id);
  const bool guess = options.format == "auto";
  const InputFormat format =
      guess ? GuessInputFormat(options.data, !options.keys.empty()) : ParseInputFormat(options.format);
  DocumentTextOptions text_options;
  if (!options.keys.empty()) {
    text_options.keys = options.keys;
    text_options.instead.clear();
  }
  // A pipe may hold shards, of which IsShards knows nothing: the reader refuses them where it guesses.
  DocumentReader reader({{.path = options.data, .format = format, .guessed = guess, .has_format_flag = true}},
                        kMaxDocumentBytes, text_options.keys);
  reader.HashStoredBytes();
  text_options.require_utf8 = tokenizer.identity().kind != "bytes";
  DocumentText document(text_options);
  Progress progress(mode, "evaluate", reader.stored_bytes_total(), "bytes");
  std::vector<uint32_t> ids;
  for (RecordBatch batch; reader.Next(&batch);) {
    for (size_t i = 0; i < batch.records.size(); ++i) {
      std::string_view text;
      if (const auto problem = document.Read(batch, i, &text))
        throw ErrorOf(*problem, batch, i, /*flags=*/{});
      ids.clear();
      if (bos != kNoId) ids.push_back(bos);
      tokenizer.Encode(text, &ids);
      if (text.empty() || ids.empty()) continue;
      if (eos != kNoId) ids.push_back(eos);
      meter->Add(ids, kNoId, text.size(), /*starts_document=*/true);
    }
    progress.Update(reader.stored_bytes_read());
  }
  std::string sha256 = reader.stored_sha256();  // which reads parquet once more
  reader.ThrowIfWritten();
  return sha256;
}

/// What was measured on.
nlohmann::ordered_json DescribeData(const EvaluateJobOptions& options, const std::string& sha256) {
  nlohmann::ordered_json data = {{"path", options.data}, {"sha256", sha256}};
  if (!options.eval_split.empty()) {
    data["eval_split"] = options.eval_split;
    data["eval_split_seed"] = options.eval_split_seed;
  }
  return data;
}

struct Measurement {
  nlohmann::ordered_json values;
  std::string data_sha256;
};

/// What a checkpoint was trained for: the name and the own options of its objective.
ObjectiveOptions TrainedObjective(const Checkpoint& checkpoint) {
  ObjectiveOptions trained;
  ReadOfTraining(checkpoint, "plan", [&](const nlohmann::ordered_json& plan) {
    trained.name = plan.value("objective", std::string(kDefaultObjective));
    if (const auto own = plan.find("objective_options"); own != plan.end()) {
      trained.own = DecodeOwnOptions(nlohmann::json(*own), "objective_options of " + checkpoint.named);
    }
  });
  return trained;
}

/// The objective that measures records in its own way: the one that the checkpoint was trained for where it
/// takes them, with its options, else the first that does, with those of the model's folder. Nullopt: what is
/// measured is how well tokens are predicted.
std::optional<ObjectiveOptions> ObjectiveOfRecords(const ObjectiveRegistry& objectives, RecordKind records,
                                                   const Checkpoint& checkpoint,
                                                   const EvaluateJobOptions& options) {
  const ObjectiveKind* first = nullptr;
  for (const ObjectiveKind& kind : objectives.all()) {
    if (!kind.Takes(records)) continue;
    if (kind.description.measures_tokens) return std::nullopt;
    if (first == nullptr) first = &kind;
  }
  if (first == nullptr) return std::nullopt;
  const ObjectiveOptions trained = TrainedObjective(checkpoint);
  const ObjectiveKind* kind = objectives.FindOrNull(trained.name);
  if (kind != nullptr && kind->Takes(records)) return trained;
  ObjectiveOptions untrained = {.name = first->name()};
  if (first->own_of_folder) {
    EmbeddingSettings settings;
    settings.adapter = options.adapter;
    untrained.own = first->own_of_folder(ResolveEmbedding(checkpoint, settings, *options.world));
  }
  return untrained;
}

/// Of a micro-batch that is complete.
int64_t BatchTokensOf(const EvaluateJobOptions& options, int64_t sequence_tokens) {
  const int64_t tokens = options.batch_sequences * sequence_tokens;
  return options.most_batch_tokens > 0 ? std::min(tokens, options.most_batch_tokens) : tokens;
}

Measurement MeasureObjective(const ObjectiveRegistry& objectives, ObjectiveOptions asked,
                             const Checkpoint& checkpoint, const ShardSet& set,
                             const EvaluateJobOptions& options, int64_t sequence_tokens) {
  CheckTokenizer(checkpoint, set.header().tokenizer, options);
  asked.loss_on = options.loss_on;
  const auto objective = MakeObjective(objectives, asked);
  const Evaluation evaluation = objective->Evaluate(checkpoint.model.get(), set,
                                                    {.sequence_tokens = sequence_tokens,
                                                     .batch_tokens = BatchTokensOf(options, sequence_tokens),
                                                     .split = SplitOf(checkpoint, options, &set),
                                                     .world = options.world});
  nlohmann::ordered_json values = {{"metric", asked.name}, {"loss_nats", evaluation.loss_nats}};
  for (const EvaluationMeasure& measure : evaluation.measures) {
    values[measure.name] = ValueOrNull(measure.value);
  }
  values["tokens"] = evaluation.tokens;
  values["docs"] = evaluation.documents;
  if (std::optional<EmbeddingSpec> embedding = objective->EmbeddingOf(set)) {
    const int64_t width = checkpoint.model->config().hidden_size;
    embedding->dimension = embedding->projection > 0 ? embedding->projection : width;
    values["embedding"] = DescribeEmbedding(*embedding);
  }
  return {values, HexEncode(set.content_sha256())};
}

/// Where the writer, whose the first batch is, dumps its logits; null: nowhere.
std::unique_ptr<ByteSink> OpenLogits(const EvaluateJobOptions& options) {
  std::unique_ptr<ByteSink> sink;
  if (options.logits_path.empty()) return sink;
  AsWriter(options.world, [&] {
    sink = OpenSink(options.logits_path, /*binary=*/true, /*allow_terminal=*/false);
    return 0;
  });
  return sink;
}

/// \param is_shards whether the data is shards; else it is text
/// \param set of the shards; null where they come through a pipe
Measurement MeasurePerplexity(const Checkpoint& checkpoint, const EvaluateJobOptions& options, bool is_shards,
                              const ShardSet* set, int64_t sequence_tokens, ProgressMode progress) {
  PerplexityMeter meter(checkpoint.model.get(), sequence_tokens, BatchTokensOf(options, sequence_tokens),
                        options.world);
  const std::unique_ptr<ByteSink> logits = OpenLogits(options);
  bool dumped = logits == nullptr;
  meter.set_batch_listener([&](const ModelInput& input) {
    ReleaseHeldInfo();  // text that is read so far is sound
    if (!dumped) DumpLogits(logits.get(), checkpoint.model.get(), input);
    dumped = true;
  });
  std::string data_sha256;
  const PerplexitySums& sums = meter.Measure([&] {
    data_sha256 = is_shards ? HexEncode(AddShards(checkpoint, options, set, progress, &meter))
                            : AddText(checkpoint, options, progress, &meter);
  });
  RequireEqual(options.world, {{"sha256 of the data", data_sha256}});
  return {{{"metric", "perplexity"},
           {"loss_nats", sums.mean_loss_nats()},
           {"perplexity", sums.perplexity()},
           {"bits_per_byte", ValueOrNull(sums.bits_per_byte())},
           {"bits_per_token", sums.bits_per_token()},
           {"loss_on", NameOf(meter.masked() ? LossOn::kAssistant : LossOn::kAll)},
           {"tokens", sums.tokens},
           {"labels", sums.labels},
           {"docs", sums.documents},
           {"source_bytes", sums.source_bytes}},
          data_sha256};
}

/// What is evaluated, and on what.
struct Subject {
  Precision precision = Precision::kFp32;
  Checkpoint checkpoint;
  int64_t sequence_tokens = 0;
  bool is_shards = false;         ///< else the data is text
  std::unique_ptr<ShardSet> set;  ///< null of text, and where shards come through a pipe
  std::optional<ObjectiveOptions> objective;
};

/// Whether all records are texts to embed, which no metric reads logits of.
bool HoldsTextsAlone(const ShardSet& set) {
  const std::vector<ShardSetPart> parts = set.parts();
  return std::all_of(parts.begin(), parts.end(),
                     [](const ShardSetPart& part) { return part.records == RecordKind::kContrastive; });
}

/// What a model and its adapter were read from. Other files may be written beside them: a dump of logits is
/// about the model.
std::vector<std::string> FilesOfModel(const Checkpoint& checkpoint) {
  std::vector<std::string> files;
  for (const auto* identity : {&checkpoint.model_identity, &checkpoint.adapter_identity}) {
    if (!identity->is_object() || !identity->at("path").is_string()) continue;
    const auto folder = identity->at("path").get<std::string>();
    for (const auto& file : identity->at("files").items()) files.push_back(folder + "/" + file.key());
  }
  return files;
}

Subject OpenSubject(const ModelFamilies& families, const ObjectiveRegistry& objectives,
                    const EvaluateJobOptions& options) {
  const c10::Device device = options.process.device;
  Subject subject;
  subject.is_shards = IsShards(options);
  if (subject.is_shards && !options.flag_of_text.empty()) {
    throw Error(ErrorCode::kUsage, options.flag_of_text,
                "has a meaning for text, and " + options.data + " is shards", "",
                "leave out " + options.flag_of_text + ": pretokenize decided it when it made the tokens");
  }
  subject.precision = ParsePrecision(options.mixed_precision, device);
  if (subject.is_shards && options.data != "-") subject.set = ShardSet::Open(options.data);
  subject.checkpoint =
      LoadCheckpoint(families, options.checkpoint, subject.precision, device,
                     ParseAttentionBackend(options.attn_backend, "--attn-backend"), options.adapter,
                     options.allow_other_base, ParseWeightFormat(options.quant, "--quant"),
                     subject.set && HoldsTextsAlone(*subject.set));
  subject.sequence_tokens = options.sequence_tokens > 0 ? options.sequence_tokens
                                                        : subject.checkpoint.model->config().max_positions;
  RefuseToReplaceInputs(options.logits_path, FilesOfModel(subject.checkpoint));
  if (!options.eval_split.empty() && !subject.is_shards) {
    throw Error(ErrorCode::kUsage, "--eval-split", "divides shards, and " + options.data + " is text", "",
                "evaluate on the shards that train read");
  }
  if (!subject.set) return subject;
  const RecordKind records = subject.set->header().record_kind;
  subject.objective = ObjectiveOfRecords(objectives, records, subject.checkpoint, options);
  if (subject.objective && !options.logits_path.empty() && !options.logits_if_any) {
    throw Error(ErrorCode::kUsage, "--logits",
                "has a meaning where tokens are predicted, and " + options.data + " holds " +
                    RecordKindName(records) + " records",
                "", "leave out --logits");
  }
  return subject;
}

/// Ranks of which one computes something else would give a result of nothing.
void RequireSameWork(const EvaluateJobOptions& options, const Subject& subject) {
  Facts facts = FactsOf(subject.checkpoint, subject.precision);
  if (subject.set) facts["sha256 of the data"] = HexEncode(subject.set->content_sha256());
  facts["--seq"] = std::to_string(subject.sequence_tokens);
  facts["--batch"] = std::to_string(options.batch_sequences) + " sequences of " +
                     std::to_string(BatchTokensOf(options, subject.sequence_tokens)) + " tokens in all";
  facts["--quant"] = options.quant;
  RequireEqual(options.world, facts);
}

nlohmann::ordered_json Evaluate(const ModelFamilies& families, const ObjectiveRegistry& objectives,
                                const EvaluateJobOptions& options, ProgressMode progress) {
  RefuseSharedPipe(options.world->size(), "--data", options.data);
  RefuseToReplaceInputs(options.logits_path, {options.data});
  Subject subject;
  DoAlike(options.world, [&] { subject = OpenSubject(families, objectives, options); });
  RequireSameWork(options, subject);
  if (subject.set != nullptr) ReleaseHeldInfo();
  const Checkpoint& checkpoint = subject.checkpoint;
  const int64_t sequence_tokens = subject.sequence_tokens;
  if (!options.world->is_writer()) progress = ProgressMode::kNever;
  const Measurement measured = subject.objective
                                   ? MeasureObjective(objectives, *subject.objective, checkpoint,
                                                      *subject.set, options, sequence_tokens)
                                   : MeasurePerplexity(checkpoint, options, subject.is_shards,
                                                       subject.set.get(), sequence_tokens, progress);
  const nlohmann::ordered_json data = DescribeData(options, measured.data_sha256);
  nlohmann::ordered_json result = measured.values;
  result.update({{"seq", sequence_tokens},
                 {"precision", PrecisionName(subject.precision)},
                 {"quant", options.quant},
                 {"threads", options.process.threads},
                 {"checkpoint", checkpoint.named},
                 {"model", checkpoint.model_identity},
                 {"adapter", checkpoint.adapter_identity},
                 {"data", data}});
  if (options.world->is_writer()) LogInfo(DescribeIdentity(checkpoint, data));
  return result;
}

}  // namespace

nlohmann::ordered_json RunEvaluate(const ModelFamilies& families, const ObjectiveRegistry& objectives,
                                   const EvaluateJobOptions& options, ProgressMode progress) {
  return WithMemoryErrors(
      [] {
        return MemoryUser{"evaluation", "lower --batch or --seq"};
      },
      [&] { return Evaluate(families, objectives, options, progress); });
}

}  // namespace trainwright

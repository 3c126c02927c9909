#include "lib/eval/generate_job.h"

#include <chrono>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/data/document_reader.h"
#include "lib/device/determinism.h"
#include "lib/device/device.h"
#include "lib/device/memory_error.h"
#include "lib/eval/checkpoint.h"
#include "lib/eval/generate.h"

namespace trainwright {
namespace {

class Job {
 public:
  Job(const GenerateJobOptions& options, ByteSink* out) : options_(options), out_(out) {
    SetComputeThreads(options.threads);
    const c10::Device device = ChooseDevice(options.device);
    checkpoint_ = LoadCheckpoint(options.checkpoint, ParsePrecision(options.mixed_precision, device), device,
                                 ParseAttentionBackend(options.attn_backend, "--attn-backend"));
    if (checkpoint_.tokenizer == nullptr) {
      throw Error(ErrorCode::kBadInput, checkpoint_.folder, "holds no tokenizer that this build knows", "",
                  "put its SentencePiece model there as tokenizer.model");
    }
    if (options.add_bos && checkpoint_.tokenizer->identity().bos_id == kNoId) {
      throw Error(ErrorCode::kUsage, "--bos", "the checkpoint's tokenizer has no such id");
    }
  }

  void Continue(const std::string& prompt) {
    const Tokenizer& tokenizer = *checkpoint_.tokenizer;
    const TokenizerIdentity& identity = tokenizer.identity();
    std::vector<uint32_t> ids;
    if (options_.add_bos) ids.push_back(identity.bos_id);
    tokenizer.Encode(prompt, &ids);
    if (ids.empty())
      throw Error(ErrorCode::kBadInput, "prompt", "holds no token", "", "give some text, or --bos");
    const Generation generation =
        GenerateGreedily(checkpoint_.model.get(), ids, options_.max_tokens, identity.eos_id);
    // A piece's text can depend on what is before it (SentencePiece drops the first space), so the
    // continuation is what the whole adds to the prompt's text.
    const std::string before = tokenizer.Decode(ids);
    ids.insert(ids.end(), generation.ids.begin(), generation.ids.end());
    const std::string whole = tokenizer.Decode(ids);
    const std::string text =
        whole.starts_with(before) ? whole.substr(before.size()) : tokenizer.Decode(generation.ids);
    const nlohmann::ordered_json line = {{"prompt", prompt},
                                         {"text", text},
                                         {"ids", generation.ids},
                                         {"sample", 0},
                                         {"finish", FinishReasonName(generation.finish)}};
    const std::string dumped = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out_->Write(AsBytes(dumped));
    ++samples_;
    tokens_ += generation.ids.size();
  }

  void ContinueLines() {
    DocumentReader reader({{"-", InputFormat::kJsonl}}, uint64_t{1} << 30);
    for (RecordBatch batch; reader.Next(&batch);) {
      for (size_t i = 0; i < batch.records.size(); ++i) {
        const auto refuse = [&](const std::string& problem) {
          return Error(ErrorCode::kBadInput, batch.source, problem,
                       "line " + std::to_string(batch.first_record + i),
                       "a line is an object like {\"prompt\": \"Once upon a time\"}");
        };
        const Record& record = batch.records[i];
        if (record.too_long) throw refuse("is longer than 1 GiB");
        const auto object =
            nlohmann::json::parse(batch.bytes.begin() + static_cast<int64_t>(record.begin),
                                  batch.bytes.begin() + static_cast<int64_t>(record.end), nullptr,
                                  /*allow_exceptions=*/false);
        if (!object.is_object()) throw refuse("is no JSON object");
        const auto prompt = object.find("prompt");
        if (prompt == object.end() || !prompt->is_string()) throw refuse("has no string \"prompt\"");
        Continue(prompt->get<std::string>());
      }
    }
  }

  nlohmann::ordered_json Summary() const {
    return {{"samples", samples_}, {"tokens", tokens_}, {"checkpoint", checkpoint_.folder}};
  }

 private:
  const GenerateJobOptions& options_;
  ByteSink* out_;
  Checkpoint checkpoint_;
  uint64_t samples_ = 0, tokens_ = 0;
};

nlohmann::ordered_json Generate(const GenerateJobOptions& options, ByteSink* out) {
  Job job(options, out);
  const auto start = std::chrono::steady_clock::now();
  if (options.prompt) {
    job.Continue(*options.prompt);
  } else {
    job.ContinueLines();
  }
  const double time_s = SecondsSince(start);
  nlohmann::ordered_json summary = job.Summary();
  summary["tokens_per_s"] = summary["tokens"].get<double>() / time_s;
  return summary;
}

}  // namespace

nlohmann::ordered_json RunGenerate(const GenerateJobOptions& options, ByteSink* out) {
  return WithMemoryErrors(
      [] { return MemoryUser{"generation", "lower --max-tokens, or shorten the prompts"}; },
      [&] { return Generate(options, out); });
}

}  // namespace trainwright

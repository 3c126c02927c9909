#include "lib/eval/embed_job.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/device/memory_error.h"
#include "lib/dist/equal_facts.h"
#include "lib/dist/shared_work.h"
#include "lib/embedding/text_embedder.h"
#include "lib/eval/context_keeper.h"
#include "lib/eval/embed_input.h"
#include "lib/eval/embed_output.h"
#include "lib/eval/identity.h"
#include "lib/eval/rank_input.h"
#include "lib/formats/json_text.h"
#include "lib/io/output_link.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/spec/cpu_gemms.h"

namespace trainwright {
namespace {

// Texts that are packed together, longest first: where one ends depends on the texts alone, so that a resumed
// run computes the same batches.
constexpr size_t kMostTextsOfBlock = 2048;
constexpr size_t kMostBytesOfBlock = 16 << 20;

/// Some texts, ready for the model.
struct TextBlock {
  std::vector<TokenizedText> texts;
  std::vector<std::string> ids;  ///< of the texts, or none
};

class EmbedRun {
 public:
  EmbedRun(const ModelFamilies& families, const EmbedSettings& settings, const ProcessSetup& process,
           World* world)
      : settings_(settings),
        threads_(process.threads),
        world_(world),
        device_(process.device),
        format_(VectorFormatOf(settings.format, settings.output)),
        input_(settings.input, settings.input_format, {settings.instruction, ParseRole(settings.role)}),
        embedder_(families, settings.embedding, process, world) {
    RefuseToReplaceModel(settings.output, embedder_.checkpoint());
    if (!IsStandardOutput(settings.output)) {
      RefuseToReplaceModel(IdsPathOf(settings.output), embedder_.checkpoint());
    }
    has_text_ = input_.Next(&text_);
    if (!has_text_) throw Error(ErrorCode::kBadInput, settings.input, "holds no text");
    if (!settings.context_cache.empty()) CheckContexts();
  }

  nlohmann::ordered_json Run(ProgressMode progress_mode) {
    RequireSameWork();
    OpenOutput();
    ReleaseHeldInfo();
    const auto start = std::chrono::steady_clock::now();
    Progress progress(world_->is_writer() ? progress_mode : ProgressMode::kNever, "embed",
                      input_.bytes_total(), "bytes");
    try {
      while (EmbedBlock()) progress.Update(input_.bytes_read());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInterrupted || error.code() == ErrorCode::kTerminated) SaveAndTell();
      throw;
    }
    const double time_s = SecondsSince(start);
    RequireEqual(world_, {{"sha256 of the texts", input_.identity().at("sha256").dump()}});
    AsWriter(world_, [&] {
      if (output_) output_->Commit(position_);
      if (contexts_) contexts_->Commit();
      return 0;
    });
    return Summary(time_s);
  }

 private:
  void RequireSameWork() const {
    Facts facts = FactsOf(embedder_.checkpoint(), embedder_.precision());
    facts["the options of embed"] = Making();
    RequireEqual(world_, facts);
  }

  /// A hash of what shapes the vectors, but for the texts.
  std::string Making() const {
    const Checkpoint& checkpoint = embedder_.checkpoint();
    const nlohmann::ordered_json making = {
        {"embedding", embedder_.Description()},
        {"weights", HexEncode(WeightsDigestOf(checkpoint))},
        {"files", checkpoint.model_identity.at("files")},  // of which one is the tokenizer's
        {"device", c10::DeviceTypeName(device_.type())},
        {"format", NameOf(format_)},
        {"input_format", settings_.input_format},
        {"instruction", settings_.instruction},
        {"role", settings_.role},
        {"precision", PrecisionName(embedder_.precision())},
        {"attn_backend", settings_.embedding.attn_backend},
        {"batch_tokens", settings_.embedding.batch_tokens},
        {"batch_invariant", settings_.embedding.batch_invariant},
        {"threads", threads_},
        {"kernels", device_.is_cpu() ? CpuGemmsName(ChosenCpuGemms()) : ""}};
    return HexEncode(Sha256Of(AsBytes(JsonLineOf(making))));
  }

  /// Opens what the writer writes, and goes to where a resumed run goes on.
  void OpenOutput() {
    const auto done = static_cast<uint64_t>(AsWriter(world_, [&] {
      output_.emplace(EmbedOutputOptions{.path = settings_.output,
                                         .info = {.format = format_,
                                                  .columns = static_cast<uint32_t>(embedder_.columns()),
                                                  .normalized = embedder_.normalized(),
                                                  .model_sha256 = WeightsDigestOf(embedder_.checkpoint())},
                                         .has_ids = text_.id.has_value(),
                                         .making_sha256 = Making(),
                                         .resume = settings_.resume,
                                         .force_terminal = settings_.force_terminal});
      return static_cast<int64_t>(output_->start().texts);
    }));
    if (!settings_.context_cache.empty()) {
      AsWriter(world_, [&] {
        contexts_.emplace(embedder_.checkpoint(), embedder_.precision(), embedder_.mask(),
                          settings_.context_cache);
        return 0;
      });
    }
    if (done == 0) return;
    DoAlike(world_, [&] {
      position_ = {1, input_.consumed_sha256()};
      while (position_.texts < done && input_.Next(&text_)) position_ = {position_.texts + 1, ""};
      position_.input_sha256 = input_.consumed_sha256();
      const bool is_other = output_ && position_.input_sha256 != output_->start().input_sha256;
      if (position_.texts < done || is_other) {
        throw Error(ErrorCode::kBadInput, settings_.input, "does not begin with the texts that were embedded",
                    "", "start over without --resume");
      }
      has_text_ = input_.Next(&text_);
    });
    resumed_ = done;
    if (world_->is_writer()) LogInfo("continuing after " + FormatNumberOf(done, "text"));
  }

  /// \returns false behind the last text
  bool EmbedBlock() {
    TextBlock block;
    std::string consumed = position_.input_sha256;
    DoAlike(world_, [&] { consumed = ReadBlock(&block); });
    if (block.texts.empty()) return false;
    const at::Tensor vectors = embedder_.Embed(block.texts);
    AsWriter(world_, [&] {
      output_->Add({vectors.const_data_ptr<float>(), static_cast<size_t>(vectors.numel())}, block.ids);
      position_ = {position_.texts + block.texts.size(), consumed};
      output_->Save(position_, /*now=*/false);
      if (contexts_) KeepContexts(block);
      return 0;
    });
    return true;
  }

  void CheckContexts() const {
    RequireKeysAndValues(embedder_.checkpoint().model->body(), "--context-cache");
    if (settings_.resume) {
      throw Error(ErrorCode::kUsage, "--context-cache", "does not go with --resume", "",
                  "start over without --resume");
    }
    if (!text_.id) {
      throw Error(ErrorCode::kBadInput, settings_.input,
                  "has texts without an id, by which prompts name them", "",
                  "--context-cache takes JSON lines with \"id\" or \"_id\"");
    }
  }

  /// What is kept is computed a second time: a pass of packed texts has no cache.
  void KeepContexts(const TextBlock& block) {
    for (size_t i = 0; i < block.texts.size(); ++i) {
      ThrowIfStopped();
      if (!block.texts[i].ids.empty()) contexts_->Keep(block.ids.at(i), block.texts[i].ids);
    }
  }

  /// Tokenises texts, of which the first was read before.
  /// \returns the hash of the input up to the last of them
  std::string ReadBlock(TextBlock* block) {
    std::string consumed = position_.input_sha256;
    size_t bytes = 0;
    while (has_text_ && block->texts.size() < kMostTextsOfBlock && bytes < kMostBytesOfBlock) {
      block->texts.push_back(embedder_.Tokenize(text_.text, text_.place));
      if (text_.id) block->ids.push_back(std::move(*text_.id));
      bytes += text_.text.text.size();
      consumed = input_.consumed_sha256();
      has_text_ = input_.Next(&text_);
    }
    return consumed;
  }

  /// What a stopped run leaves.
  void SaveAndTell() {
    if (!output_ || !output_->resumable() || position_.texts == 0) return;
    output_->Save(position_, /*now=*/true);
    LogInfo("stopped after " + FormatNumberOf(position_.texts, "text") + "; --resume goes on from there");
  }

  nlohmann::ordered_json Summary(double time_s) const {
    const EmbeddedCounts counts = embedder_.counts();
    const nlohmann::ordered_json data = input_.identity();
    if (world_->is_writer()) {
      WarnOfTexts(counts);
      if (contexts_ && counts.texts_empty > 0) {
        LogWarning("--context-cache leaves out " + FormatNumberOf(counts.texts_empty, "text") +
                   " without a token");
      }
      if (const uint64_t repeated = input_.CountRepeatedIds(); repeated > 0) {
        LogWarning("the id of a text before stands for " + FormatNumberOf(repeated, "text") + ", too");
        LogHint("evaluate refuses two of one id", LogLevel::kWarning);
      }
      LogInfo(DescribeIdentity(embedder_.checkpoint(), data));
    }
    nlohmann::ordered_json summary = {{"texts", counts.texts},
                                      {"texts_resumed", resumed_},
                                      {"texts_cut", counts.texts_cut},
                                      {"texts_empty", counts.texts_empty},
                                      {"tokens", counts.tokens},
                                      {"tokens_if_padded", counts.tokens_if_padded},
                                      {"embedding_time_s", time_s},
                                      {"tokens_per_s", static_cast<double>(counts.tokens) / time_s},
                                      {"texts_per_s", static_cast<double>(counts.texts) / time_s},
                                      {"format", NameOf(format_)}};
    summary.update(embedder_.Maker());
    summary["data"] = data;
    return summary;
  }

  const EmbedSettings& settings_;
  int threads_;
  World* world_;
  c10::Device device_;
  VectorFormat format_;  // before what takes long to make: a wrong name is told at once
  EmbedInput input_;
  TextEmbedder embedder_;
  std::optional<EmbedOutput> output_;      // the writer's
  std::optional<ContextKeeper> contexts_;  // the writer's
  EmbedText text_;                         // the next one
  bool has_text_ = false;
  EmbedPosition position_;  // behind what was written; on the writer
  uint64_t resumed_ = 0;    // texts of the runs before
};

}  // namespace

nlohmann::ordered_json RunEmbed(const ModelFamilies& families, const EmbedSettings& settings,
                                const ProcessSetup& process, World* world, ProgressMode progress) {
  RefuseSharedPipe(world->size(), "--input", settings.input);
  RefuseToReplaceInputs(settings.output, {settings.input});
  if (!IsStandardOutput(settings.output)) RefuseToReplaceInputs(IdsPathOf(settings.output), {settings.input});
  return WithMemoryErrors(
      [] {
        return MemoryUser{"embedding", "lower --batch-tokens or --max-length"};
      },
      [&] {
        std::optional<EmbedRun> run;
        DoAlike(world, [&] { run.emplace(families, settings, process, world); });
        return run->Run(progress);
      });
}

}  // namespace trainwright

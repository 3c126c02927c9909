#include "lib/eval/generate_job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/device/memory_error.h"
#include "lib/dist/equal_facts.h"
#include "lib/dist/shared_work.h"
#include "lib/documents/chat_encoder.h"
#include "lib/documents/folder_template.h"
#include "lib/documents/prompt_reader.h"
#include "lib/documents/recorded_template.h"
#include "lib/eval/chat_session.h"
#include "lib/eval/context_keeper.h"
#include "lib/eval/generate.h"
#include "lib/eval/identity.h"
#include "lib/eval/prompt_state.h"
#include "lib/eval/rank_generation.h"
#include "lib/eval/rank_input.h"
#include "lib/eval/sample_ends.h"
#include "lib/eval/sample_output.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"
#include "lib/io/file_checksum.h"
#include "lib/model/context_cache.h"
#include "lib/model/end_ids.h"
#include "lib/model/open_model.h"
#include "lib/nn/precision_option.h"
#include "lib/retrieval/corpus.h"
#include "lib/score/sample_filter.h"
#include "lib/spec/weight_format.h"

namespace trainwright {
namespace {

/// nullopt: every sample is kept.
std::optional<SampleFilter> FilterOf(const GenerateSettings& settings) {
  if (settings.keep_if.empty()) return std::nullopt;
  return SampleFilter({.rule = settings.keep_if == "valid"    ? KeepRule::kValid
                               : settings.keep_if == "strict" ? KeepRule::kStrict
                                                              : KeepRule::kAnswered,
                       .which = settings.keep == "all"        ? KeepWhich::kAll
                                : settings.keep == "distinct" ? KeepWhich::kDistinct
                                                              : KeepWhich::kFirst,
                       .format = ParseAnswerFormat(settings.answer_format),
                       .gold = settings.gold});
}

/// What must be the same on all ranks.
Facts FactsOfJob(const Checkpoint& checkpoint, const GenerateSettings& settings, Precision precision,
                 const nlohmann::ordered_json& state) {
  Facts facts = FactsOf(checkpoint, precision);
  facts["sha256 of the state"] = state.is_object() ? state.at("sha256").dump() : "none";
  if (!settings.prompt && !settings.chat) facts["sha256 of the prompts"] = Sha256OfFile(settings.input);
  facts["--seed"] = std::to_string(settings.seed);
  facts["--samples"] = std::to_string(settings.samples);
  facts["--max-tokens"] = std::to_string(settings.max_tokens);
  facts["--quant"] = settings.quant;
  return facts;
}

/// How many sequences are decoded together at most, as far as the settings say it.
int64_t MostSequences(const GenerateSettings& settings) {
  if (settings.chat) return 1;  // a turn waits for the answer before it
  return settings.prompt ? std::min(settings.batch, settings.samples) : settings.batch;
}

MemoryUser MemoryUserOf(const GenerateSettings& settings) {
  const int64_t sequences = MostSequences(settings);
  if (sequences == 1) return {"generation of a sequence", "lower --max-tokens, or shorten the prompts"};
  return {"generation of " + std::to_string(sequences) + " sequences",
          "lower --batch or --max-tokens, or shorten the prompts"};
}

/// Refuses what a conversation cannot do.
void CheckChat(const GenerateSettings& settings) {
  if (!settings.chat) return;
  const auto refuse = [](const char* flag) {
    throw Error(ErrorCode::kUsage, flag, "does not go with --chat", "", "give prompts by --input");
  };
  if (settings.samples > 1) refuse("--samples");
  if (!settings.keep_if.empty()) refuse("--keep-if");
  if (!settings.context_cache.empty()) refuse("--context-cache");
}

/// Refuses what was kept of a model with other weights.
void CheckQuant(const GenerateSettings& settings) {
  if (ParseWeightFormat(settings.quant, "--quant") == WeightFormat::kPlain) return;
  for (const auto& [flag, given] : {std::pair{"--context-cache", !settings.context_cache.empty()},
                                    std::pair{"--state-in", !settings.state_in.empty()},
                                    std::pair{"--state-out", !settings.state_out.empty()}}) {
    if (!given) continue;
    throw Error(ErrorCode::kUsage, flag, "does not go with --quant " + settings.quant, "",
                "what is kept of a context is of the weights as they are stored; leave out --quant");
  }
}

/// How the model's conversations are written: as those of its training data were, or as its folder says;
/// nullopt: neither is known, as of data that several templates wrote.
std::optional<ChatTemplate> OwnTemplateOf(const GenerateSettings& settings) {
  const std::string base = ResolveCheckpoint(settings.checkpoint);
  const std::string folder = settings.adapter.empty() ? base : ResolveCheckpoint(settings.adapter);
  const nlohmann::ordered_json provenance = ReadCheckpointProvenance(folder, "data_provenance");
  if (auto recorded = RecordedTemplate(provenance)) return recorded;
  if (HasSeveralTemplates(provenance)) return std::nullopt;
  return settings.adapter.empty() ? FindFolderTemplate(folder) : FindAdapterTemplate(folder, base);
}

/// How conversations are written: as said, or for --chat as the model's are; nullopt: not at all.
std::optional<ChatTemplate> TemplateOf(const GenerateSettings& settings) {
  if (!settings.chat_template.empty()) return LoadChatTemplate(settings.chat_template);
  return settings.chat ? OwnTemplateOf(settings) : std::nullopt;
}

class Job {
 public:
  Job(const ModelFamilies& families, const GenerateSettings& settings, const ProcessSetup& process,
      ByteSink* out, World* world, bool on_terminal)
      : settings_(settings),
        world_(world),
        precision_(ParsePrecision(settings.mixed_precision, process.device)) {
    std::optional<ChatTemplate> chat_template = TemplateOf(settings);
    if (!settings.chat) {
      prompts_.emplace(settings.prompt, settings.input, chat_template.has_value(),
                       chat_template && chat_template->is_jinja);
    }
    filter_ = FilterOf(settings);  // its file is missed before anything is computed
    const c10::Device device = process.device;
    checkpoint_ =
        LoadCheckpoint(families, settings.checkpoint, precision_, device,
                       ParseAttentionBackend(settings.attn_backend, "--attn-backend"), settings.adapter,
                       settings.allow_other_base, ParseWeightFormat(settings.quant, "--quant"));
    if (checkpoint_.tokenizer == nullptr) {
      throw Error(ErrorCode::kBadInput, checkpoint_.folder, checkpoint_.tokenizer_problem, "",
                  "put its tokenizer.model or tokenizer.json there");
    }
    if (settings.add_bos && identity().bos_id == kNoId) {
      throw Error(ErrorCode::kUsage, "--bos", "the checkpoint's tokenizer has no such id");
    }
    if (!chat_template && prompts_) chat_template = TemplateOfTurns();
    if (chat_template) {
      if (settings.add_bos) {
        throw Error(ErrorCode::kUsage, "--bos", "is for plain prompts; a template says where BOS is");
      }
      chat_.emplace(*chat_template, checkpoint_.tokenizer.get(), ChatEncoderOptions{.prompts_only = true});
    }
    if (settings.chat) StartChat();
    ends_ = Ends(/*with_tools=*/false);
    if (chat_ && chat_->answer_end(/*with_tools=*/true) != chat_->answer_end()) {
      tool_ends_ = Ends(/*with_tools=*/true);
      ends_of_tool_prompts_ =
          std::make_shared<PromptEnds>(PromptEnds{.ids = tool_ends_->ids, .stop = StopCheckOf(&*tool_ends_)});
    }
    output_ = MakeSampleOutput(checkpoint_.tokenizer.get(), &ends_, WritesText(settings, on_terminal),
                               settings.log_probabilities, out);
    if (!settings.context_cache.empty()) OpenContexts();
    state_.emplace(settings, checkpoint_, precision_, world->is_writer());
  }

  nlohmann::ordered_json Run() {
    if (world_->size() > 1) {
      Facts facts = FactsOfJob(checkpoint_, settings_, precision_, state_->identity());
      facts["what ends a sample"] = FactOf(ends_);
      if (tool_ends_) facts["what ends a sample with tools"] = FactOf(*tool_ends_);
      RequireEqual(world_, facts);
    }
    GenerationOptions options{.sampling = settings_.sampling,
                              .max_tokens = settings_.max_tokens,
                              .samples = settings_.samples,
                              .batch = MostSequences(settings_),
                              .batch_invariant = settings_.batch_invariant,
                              .keep_prefix = settings_.chat,
                              .seed = settings_.seed,
                              .ends = ends_.ids,
                              .chosen_ids = static_cast<int64_t>(identity().vocab_size)};
    options.log_probabilities = settings_.log_probabilities;
    if (output_->watches()) options.watch = [this](uint32_t id) { output_->See(id); };
    state_->AskFor(&options);
    ReleaseHeldInfo();
    const auto start = std::chrono::steady_clock::now();
    const StopCheck stop = StopCheckOf(&ends_);
    const GenerationCounts counts = GenerateOnRanks(
        world_, settings_.prompt ? RankDivision::kSamples : RankDivision::kPrompts, checkpoint_.model.get(),
        options, [this](TokenizedPrompt* prompt) { return Next(prompt); }, stop,
        [this](Generation&& generation) { Take(std::move(generation)); });
    const double time_s = SecondsSince(start);
    if (prompts_) prompts_->ThrowIfWritten();
    const nlohmann::ordered_json data = prompts_ ? prompts_->identity() : session_->identity();
    nlohmann::ordered_json summary = {{"prompts", counts.prompts},
                                      {"samples", counts.samples},
                                      {"tokens", counts.tokens},
                                      {"prompt_tokens", counts.prompt_tokens},
                                      {"context_tokens", counts.context_tokens},
                                      {"steps", counts.steps},
                                      {"generation_time_s", time_s},
                                      {"tokens_per_s", static_cast<double>(counts.tokens) / time_s},
                                      {"quant", settings_.quant},
                                      {"end_ids", ends_.ids},
                                      {"checkpoint", checkpoint_.named},
                                      {"model", checkpoint_.model_identity},
                                      {"adapter", checkpoint_.adapter_identity},
                                      {"data", data}};
    if (!ends_.sequences.empty()) summary["end_sequences"] = ends_.sequences;
    if (tool_ends_) {
      summary["end_ids_with_tools"] = tool_ends_->ids;
      if (!tool_ends_->sequences.empty()) summary["end_sequences_with_tools"] = tool_ends_->sequences;
    }
    if (state_->before() != nullptr) summary["state"] = state_->identity();
    Tell(DescribeIdentity(checkpoint_, data));
    if (filter_ && !settings_.gold.empty()) {
      summary["gold"] = {{"path", settings_.gold}, {"sha256", filter_->gold_sha256()}};
    }
    if (filter_) {
      const SampleFilter::Counts kept = filter_->counts();
      summary["samples_passed"] = kept.passed;
      summary["samples_kept"] = kept.kept;
      summary["prompts_with_kept"] = kept.prompts_with_kept;
      summary["distinct_passed"] = kept.distinct;
      summary["prompts_by_passed"] = kept.prompts_by_passed;
      Tell("kept " + std::to_string(kept.kept) + " of " + std::to_string(kept.samples) + " samples, for " +
           std::to_string(kept.prompts_with_kept) + " of " + std::to_string(kept.prompts) + " prompts; " +
           std::to_string(kept.passed) + " passed");
    }
    return summary;
  }

 private:
  struct Asked {
    PromptLine line;
    std::vector<uint32_t> ids;
    const SampleEnds* ends;  // of its samples
  };

  /// What ends a sample, by --stop, by the model and by the template.
  SampleEnds Ends(bool with_tools) const {
    std::vector<uint32_t> ids = EndIdsOf(checkpoint_.folder);
    if (identity().eos_id != kNoId) ids.push_back(identity().eos_id);
    return SampleEndsOf(*checkpoint_.tokenizer, std::move(ids),
                        chat_ ? chat_->answer_end(with_tools) : std::vector<uint32_t>(), settings_.stops);
  }

  static std::string FactOf(const SampleEnds& ends) {
    return nlohmann::json({ends.ids, ends.sequences, ends.texts()}).dump();
  }

  /// \param ends outlive it
  /// \returns what looks for those that are no single ids; empty: there are none
  StopCheck StopCheckOf(const SampleEnds* ends) const {
    if (ends->texts().empty() && ends->sequences.empty()) return {};
    return [this, ends](std::span<const int64_t> prompt) -> FindEnd {
      const auto finder = std::make_shared<EndFinder>(checkpoint_.tokenizer.get(), ends, prompt);
      return [finder](const std::vector<uint32_t>& ids) { return finder->Find(ids); };
    };
  }

  void Tell(const std::string& message) const {
    if (world_->is_writer()) LogInfo(message);
  }
  const TokenizerIdentity& identity() const { return checkpoint_.tokenizer->identity(); }

  /// Of a file of conversations that no --template is given for: the model's own, if it has one.
  std::optional<ChatTemplate> TemplateOfTurns() {
    if (!settings_.context_cache.empty() || !prompts_->BeginsWithTurns()) return std::nullopt;
    std::optional<ChatTemplate> own = OwnTemplateOf(settings_);
    if (!own) return std::nullopt;
    if (world_->is_writer()) HoldInfo("conversations are written by " + own->name);
    prompts_->ReadConversations(own->is_jinja);
    return own;
  }

  void StartChat() {
    if (!chat_) {
      throw Error(ErrorCode::kUsage, "--chat", "needs to know how a conversation is written", "",
                  "give --template, as the model was trained with; its folder has none, or its data several");
    }
    const bool by_hand = isatty(STDIN_FILENO) == 1;
    session_.emplace(settings_.system, OpenSource("-"), by_hand && CurrentLogLevel() >= LogLevel::kInfo);
  }

  /// What is to be answered next; of a conversation, once its last turn is answered.
  std::optional<PromptLine> NextLine() {
    if (prompts_) return prompts_->Next();
    if (!session_->AskNext()) return std::nullopt;
    PromptLine line;
    line.conversation = session_->conversation();
    line.text = line.conversation.turns.back().content;
    line.others = {{"messages", JsonTextOf(session_->messages())}};
    return line;
  }

  bool Next(TokenizedPrompt* prompt) {
    std::optional<PromptLine> line = NextLine();
    if (!line) return false;
    const bool has_tool_ends = tool_ends_ && !line->conversation.tools_json.empty();
    Asked asked{.line = std::move(*line), .ids = {}, .ends = has_tool_ends ? &*tool_ends_ : &ends_};
    if (chat_) {
      if (const auto problem = chat_->EncodePrompt(asked.line.conversation, &asked.ids)) {
        throw Error(ErrorCode::kBadInput, "prompt", problem->problem, asked.line.place, problem->hint);
      }
    } else {
      if (settings_.add_bos) asked.ids.push_back(identity().bos_id);
      checkpoint_.tokenizer->Encode(asked.line.text, &asked.ids);
    }
    if (asked.ids.empty() && state_->before() == nullptr) {
      throw Error(ErrorCode::kBadInput, "prompt", "holds no token", asked.line.place,
                  "give some text, or --bos");
    }
    *prompt = {.index = read_++,
               .ids = asked.ids,
               .contexts = ContextsOf(asked.line),
               .state = state_->before(),
               .ends = has_tool_ends ? ends_of_tool_prompts_ : nullptr};
    if (!world_->is_writer()) return true;
    output_->Begin(asked.ids);
    asked_.push_back(std::move(asked));
    return true;
  }

  void OpenContexts() {
    if (settings_.prompt || chat_) {
      throw Error(ErrorCode::kUsage, "--context-cache", "is for plain prompts of --input",
                  settings_.prompt ? "--prompt" : "--template",
                  "give JSON lines like {\"prompt\": \"...\", \"context\": \"id\"}");
    }
    RequireKeysAndValues(checkpoint_.model->body(), "--context-cache");
    contexts_.emplace(settings_.context_cache, ContextIdentityOf(checkpoint_, precision_));
  }

  /// The contexts that a prompt names: an id or several.
  std::vector<std::shared_ptr<const CachedContext>> ContextsOf(const PromptLine& line) {
    std::vector<std::shared_ptr<const CachedContext>> contexts;
    if (!contexts_ || line.context.is_null()) return contexts;
    const auto add = [&](const nlohmann::ordered_json& named) {
      const std::string id = IdTextOf(nlohmann::json(named));
      if (id.empty()) {
        throw Error(ErrorCode::kBadInput, "prompt",
                    "has a \"context\" that is neither an id nor a list of ids", line.place);
      }
      contexts.push_back(std::make_shared<const CachedContext>(contexts_->Read(id)));
    };
    if (!line.context.is_array()) {
      add(line.context);
    } else {
      for (const nlohmann::ordered_json& id : line.context) add(id);
    }
    return contexts;
  }

  /// What the ids from `first` on add to the text of those before them: the text of a piece can depend on
  /// what is before it (SentencePiece drops the first space).
  std::string TextBehind(const std::vector<uint32_t>& ids, size_t first) const {
    const Tokenizer& tokenizer = *checkpoint_.tokenizer;
    const std::string before = tokenizer.Decode(std::span(ids).first(first));
    const std::string whole = tokenizer.Decode(ids);
    return whole.starts_with(before) ? whole.substr(before.size())
                                     : tokenizer.Decode(std::span(ids).subspan(first));
  }

  /// What the ids add to the prompt's text, without what ended it, which goes from the ids as well.
  std::string TextOf(const Asked& asked, Generation* generation) const {
    std::vector<uint32_t> ids = asked.ids;
    ids.insert(ids.end(), generation->ids.begin(), generation->ids.end());
    std::string text = TextBehind(ids, asked.ids.size());
    RemoveEnd(*checkpoint_.tokenizer, *asked.ends, asked.ids, generation, &text);
    return text;
  }

  void Take(Generation&& generation) {
    const Asked& asked = asked_.front();
    const std::string text = TextOf(asked, &generation);
    if (!filter_ || filter_->Keep(generation.prompt, asked.line.text, text)) {
      output_->Write(asked.line, generation, text);
    }
    if (session_) session_->Answer(text);
    if (generation.sample + 1 == settings_.samples) asked_.pop_front();
  }

  const GenerateSettings& settings_;
  World* world_;
  Precision precision_;
  std::optional<PromptReader> prompts_;  // or
  std::optional<ChatSession> session_;
  std::optional<SampleFilter> filter_;
  Checkpoint checkpoint_;
  std::optional<ChatEncoder> chat_;
  SampleEnds ends_;
  std::optional<SampleEnds> tool_ends_;  // of conversations with tools, where theirs are others
  std::shared_ptr<const PromptEnds> ends_of_tool_prompts_;
  std::unique_ptr<SampleOutput> output_;
  std::optional<ContextCache> contexts_;
  std::optional<PromptState> state_;
  uint64_t read_ = 0;        // prompts
  std::deque<Asked> asked_;  // with samples that are not written yet
};

}  // namespace

void CheckRanks(const GenerateSettings& settings, int64_t ranks) {
  if (ranks == 1) return;
  if (!settings.batch_invariant) {
    throw Error(ErrorCode::kUsage, std::to_string(ranks) + " ranks",
                "would write samples that depend on how many ranks there are", "",
                "--batch-invariant makes them independent of it");
  }
  if (settings.chat)
    throw Error(ErrorCode::kUsage, "--chat", "is for one rank, not " + std::to_string(ranks));
  if (!settings.prompt) RefuseSharedPipe(ranks, "--input", settings.input);
  RefuseSharedPipe(ranks, "--state-in", settings.state_in);
}

nlohmann::ordered_json RunGenerate(const ModelFamilies& families, const GenerateSettings& settings,
                                   const ProcessSetup& process, ByteSink* out, World* world,
                                   bool on_terminal) {
  CheckRanks(settings, world->size());
  CheckStateSettings(settings);
  CheckFormat(settings);
  CheckChat(settings);
  CheckQuant(settings);
  return WithMemoryErrors(
      [&] { return MemoryUserOf(settings); },
      [&] {
        std::optional<Job> job;
        DoAlike(world, [&] { job.emplace(families, settings, process, out, world, on_terminal); });
        return job->Run();
      });
}

}  // namespace trainwright

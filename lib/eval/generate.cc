#include "lib/eval/generate.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/base/signals.h"
#include "lib/device/accelerator.h"
#include "lib/eval/repetition.h"
#include "lib/nn/linear/thin_product.h"

namespace trainwright {
namespace {

/// Prompt tokens that are computed together.
constexpr int64_t kPrefillTokens = 1024;
/// The context of a model that carries a state.
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
/// Rows of a GPU's products where they must not depend on the batch.
constexpr int64_t kFixedRows = 64;

/// A prompt whose samples are being made.
struct Prompt {
  uint64_t index = 0;
  std::vector<int64_t> ids;
  std::vector<std::shared_ptr<const CachedContext>> contexts;  // before the ids
  std::shared_ptr<const RecurrentState> state;                 // likewise
  std::shared_ptr<const PromptEnds> ends;                      // null: as all others
  std::vector<float> logits;                                   // behind its last token, once computed
  int64_t started = 0;                                         // samples
  std::vector<std::optional<Generation>> finished;

  int64_t context_tokens() const {
    int64_t tokens = state != nullptr ? state->tokens : 0;
    for (const auto& context : contexts) tokens += std::ssize(context->tokens);
    return tokens;
  }
  int64_t length() const { return context_tokens() + std::ssize(ids); }

  bool done() const {
    return std::all_of(finished.begin(), finished.end(),
                       [](const auto& sample) { return sample.has_value(); });
  }
};

/// A sequence of the decoder. Its first tokens stay those of the last prompt that it began with.
struct Slot {
  std::shared_ptr<Prompt> prompt;  // also when idle
  bool active = false;
  FindEnd find_end;           // of its sample; may be empty
  Generation sample;          // its last id is chosen and not yet appended
  std::vector<int64_t> held;  // ids that the decoder has of it, where a prefix may be kept
  int64_t kept = 0;           // of the prompt's ids, which are not computed again
};

/// A token, and where asked for what the model gave it.
struct Choice {
  uint32_t token = 0;
  std::optional<ChosenLogProbabilities> log_probabilities;
};

class Generator {
 public:
  Generator(LanguageModel* model, const GenerationOptions& options, const NextPrompt& next,
            const StopCheck& stop, const TakeGeneration& take)
      : model_(model),
        options_(options),
        next_prompt_(next),
        stop_(stop),
        take_(take),
        context_(model->body().carries_state() ? kUnlimited : model->config().max_positions),
        chosen_ids_(options.chosen_ids > 0 ? std::min(options.chosen_ids, model->config().vocab_size)
                                           : model->config().vocab_size),
        slots_(static_cast<size_t>(options.batch)) {
    if (options.batch_invariant) {
      const bool on_gpu = IsAccelerator(model->parameters().values().device());
      rows_a_call_ = on_gpu ? kFixedRows : cpu::kMostThinRows;
      fixed_rows_ = on_gpu ? kFixedRows : 0;
    }
  }

  GenerationCounts Run() {
    for (;;) {
      ThrowIfStopped();
      const bool started = Fill();
      if (AnyActive()) {
        Step();
      } else if (!started) {
        return counts_;
      }
    }
  }

 private:
  bool AnyActive() const {
    return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.active; });
  }
  int64_t NumberOf(const Slot& slot) const { return &slot - slots_.data(); }

  /// Reads the next prompt, which waits then.
  /// \returns whether there was one
  bool Read();
  /// The prompt of which the next sample is; null when there is none, or when those that run must end first.
  std::shared_ptr<Prompt> PromptToStart();
  /// Makes room for sequences of this length, unless some are being decoded.
  /// \returns whether there is room
  bool Reserve(int64_t tokens);
  /// The most sequences that are decoded together from here on. Reads prompts ahead until that is known.
  int64_t SequencesToCome();
  /// Puts waiting samples into idle slots.
  /// \returns whether there were any
  bool Fill();
  /// Empties a slot's sequence, but for what the prompt has in common with it where that is kept.
  void Clear(Slot* slot, const Prompt& prompt);
  /// Computes the prompts of slots, together.
  void Compute(const std::vector<Slot*>& slots);
  /// Appends a token to every active sequence and chooses the next ones.
  void Step();
  void StepSome(const std::vector<Slot*>& slots);
  Choice Choose(const Slot& slot, const float* logits) const;
  /// The logits after the penalty for what the slot's sequence holds.
  std::vector<float> Penalized(const Slot& slot, const float* logits) const;
  /// Takes a chosen token into the slot's sample, which may end with it.
  void Advance(Slot* slot, Choice&& choice);
  void End(Slot* slot, FinishReason reason);
  /// Takes the state of a slot whose sample ends.
  void TakeStateBehind(const Slot& slot, FinishReason reason);
  /// Gives out what is next in order and finished.
  void Emit();

  LanguageModel* model_;
  const GenerationOptions& options_;
  const NextPrompt& next_prompt_;
  const StopCheck& stop_;
  const TakeGeneration& take_;
  int64_t context_;
  int64_t chosen_ids_;
  int64_t rows_a_call_ = std::numeric_limits<int64_t>::max(), fixed_rows_ = 0;

  std::unique_ptr<Decoder> decoder_;
  int64_t capacity_ = 0;  // tokens of a sequence
  std::vector<Slot> slots_;
  std::deque<std::shared_ptr<Prompt>> prompts_;  // with samples started and not yet given out, in order
  std::deque<std::shared_ptr<Prompt>> waiting_;  // read and not begun
  bool exhausted_ = false;
  GenerationCounts counts_;
};

bool Generator::Read() {
  TokenizedPrompt tokenized;
  if (exhausted_ || !next_prompt_(&tokenized)) {
    exhausted_ = true;
    return false;
  }
  TRAINWRIGHT_CHECK(!tokenized.ids.empty() || tokenized.state != nullptr);
  auto prompt = std::make_shared<Prompt>();
  prompt->index = tokenized.index;
  prompt->ids.assign(tokenized.ids.begin(), tokenized.ids.end());
  prompt->contexts = std::move(tokenized.contexts);
  prompt->state = std::move(tokenized.state);
  prompt->ends = std::move(tokenized.ends);
  if (prompt->length() > context_) {
    throw Error(ErrorCode::kBadInput, "prompt " + std::to_string(tokenized.index + 1),
                "has " + std::to_string(prompt->length()) + " tokens, the model's context is " +
                    std::to_string(context_),
                "", "shorten it");
  }
  prompt->finished.resize(static_cast<size_t>(options_.samples));
  ++counts_.prompts;
  counts_.prompt_tokens += tokenized.ids.size();
  counts_.context_tokens += static_cast<uint64_t>(prompt->context_tokens());
  waiting_.push_back(std::move(prompt));
  return true;
}

std::shared_ptr<Prompt> Generator::PromptToStart() {
  if (!prompts_.empty() && prompts_.back()->started < options_.samples) return prompts_.back();
  if (waiting_.empty() && !Read()) return nullptr;
  const int64_t length = waiting_.front()->length();
  // Any number of tokens may be asked for: the sum with the length may be beyond 64 bits.
  if (!Reserve(length + std::min(context_ - length, options_.max_tokens))) return nullptr;
  prompts_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return prompts_.back();
}

bool Generator::Reserve(int64_t tokens) {
  if (tokens <= capacity_) return true;
  if (AnyActive()) return false;
  constexpr int64_t kStep = 256;
  if (options_.keep_prefix) tokens = std::max(tokens, 2 * capacity_);  // what is held is lost when it grows
  capacity_ = context_ == kUnlimited ? kUnlimited : std::min(context_, (tokens + kStep - 1) / kStep * kStep);
  const int64_t sequences = SequencesToCome();
  decoder_ = nullptr;  // its memory goes first
  decoder_ = model_->NewDecoder(capacity_, sequences);
  for (Slot& slot : slots_) {
    slot.prompt = nullptr;
    slot.held.clear();
  }
  return true;
}

int64_t Generator::SequencesToCome() {
  const auto samples = [this] { return std::ssize(waiting_) * options_.samples; };
  while (samples() < options_.batch && Read()) {
  }
  return std::min(options_.batch, samples());
}

bool Generator::Fill() {
  std::vector<Slot*> started, fresh;
  int64_t fresh_tokens = 0;
  const auto compute = [&] {
    if (!fresh.empty()) Compute(fresh);
    fresh.clear();
    fresh_tokens = 0;
  };
  for (Slot& slot : slots_) {
    if (slot.active) continue;
    const std::shared_ptr<Prompt> prompt = PromptToStart();
    if (prompt == nullptr) break;
    const int64_t length = prompt->length();
    auto holder =
        std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.prompt == prompt; });
    if (slot.prompt == prompt) holder = slots_.begin() + NumberOf(slot);
    if (holder == slots_.end()) {
      if (options_.batch_invariant || fresh_tokens + std::ssize(prompt->ids) > kPrefillTokens) compute();
      Clear(&slot, *prompt);
      if (prompt->state != nullptr) decoder_->body().ImportState(NumberOf(slot), *prompt->state);
      for (const auto& context : prompt->contexts) decoder_->body().Import(NumberOf(slot), context->cache);
      fresh.push_back(&slot);
      fresh_tokens += std::ssize(prompt->ids);
    } else {
      if (prompt->logits.empty()) compute();
      decoder_->Fork(NumberOf(*holder), NumberOf(slot), length);
      if (options_.keep_prefix) slot.held = prompt->ids;
    }
    slot.prompt = prompt;
    slot.active = true;
    const int64_t number = options_.first_sample + prompt->started++ * options_.sample_stride;
    slot.sample = {.prompt = prompt->index, .sample = number, .ids = {}};
    const StopCheck& stop = prompt->ends != nullptr ? prompt->ends->stop : stop_;
    slot.find_end = stop ? stop(prompt->ids) : FindEnd();
    started.push_back(&slot);
  }
  compute();
  for (Slot* slot : started) Advance(slot, Choose(*slot, slot->prompt->logits.data()));
  Emit();
  return !started.empty();
}

void Generator::Clear(Slot* slot, const Prompt& prompt) {
  slot->kept = 0;
  if (options_.keep_prefix && context_ != kUnlimited && prompt.context_tokens() == 0) {
    const auto ends =
        std::mismatch(slot->held.begin(), slot->held.end(), prompt.ids.begin(), prompt.ids.end());
    // The last id is computed in any case: its logits are asked for.
    slot->kept = std::min<int64_t>(ends.first - slot->held.begin(), std::ssize(prompt.ids) - 1);
    slot->held = prompt.ids;
  }
  decoder_->Fork(NumberOf(*slot), NumberOf(*slot), slot->kept);
}

void Generator::Compute(const std::vector<Slot*>& slots) {
  const auto keep = [](const at::Tensor& logits_v, Prompt* prompt) {
    const auto* logits = logits_v.const_data_ptr<float>();
    prompt->logits.assign(logits, logits + logits_v.numel());
  };
  std::vector<Continuation> next;
  std::vector<Prompt*> prompts;
  for (const Slot* slot : slots) {
    if (slot->prompt->ids.empty()) {
      keep(decoder_->LogitsBehind(NumberOf(*slot)).cpu(), slot->prompt.get());
    } else {
      const std::vector<int64_t>& ids = slot->prompt->ids;
      next.push_back({NumberOf(*slot), {ids.begin() + slot->kept, ids.end()}});
      counts_.kept_tokens += static_cast<uint64_t>(slot->kept);
      prompts.push_back(slot->prompt.get());
    }
  }
  if (!next.empty()) {
    const at::Tensor logits_bv = decoder_->AppendToEach(next).cpu();
    for (size_t i = 0; i < prompts.size(); ++i) keep(logits_bv[static_cast<int64_t>(i)], prompts[i]);
  }
  counts_.prefills += next.size();
  if (!options_.take_state || options_.state_after != StateAfter::kPrompt) return;
  for (const Slot* slot : slots) options_.take_state(decoder_->body().ExportState(NumberOf(*slot)));
}

void Generator::Step() {
  std::vector<Slot*> some;
  for (Slot& slot : slots_) {
    if (!slot.active) continue;
    some.push_back(&slot);
    if (static_cast<int64_t>(some.size()) == rows_a_call_) {
      StepSome(some);
      some.clear();
    }
  }
  if (!some.empty()) StepSome(some);
  ++counts_.steps;
  Emit();
}

void Generator::StepSome(const std::vector<Slot*>& slots) {
  std::vector<Continuation> next;
  for (const Slot* slot : slots) next.push_back({NumberOf(*slot), {slot->sample.ids.back()}});
  const at::Tensor logits_bv = decoder_->AppendToEach(next, fixed_rows_).cpu();
  if (options_.keep_prefix) {
    for (Slot* slot : slots) slot->held.push_back(slot->sample.ids.back());
  }
  const auto* logits = logits_bv.const_data_ptr<float>();
  const int64_t vocabulary = logits_bv.size(1);
  std::vector<Choice> choices(slots.size());
  at::parallel_for(0, static_cast<int64_t>(slots.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) choices[i] = Choose(*slots[i], logits + i * vocabulary);
  });
  for (size_t i = 0; i < slots.size(); ++i) Advance(slots[i], std::move(choices[i]));
}

Choice Generator::Choose(const Slot& slot, const float* logits) const {
  const Rng prompt(options_.seed, "generate", slot.sample.prompt);
  const Rng sample(prompt.key(), "sample", static_cast<uint64_t>(slot.sample.sample));
  const double uniform = sample.Uniform(slot.sample.ids.size());
  Choice choice;
  if (options_.sampling.repetition_penalty == 1) {
    choice.token = ChooseToken(logits, chosen_ids_, options_.sampling, uniform);
  } else {
    choice.token = ChooseToken(Penalized(slot, logits).data(), chosen_ids_, options_.sampling, uniform);
  }
  if (options_.log_probabilities) {
    choice.log_probabilities =
        LogProbabilitiesOf(logits, model_->config().vocab_size, choice.token, *options_.log_probabilities);
  }
  return choice;
}

std::vector<float> Generator::Penalized(const Slot& slot, const float* logits) const {
  std::vector<uint32_t> seen;
  for (const auto& context : slot.prompt->contexts) {
    seen.insert(seen.end(), context->tokens.begin(), context->tokens.end());
  }
  seen.insert(seen.end(), slot.prompt->ids.begin(), slot.prompt->ids.end());
  seen.insert(seen.end(), slot.sample.ids.begin(), slot.sample.ids.end());
  std::vector<float> penalized(logits, logits + model_->config().vocab_size);
  PenalizeRepetition(seen, options_.sampling.repetition_penalty, penalized);
  return penalized;
}

void Generator::Advance(Slot* slot, Choice&& choice) {
  const std::vector<uint32_t>& ends = slot->prompt->ends != nullptr ? slot->prompt->ends->ids : options_.ends;
  if (std::find(ends.begin(), ends.end(), choice.token) != ends.end()) {
    return End(slot, FinishReason::kEos);
  }
  std::vector<uint32_t>& ids = slot->sample.ids;
  ids.push_back(choice.token);
  if (choice.log_probabilities)
    slot->sample.log_probabilities.push_back(*std::move(choice.log_probabilities));
  if (options_.watch) options_.watch(choice.token);
  if (const auto end = slot->find_end ? slot->find_end(ids) : std::nullopt) {
    ids.resize(end->ids);
    if (options_.log_probabilities) slot->sample.log_probabilities.resize(end->ids);
    return End(slot, end->reason);
  }
  if (slot->prompt->length() + std::ssize(ids) > context_) {
    return End(slot, FinishReason::kContext);
  }
  if (static_cast<int64_t>(ids.size()) >= options_.max_tokens) End(slot, FinishReason::kLength);
}

void Generator::TakeStateBehind(const Slot& slot, FinishReason reason) {
  // Where another id than an end was chosen last, nothing was computed behind it.
  if (reason != FinishReason::kEos) {
    decoder_->AppendToEach({{NumberOf(slot), {slot.sample.ids.back()}}}, fixed_rows_);
  }
  options_.take_state(decoder_->body().ExportState(NumberOf(slot)));
}

void Generator::End(Slot* slot, FinishReason reason) {
  if (options_.take_state && options_.state_after == StateAfter::kSample) TakeStateBehind(*slot, reason);
  slot->sample.finish = reason;
  ++counts_.samples;
  counts_.tokens += slot->sample.ids.size();
  slot->active = false;
  const int64_t place = (slot->sample.sample - options_.first_sample) / options_.sample_stride;
  slot->prompt->finished[static_cast<size_t>(place)] = std::move(slot->sample);
}

void Generator::Emit() {
  while (!prompts_.empty() && prompts_.front()->done()) {
    for (std::optional<Generation>& sample : prompts_.front()->finished) take_(std::move(*sample));
    prompts_.pop_front();
  }
}

}  // namespace

std::string FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
      return "eos";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContext:
      return "context";
    case FinishReason::kStop:
      return "stop";
  }
  return "";
}

GenerationCounts Generate(LanguageModel* model, const GenerationOptions& options, const NextPrompt& next,
                          const StopCheck& stop, const TakeGeneration& take) {
  CheckSampling(options.sampling);
  TRAINWRIGHT_CHECK(options.max_tokens >= 1 && options.samples >= 1 && options.batch >= 1);
  return Generator(model, options, next, stop, take).Run();
}

}  // namespace trainwright

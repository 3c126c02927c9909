#include "lib/eval/rank_generation.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/dist/gather.h"
#include "lib/dist/shared_rounds.h"

namespace trainwright {
namespace {

/// Samples of a rank between two meetings, about: so many that ranks seldom wait for each other.
constexpr int64_t kSamplesOfRound = 256;

template <typename Value>
void Append(Value value, std::string* bytes) {
  static_assert(std::is_trivially_copyable_v<Value>);
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename Value>
Value Take(std::string_view* bytes) {
  Value value;
  TRAINWRIGHT_CHECK(bytes->size() >= sizeof(value));
  std::memcpy(&value, bytes->data(), sizeof(value));
  bytes->remove_prefix(sizeof(value));
  return value;
}

void Encode(const Generation& generation, std::string* bytes) {
  Append(generation.prompt, bytes);
  Append(generation.sample, bytes);
  Append(generation.finish, bytes);
  Append(uint64_t{generation.ids.size()}, bytes);
  for (const uint32_t id : generation.ids) Append(id, bytes);
  Append(uint64_t{generation.log_probabilities.size()}, bytes);
  for (const ChosenLogProbabilities& of_token : generation.log_probabilities) {
    Append(of_token.chosen, bytes);
    Append(uint64_t{of_token.most.size()}, bytes);
    for (const TokenLogProbability& other : of_token.most) {
      Append(other.id, bytes);
      Append(other.log_probability, bytes);
    }
  }
}

ChosenLogProbabilities DecodeLogProbabilities(std::string_view* bytes) {
  ChosenLogProbabilities of_token{.chosen = Take<double>(bytes), .most = {}};
  const auto others = Take<uint64_t>(bytes);
  for (uint64_t i = 0; i < others; ++i) {
    const auto id = Take<uint32_t>(bytes);
    of_token.most.push_back({.id = id, .log_probability = Take<double>(bytes)});
  }
  return of_token;
}

Generation Decode(std::string_view* bytes) {
  Generation generation;
  generation.prompt = Take<uint64_t>(bytes);
  generation.sample = Take<int64_t>(bytes);
  generation.finish = Take<FinishReason>(bytes);
  const auto ids = Take<uint64_t>(bytes);
  for (uint64_t i = 0; i < ids; ++i) generation.ids.push_back(Take<uint32_t>(bytes));
  const auto log_probabilities = Take<uint64_t>(bytes);
  for (uint64_t i = 0; i < log_probabilities; ++i) {
    generation.log_probabilities.push_back(DecodeLogProbabilities(bytes));
  }
  return generation;
}

/// One rank's part of a generation.
class RankPart {
 public:
  RankPart(World* world, RankDivision division, LanguageModel* model, const GenerationOptions& options,
           const NextPrompt& next, const TakeGeneration& take)
      : world_(world),
        division_(division),
        model_(model),
        options_(options),
        next_(next),
        take_(take),
        rounds_(world, 1),
        prompts_of_round_(std::max<int64_t>(1, kSamplesOfRound / options.samples)) {
    if (division_ == RankDivision::kPrompts) return;
    options_.first_sample = world->rank();
    options_.sample_stride = world->size();
    options_.samples = (options.samples - world->rank() + world->size() - 1) / world->size();
  }

  GenerationCounts Run(const StopCheck& stop) {
    GenerationCounts counts;
    rounds_.Run([&] {
      if (options_.samples > 0) {
        counts = Generate(
            model_, options_, [this](TokenizedPrompt* prompt) { return NextOwn(prompt); }, stop,
            [this](Generation&& sample) { Keep(sample); });
      }
      while (Read()) {  // to the end, as one rank does, also where none of the rest is its own
      }
      while (!Exchange(/*finished=*/true)) {
      }
      rounds_.Meet({0});  // the writer has taken all
    });
    std::vector<int64_t> sums = {static_cast<int64_t>(counts.samples), static_cast<int64_t>(counts.tokens),
                                 static_cast<int64_t>(counts.prefills), static_cast<int64_t>(counts.steps)};
    world_->Reduce(&sums);
    return {.prompts = read_,
            .samples = static_cast<uint64_t>(sums[0]),
            .tokens = static_cast<uint64_t>(sums[1]),
            .prompt_tokens = prompt_tokens_,
            .context_tokens = context_tokens_,
            .prefills = static_cast<uint64_t>(sums[2]),
            .steps = static_cast<uint64_t>(sums[3])};
  }

 private:
  bool IsOwn(uint64_t prompt) const {
    return division_ == RankDivision::kSamples ||
           prompt % static_cast<uint64_t>(world_->size()) == static_cast<uint64_t>(world_->rank());
  }

  /// The next prompt, which waits where it is this rank's own.
  bool Read() {
    TokenizedPrompt prompt;
    if (!next_(&prompt)) return false;
    TRAINWRIGHT_CHECK(prompt.index == read_);
    ++read_;
    prompt_tokens_ += prompt.ids.size();
    for (const auto& context : prompt.contexts) context_tokens_ += context->tokens.size();
    if (prompt.state != nullptr) context_tokens_ += static_cast<uint64_t>(prompt.state->tokens);
    if (IsOwn(prompt.index)) own_.push_back(std::move(prompt));
    return true;
  }

  bool NextOwn(TokenizedPrompt* prompt) {
    while (own_.empty()) {
      if (!Read()) return false;
    }
    *prompt = std::move(own_.front());
    own_.pop_front();
    return true;
  }

  void Keep(const Generation& sample) {
    Encode(sample, &made_);
    if (++samples_made_ % (options_.samples * prompts_of_round_) == 0) Exchange(/*finished=*/false);
  }

  /// Brings the samples of a round together.
  /// \param finished whether this rank has made all of its own
  /// \returns whether all ranks have
  bool Exchange(bool finished) {
    const std::vector<std::vector<int64_t>> unfinished = rounds_.Meet({finished ? 0 : 1});
    const std::vector<std::string> made = GatherBytes(world_, std::exchange(made_, {}));
    if (world_->is_writer()) TakeInOrder(made);
    return std::all_of(unfinished.begin(), unfinished.end(), [](const auto& rank) { return rank[0] == 0; });
  }

  void TakeInOrder(const std::vector<std::string>& made) {
    std::vector<Generation> samples;
    for (std::string_view bytes : made) {
      while (!bytes.empty()) samples.push_back(Decode(&bytes));
    }
    std::sort(samples.begin(), samples.end(), [](const Generation& a, const Generation& b) {
      return std::pair(a.prompt, a.sample) < std::pair(b.prompt, b.sample);
    });
    for (Generation& sample : samples) {
      // Another rank may be ahead of this one.
      while (read_ <= sample.prompt && Read()) {
      }
      if (read_ <= sample.prompt) {
        throw Error(ErrorCode::kBadInput, "prompt " + std::to_string(sample.prompt + 1),
                    "is there on another rank and not on rank 0", "", "give all ranks the same prompts");
      }
      take_(std::move(sample));
    }
  }

  World* world_;
  RankDivision division_;
  LanguageModel* model_;
  GenerationOptions options_;  // of this rank
  const NextPrompt& next_;
  const TakeGeneration& take_;
  SharedRounds rounds_;
  int64_t prompts_of_round_;  // of each rank

  uint64_t read_ = 0, prompt_tokens_ = 0, context_tokens_ = 0;  // of all prompts
  std::deque<TokenizedPrompt> own_;                             // read and not begun
  std::string made_;                                            // samples since the last meeting, encoded
  int64_t samples_made_ = 0;
};

}  // namespace

GenerationCounts GenerateOnRanks(World* world, RankDivision division, LanguageModel* model,
                                 const GenerationOptions& options, const NextPrompt& next,
                                 const StopCheck& stop, const TakeGeneration& take) {
  if (world->size() == 1) return Generate(model, options, next, stop, take);
  TRAINWRIGHT_CHECK(options.batch_invariant);
  return RankPart(world, division, model, options, next, take).Run(stop);
}

}  // namespace trainwright

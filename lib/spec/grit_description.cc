/// What is said of the objective grit: its options, and what follows from them before one is made.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/number_list.h"
#include "lib/spec/built_in_objectives.h"
#include "lib/spec/family.h"
#include "lib/spec/first_token.h"
#include "lib/spec/objective_names.h"

namespace trainwright {
namespace {

constexpr double kMostTokens = 1 << 30, kMostSamples = 1 << 30, kMostWidth = 1 << 16;

// Kinds of options.

OwnOption Choice(std::string name, std::vector<std::string> choices, std::string help) {
  std::string initial = choices.front();
  return {.name = std::move(name),
          .initial = std::move(initial),
          .choices = std::move(choices),
          .help = std::move(help)};
}

/// Off where nobody says otherwise.
OwnOption Switch(std::string name, std::string help) {
  return Choice(std::move(name), {"off", "on"}, std::move(help));
}

OwnOption Whole(std::string name, double initial, double least, double most, std::string help) {
  return {.name = std::move(name),
          .initial = initial,
          .least = least,
          .most = most,
          .whole = true,
          .type_name = "N",
          .help = std::move(help)};
}

OwnOption Number(std::string name, double initial, double least, double most, std::string help) {
  return {.name = std::move(name),
          .initial = initial,
          .least = least,
          .most = most,
          .type_name = "X",
          .help = std::move(help)};
}

OwnOption Text(std::string name, std::string initial, std::string type_name, std::string help) {
  return {.name = std::move(name),
          .initial = std::move(initial),
          .type_name = std::move(type_name),
          .help = std::move(help)};
}

/// Of one that says what the model is.
OwnOption OfModel(OwnOption option) {
  option.fixed_in_branch = true;
  return option;
}

/// Of one that says how a step is computed.
OwnOption OfPasses(OwnOption option) {
  option.free_on_resume = true;
  return option;
}

// The options, in the order of the help.

std::vector<OwnOption> TextOptions() {
  return {
      OfModel(Choice("mode", {"embedding", "generative", "unified"},
                     "what is trained; vectors of texts (contrastive records), the prediction of tokens (lm "
                     "or sft records), or both (default: what the records of --data are for)")),
      Whole("query_max_len", 32, 1, kMostTokens,
            "longest query in tokens, its instruction included; longer ones lose their end"),
      Whole("passage_max_len", 128, 1, kMostTokens, "longest positive or negative, likewise"),
      Whole("generative_max_len", 0, 0, kMostTokens,
            "longest text whose tokens are predicted, likewise (default: --passage-max-len)"),
      Whole("group_size", 2, 1, kMostWidth,
            "passages of a query: its positive, and hard negatives of its record, drawn again in every "
            "epoch. A "
            "record without negatives gives its positive alone"),
      Text("positives", "one", "one|all|N",
           "positives of a query: one or N of its record, drawn again in every epoch, or all of them; the "
           "hard negatives, one less than --group-size, come on top"),
      Whole("max_records", 1e8, 1, 1e15, "records that are taken of each set of --data, drawn by --seed"),
      Text("num_samples", "", "FILE",
           "JSON object with the most records of each set by its name, as {\"nli\": 50000}; a set that it "
           "does not name is an error (default: none)"),
      Switch(
          "unique_indices",
          "in mode unified an epoch is as long as the larger of both kinds of records. on: the others come "
          "again in whole passes, each record once in a pass; off: they are drawn with replacement"),
  };
}

std::vector<OwnOption> EmbeddingOptions() {
  return {
      OfModel(Choice("pooling", {"mean", "weightedmean", "cls", "lasttoken"},
                     "how the hidden states of a text become one vector; those of its instruction are left "
                     "out. mean: their mean; weightedmean: the mean with weights 1, 2, 3, ...; cls: the "
                     "first one, an instruction's included; lasttoken: the last one")),
      OfModel(Choice("attn", {"bbcc", "cccc", "bb", "cc"},
                     "attention, b for bidirectional and c for causal; of instruction and text when a text "
                     "is embedded and, as the third and fourth letter, when it is predicted")),
      OfModel(Whole(
          "projection", 0, 0, kMostWidth,
          "elements of a vector, made by a linear layer after the pooling; 0: no such layer, and vectors as "
          "wide as the hidden states")),
      OfModel(Choice("normalize", {"on", "off"},
                     "whether vectors are scaled to length 1, in fp32. off: their products compare them, "
                     "lengths and all")),
      Switch(
          "round_vectors",
          "round vectors to the run's precision (bf16, fp16) before they are scored, as GRIT's own trainer "
          "does; off: they stay fp32"),
      Text("matryoshka", "", "N,N,...",
           "sizes N, rising: the first N elements of a vector are trained to be a vector by themselves; the "
           "loss is the sum over the sizes (default: whole vectors alone)"),
      Text("matryoshka_weights", "", "W,W,...", "weight of the loss of each such size (default: 1 each)"),
  };
}

std::vector<OwnOption> LossOptions() {
  return {
      Number("temperature", 0.02, 1e-4, 1e6,
             "what scores (cosines of query and passage, or with --normalize off their products) are "
             "divided by; 1 / temperature is the scale of other trainers"),
      Choice("negatives", {"step", "rank", "micro-batch"},
             "whose passages are the in-batch negatives of a query; those of the whole step, on all ranks, "
             "of its rank's part of the step, or of its micro-batch"),
      Choice("emb_grad_scale", {"world", "upstream"},
             "gradient of the contrastive loss on several ranks. world: that of the mean over all queries; "
             "upstream: divided by the number of ranks, as GRIT's own trainer has it"),
      Switch("symmetric",
             "the loss is the mean of two; of queries that find their positives, and of positives that find "
             "their queries"),
      Choice("mask_false_negatives", {"no", "text", "margin"},
             "passages that are left out of a query's negatives. no: none; text: those with the text of a "
             "positive of its record or of the query itself, each as it was cut to its greatest length; "
             "margin: those whose score is above the lowest of its positives less --false-negative-margin"),
      Number("false_negative_margin", 0, -2, 2,
             "of --mask-false-negatives margin, a difference of scores before --temperature divides them"),
      Choice("emb_sides", {"both", "query", "passage"},
             "whose vectors get gradients; those of the other side are constants"),
      Choice(
          "gen_loss", {"mixed", "token", "sample"},
          "how the losses of predicted tokens are averaged. mixed: their sum over the step by its predicted "
          "tokens; token: by its texts; sample: the mean over texts of each one's mean"),
      Choice("gen_mean", {"step", "micro-batch"},
             "of --gen-loss mixed, what is averaged; all predicted tokens of the step, or the means of its "
             "micro-batches"),
      Number("gen_loss_factor", 1, 0, 1e6,
             "weight of the generative loss in the sum of both losses, above 0"),
      Whole("gen_batch", 0, 0, kMostSamples,
            "texts of a micro-batch that are predicted in mode unified; divides --batch (default: --batch)"),
      Switch("prefixlm", "predict the last answer of a conversation alone"),
  };
}

std::vector<OwnOption> PassOptions() {
  return {
      OfPasses(Choice(
          "split_emb", {"no", "passages", "full"},
          "whether queries and passages go through the model apart; it takes less memory and more time. "
          "no; passages: in the backward pass, passages first; full: in all passes")),
      OfPasses(Switch(
          "no_emb_gas",
          "compute the texts to embed of a rank's step in one pass; the same gradients in less time, for "
          "more memory, than by one pass for each micro-batch")),
      OfPasses(Switch("no_gen_gas",
                      "compute the texts whose tokens are predicted in one pass, too; under --zero 2, which "
                      "shards gradients after every micro-batch, in one for each")),
      OfPasses(Whole("tile_mb", 32, 1, kMostWidth, "MiB of scores that are held at once, about")),
      Whole("eval_queries", 1000, 1, kMostSamples,
            "most queries of an evaluation during training, drawn by --seed"),
      // What gen_batch and the batch of the run's beginning make: on resume another --batch changes nothing.
      {.name = "companion_every", .initial = 1, .least = 1, .most = kMostSamples, .whole = true},
  };
}

std::vector<OwnOption> AllOptions() {
  std::vector<OwnOption> all = TextOptions();
  for (const auto& more : {EmbeddingOptions(), LossOptions(), PassOptions()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// What follows from them.

int64_t WholeOf(const OwnOptions& own, const char* name) {
  return static_cast<int64_t>(own.at(name).number());
}

bool Is(const OwnOptions& own, const char* name, std::string_view text) {
  return own.at(name).text() == text;
}

OwnOptions OwnOfData(const std::set<RecordKind>& kinds) {
  const size_t contrastive = kinds.count(RecordKind::kContrastive);
  if (contrastive == 0) return {{"mode", "generative"}};
  return {{"mode", kinds.size() > contrastive ? "unified" : "embedding"}};
}

OwnOptions OwnOfModel(const FamilyDescription& family) {
  if (!family.always_causal()) return {};
  return {{"attn", "cccc"}};
}

OwnOptions OwnOfStep(const OwnOptions& own, const StepSizes& step) {
  const int64_t gen_batch = WholeOf(own, "gen_batch");
  if (gen_batch == 0) return {{"companion_every", 1}};
  const bool divides = step.batch % gen_batch == 0;
  return {{"companion_every", divides ? step.batch / gen_batch : 0}};  // 0: Problem says so
}

/// Of a query, at most; of "all" nobody knows.
int64_t PassagesOf(const OwnOptions& own) {
  const std::string& positives = own.at("positives").text();
  int64_t count = 1;
  std::from_chars(positives.data(), positives.data() + positives.size(), count);
  return count + WholeOf(own, "group_size") - 1;
}

SampleTokens TokensOf(const OwnOptions& own) {
  const int64_t query = WholeOf(own, "query_max_len"), passage = WholeOf(own, "passage_max_len");
  const int64_t asked = WholeOf(own, "generative_max_len"), generative = asked > 0 ? asked : passage;
  if (Is(own, "mode", "generative")) return {.longest_span = generative, .sample = generative};
  SampleTokens tokens = {.longest_span = std::max(query, passage),
                         .sample = query + PassagesOf(own) * passage};
  if (Is(own, "mode", "unified")) {
    tokens.longest_span = std::max(tokens.longest_span, generative);
    tokens.sample += generative;
  }
  return tokens;
}

/// Nullopt: it is no list of numbers above 0.
std::optional<std::vector<double>> NumbersOf(const std::string& list) {
  if (list.empty()) return std::vector<double>();
  std::optional<std::vector<double>> numbers = ParseNumberList<double>(list);
  const auto is_positive = [](double number) { return std::isfinite(number) && number > 0; };
  if (numbers && !std::all_of(numbers->begin(), numbers->end(), is_positive)) return std::nullopt;
  return numbers;
}

/// What is wrong with the sizes of vectors of this width.
std::string ProblemOfSizes(const OwnOptions& own, int64_t width) {
  for (const double size : NumbersOf(own.at("matryoshka").text()).value_or(std::vector<double>())) {
    if (size <= static_cast<double>(width)) continue;
    return "--matryoshka asks for " + std::to_string(static_cast<int64_t>(size)) +
           " elements of vectors that have " + std::to_string(width) +
           ": give sizes up to that, or a larger --projection";
  }
  return "";
}

std::string ProblemOfModel(const OwnOptions& own, const FamilyDescription& family, int64_t hidden_size) {
  const std::string& attention = own.at("attn").text();
  if (std::string problem = ProblemOfAttention(family, attention); !problem.empty()) return problem;
  if (Is(own, "mode", "generative")) return "";
  const std::string problem = Is(own, "pooling", "cls") ? ProblemOfFirstToken(family, attention) : "";
  if (!problem.empty()) return "--pooling cls " + problem;
  const int64_t projection = WholeOf(own, "projection");
  return ProblemOfSizes(own, projection > 0 ? projection : hidden_size);
}

std::string ProblemOfLists(const OwnOptions& own) {
  const auto sizes = NumbersOf(own.at("matryoshka").text());
  const auto weights = NumbersOf(own.at("matryoshka_weights").text());
  const auto is_size = [](double size) { return size == std::floor(size) && size <= kMostWidth; };
  if (!sizes || !std::all_of(sizes->begin(), sizes->end(), is_size) ||
      std::adjacent_find(sizes->begin(), sizes->end(), std::greater_equal<>()) != sizes->end()) {
    return "--matryoshka takes whole numbers above 0 that rise: 64,128,256";
  }
  if (!weights) return "--matryoshka-weights takes numbers above 0: 1,1,0.5";
  if (!weights->empty() && weights->size() != sizes->size()) {
    return "--matryoshka-weights takes as many numbers as --matryoshka";
  }
  const std::string& positives = own.at("positives").text();
  const auto count = NumbersOf(positives);
  const bool is_count = count && count->size() == 1 && count->front() == std::floor(count->front()) &&
                        count->front() <= kMostWidth;
  if (positives != "one" && positives != "all" && !is_count) {
    return "--positives takes one, all, or a whole number above 0";
  }
  return "";
}

/// Of what is said of micro-batches.
std::string ProblemOfMicroBatches(const OwnOptions& own, const StepSizes& step) {
  const bool embeds = !Is(own, "mode", "generative"), generates = !Is(own, "mode", "embedding");
  const bool means = generates && Is(own, "gen_mean", "micro-batch");
  const bool negatives = embeds && Is(own, "negatives", "micro-batch");
  if (means && Is(own, "no_gen_gas", "on")) {
    return "--gen-mean micro-batch and --no-gen-gas cannot both be in force: all is one micro-batch then";
  }
  if (negatives && Is(own, "no_emb_gas", "on")) {
    return "--negatives micro-batch and --no-emb-gas cannot both be in force: all is one micro-batch then";
  }
  if (!step.auto_oom || (!means && !negatives)) return "";
  return std::string(means ? "--gen-mean" : "--negatives") +
         " micro-batch and --auto-oom cannot both be in force: halving micro-batches would change the loss";
}

std::string ProblemOfStep(const OwnOptions& own, const StepSizes& step) {
  // Where a run begins: one that goes on with another --batch keeps what it began with.
  if (WholeOf(own, "companion_every") == 0) {
    return "--gen-batch " + own.at("gen_batch").ToString() + " does not divide --batch " +
           std::to_string(step.batch);
  }
  const std::string of_ranks = Is(own, "negatives", "rank")            ? "--negatives rank"
                               : Is(own, "emb_grad_scale", "upstream") ? "--emb-grad-scale upstream"
                                                                       : "";
  if (step.exact_world > 0 && !of_ranks.empty()) {
    return of_ranks + " depends on the number of ranks, which under --exact-world nothing may";
  }
  if (std::string problem = ProblemOfMicroBatches(own, step); !problem.empty()) return problem;
  if (Is(own, "mode", "generative") || PassagesOf(own) > 1) return "";
  const int64_t queries = Is(own, "negatives", "micro-batch") ? step.batch
                          : Is(own, "negatives", "rank")      ? step.step_samples / step.ranks
                                                              : step.step_samples;
  if (queries > 1) return "";
  return "a query whose own positive is the only passage has no negative: take a greater --batch, --accum or "
         "--group-size";
}

std::string Problem(const OwnOptions& own, const StepSizes& step) {
  if (std::string problem = ProblemOfLists(own); !problem.empty()) return problem;
  if (!Is(own, "mode", "embedding") && (Is(own, "attn", "bb") || Is(own, "attn", "cc"))) {
    return "--attn " + own.at("attn").text() +
           " is for --mode embedding alone: it has no letters for texts that are predicted";
  }
  if (own.at("gen_loss_factor").number() == 0) return "--gen-loss-factor must be above 0";
  return ProblemOfStep(own, step);
}

EmbeddingTuning TuningOf(const OwnOptions& own) {
  if (Is(own, "mode", "generative")) return {};
  const bool predicts = Is(own, "mode", "unified");
  return {.projection = WholeOf(own, "projection"), .train_head = predicts, .needs_head = predicts};
}

std::vector<MemoryLever> LeversOf(const OwnOptions& own) {
  std::vector<MemoryLever> levers = {MemoryLever::kTextLengths};
  if (!Is(own, "mode", "embedding") && Is(own, "no_gen_gas", "on")) {
    levers.push_back(MemoryLever::kSeparateRows);
  }
  if (Is(own, "mode", "generative")) return levers;
  if (Is(own, "no_emb_gas", "on")) levers.push_back(MemoryLever::kSeparateTexts);
  if (!Is(own, "split_emb", "full")) levers.push_back(MemoryLever::kSplitTexts);
  levers.push_back(MemoryLever::kTile);
  if (Is(own, "negatives", "step")) levers.push_back(MemoryLever::kRepresentations);
  return levers;
}

}  // namespace

ObjectiveDescription GritDescription() {
  return {.name = kGritObjective,
          .records = {{.kind = RecordKind::kContrastive},
                      {.kind = RecordKind::kSft, .chosen = false},
                      {.kind = RecordKind::kLm, .chosen = false}},
          .settled = {{"loss_on", "assistant"}},
          .own = AllOptions(),
          .own_of_data = OwnOfData,
          .own_of_model = OwnOfModel,
          .problem_of_model = ProblemOfModel,
          .own_of_step = OwnOfStep,
          .sample_tokens = TokensOf,
          .sample_flags = "--query-max-len, --passage-max-len and --generative-max-len",
          .problem = Problem,
          .embedding = TuningOf,
          .memory_levers = LeversOf,
          .mixes = true,
          .drops_last = true};
}

}  // namespace trainwright

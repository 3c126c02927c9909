#include "lib/objective/grit_objective.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/base/error.h"
#include "lib/dist/shared_work.h"
#include "lib/formats/json_text.h"
#include "lib/objective/grit_batch.h"
#include "lib/objective/grit_evaluation.h"
#include "lib/objective/grit_generative.h"
#include "lib/objective/grit_negatives.h"
#include "lib/objective/grit_step.h"
#include "lib/spec/built_in_objectives.h"

namespace trainwright {
namespace {

std::vector<LossTerm> TermsOf(const GritOptions& options) {
  std::vector<LossTerm> terms;
  if (options.embeds()) terms = {{.name = "loss_emb_nats"}, {.name = "in_batch_top1"}};
  if (options.generates()) terms.push_back({.name = "loss_gen_nats"});
  return terms;
}

/// What a step of several micro-batches computes before this one, for who measures it without the others.
void PassOverTexts(const GritOptions& options, const StepPass& pass, const GritSpans& spans) {
  for (const TextRange& range : TextRangesOf(spans, options.splits_forward)) {
    const TextPass texts = TextPassOf({pass, 0, spans}, range, options.mask);
    pass.model->body().Forward(texts.input, Keep::kNothing);
  }
}

/// A step of equal micro-batches, where this is the one that tells how much memory they take: on shapes they
/// are all there. Otherwise itself.
StepBatches AllOnShapes(const StepPass& pass, const StepBatches& batches) {
  StepBatches all = batches;
  if (!pass.model->parameters().values().is_meta() || batches.micro_batches.size() != 1) return all;
  const size_t count = std::max<size_t>(1, batches.of_step);
  all.micro_batches.assign(count, batches.micro_batches.front());
  if (!batches.places.empty()) all.places.assign(count, batches.places.front());
  return all;
}

/// The template that pretokenize wrote texts of contrastive records with; empty: nobody says it.
/// \param provenance as in ShardSetHeader, or of what that was made of
std::string TemplateIn(const nlohmann::json& provenance) {
  if (!provenance.is_object()) return "";
  const nlohmann::json made = provenance.value("options", nlohmann::json::object());
  if (made.is_object() && made.value("records", "") == "contrastive") return made.value("template", "");
  for (const nlohmann::json& input : provenance.value("inputs", nlohmann::json::array())) {
    const std::string found =
        input.is_object() ? TemplateIn(input.value("provenance", nlohmann::json())) : "";
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

GritObjective::GritObjective(GritOptions options)
    : options_(std::move(options)), data_(options_.data), terms_(TermsOf(options_)) {}

std::vector<std::string> GritObjective::Loaders(std::span<const OrderedSet> sets) const {
  return data_.Loaders(sets);
}

SampleStreamOptions GritObjective::Cutting(const std::string& loader,
                                           const SampleStreamOptions& options) const {
  return data_.Cutting(loader, options);
}

std::unique_ptr<const SampleCutter> GritObjective::MakeCutter(const std::string& loader, RecordKind records,
                                                              const SampleStreamOptions& options) const {
  return data_.MakeCutter(loader, records, options);
}

OpenedLoaders GritObjective::OpenLoaders(const ShardSet* set, const SampleStreamOptions& options,
                                         const LoaderOptions& loader) const {
  return data_.Open(set, options, loader);
}

PackedBatch GritObjective::Pack(std::span<const Sample> samples) const {
  return data_.Pack(samples);
}

std::vector<Sample> GritObjective::Join(std::vector<Sample> samples) const {
  return data_.Join(std::move(samples));
}

std::vector<Sample> GritObjective::Draw(const SampleLoaders& loaders, int64_t samples, bool drop_last) const {
  return data_.Draw(loaders, samples, drop_last);
}

std::vector<int64_t> GritObjective::Count(const PackedBatch& micro_batch) const {
  const GritSpans spans(micro_batch);
  std::vector<int64_t> counts;
  if (options_.embeds()) counts = {spans.num_queries(), spans.num_queries()};
  if (options_.generates()) counts.push_back(GenerativeDenominator(options_, micro_batch, spans));
  return counts;
}

StepWork GritObjective::WorkOf(const PackedBatch& micro_batch, const ModelConfig& model) const {
  const GritSpans spans(micro_batch);
  return {.tokens = micro_batch.num_tokens(),
          .labels = micro_batch.num_labels,
          .attention_pairs = AttentionPairsOf(micro_batch, options_.mask, model),
          .tokens_if_padded = TokensIfPadded(micro_batch),
          .texts = {.queries = spans.num_queries(),
                    .passages = spans.num_passages(),
                    .generative_rows = static_cast<int64_t>(spans.rows.size())}};
}

PackedBatch GritObjective::LongestBatch(int64_t samples, int64_t span_tokens) const {
  return data_.LongestBatch(samples, span_tokens);
}

StepWork GritObjective::ForwardAgain(const PackedBatch& micro_batch, const ModelConfig& model) const {
  if (!options_.embeds() || options_.joins_texts || options_.negatives == NegativesOf::kMicroBatch) return {};
  const StepBatches alone = {.micro_batches = {micro_batch}, .places = {}, .denominators = {}};
  return WorkOf(JoinSpans(JoinedSpans::kTexts, alone, 0, 1), model);
}

int64_t GritObjective::PassagesOfQuery() const {
  return static_cast<int64_t>(options_.data.choice.negatives) +
         std::max<int64_t>(1, static_cast<int64_t>(options_.data.choice.positives));
}

std::vector<int64_t> GritObjective::GatheredBytes(const StepShape& shape, const ModelConfig& model) const {
  if (!options_.embeds() || options_.negatives != NegativesOf::kStep || shape.ranks == 1) return {};
  constexpr int64_t kNumbersOfQuery = 4, kNumberBytes = sizeof(int64_t), kFloatBytes = sizeof(float);
  const int64_t queries = shape.samples_of_rank, passages = queries * PassagesOfQuery();
  const int64_t scalars = 2 * std::max<int64_t>(1, static_cast<int64_t>(options_.contrastive.sizes.size()));
  std::vector<int64_t> bytes = {queries * kNumbersOfQuery * kNumberBytes,
                                queries * WidthOf(model) * kFloatBytes,
                                passages * WidthOf(model) * kFloatBytes, queries * scalars * kFloatBytes};
  if (options_.contrastive.symmetric) bytes.push_back(passages * scalars * kFloatBytes);
  if (options_.contrastive.false_negatives == FalseNegatives::kSameText) {
    bytes.push_back(passages * kNumberBytes);
  }
  return bytes;
}

int64_t GritObjective::HeldBytes(const StepShape& shape, const ModelConfig& model) const {
  if (!options_.embeds()) return 0;
  const int64_t width = WidthOf(model), passages = PassagesOfQuery();
  const bool is_whole_step = options_.negatives == NegativesOf::kStep;
  int64_t own = shape.samples_of_rank;
  if (options_.negatives == NegativesOf::kMicroBatch) own = shape.micro_batch;
  const int64_t scored = is_whole_step ? shape.samples_of_step : own;
  const bool is_gathered = is_whole_step && shape.ranks > 1;
  int64_t most_columns = 0;  // of vectors that are cut to a size, and copied for it
  for (const ContrastiveOptions::Size& size : options_.contrastive.sizes) {
    if (size.columns < width) most_columns = std::max(most_columns, size.columns);
  }
  // Vectors, their gradients, and those of queries until all are known; then the vectors of all ranks.
  const int64_t texts = 1 + passages;
  const int64_t floats =
      width * (own * (2 * texts + 1) + (is_gathered ? scored * texts : 0)) + most_columns * scored * texts;
  constexpr int64_t kBytesOfText = 32;
  return static_cast<int64_t>(sizeof(float)) * floats + options_.contrastive.tile_bytes +
         kBytesOfText * scored * texts;
}

std::unique_ptr<StepContext> GritObjective::Begin(const StepPass& pass, World* world) const {
  if (!options_.embeds()) return nullptr;
  const bool tells = pass.step == 1;
  if (options_.negatives == NegativesOf::kMicroBatch) {
    const bool masks_texts = options_.contrastive.false_negatives == FalseNegatives::kSameText;
    DoAlike(world, [&] {
      CheckNegatives(CountQueriesOfMicroBatches(pass.batches->micro_batches, masks_texts),
                     tells && world->is_writer());
    });
    return nullptr;
  }
  std::unique_ptr<GritStep> step;
  DoAlike(world, [&] { step = std::make_unique<GritStep>(options_, pass, world); });
  step->Compute(tells ? TextChecks::kAll : TextChecks::kNegatives);
  return step;
}

void GritObjective::Run(const StepPass& pass, LossSums* sums) const {
  pass.model->set_loss_terms({});
  std::vector<size_t> with_work;
  for (size_t i = 0; i < pass.batches->micro_batches.size(); ++i) {
    if (pass.batches->micro_batches[i].num_labels > 0) with_work.push_back(i);
  }
  StepBatches rows;
  if (options_.generates() && options_.joins_rows) rows = JoinedRows(AllOnShapes(pass, *pass.batches));
  const bool rows_follow =
      !rows.micro_batches.empty() &&
      GenerativeLabels(rows.micro_batches.front(), GritSpans(rows.micro_batches.front())) > 0;
  const bool has_own_rows = options_.generates() && !options_.joins_rows;
  for (const size_t i : with_work) {
    // Joined texts are done with the first.
    const size_t last = options_.joins_texts && !has_own_rows ? with_work.front() : with_work.back();
    RunMicroBatch(pass, i, has_own_rows, i == last && !rows_follow, sums);
  }
  if (!rows_follow) return;
  StepPass own = pass;
  own.batches = &rows;
  RunMicroBatch(own, 0, /*with_rows=*/true, /*is_last=*/true, sums);
}

void GritObjective::RunMicroBatch(const StepPass& pass, size_t micro_batch, bool with_rows, bool is_last,
                                  LossSums* sums) const {
  const StepBatches& batches = *pass.batches;
  const PackedBatch& batch = batches.micro_batches[micro_batch];
  const GritSpans spans(batch);
  const bool has_texts = options_.embeds() && spans.num_queries() > 0;
  const bool has_rows = with_rows && options_.generates() && GenerativeLabels(batch, spans) > 0;
  const at::TensorOptions numbers = pass.model->parameters().values().options().dtype(at::kDouble);
  at::Tensor of_terms = at::zeros({static_cast<int64_t>(terms_.size())}, numbers);
  if (has_texts) of_terms.narrow(0, 0, 2).copy_(RunTexts(pass, micro_batch, is_last && !has_rows));
  if (has_rows) {
    const size_t term = generative_term();
    const at::Tensor sum =
        AddGenerativeGradients(options_, {pass, micro_batch, spans}, batches.denominators[term],
                               options_.embeds() ? batches.denominators[0] : int64_t{0}, is_last);
    of_terms.narrow(0, static_cast<int64_t>(term), 1).copy_(sum);
  }
  if (has_texts || has_rows) sums->AddOnDevice(of_terms);
}

at::Tensor GritObjective::RunTexts(const StepPass& pass, size_t micro_batch, bool is_last) const {
  if (pass.context != nullptr) {
    auto& step = static_cast<GritStep&>(*pass.context);
    const size_t number = pass.first_micro_batch + micro_batch;
    step.BackwardOf(number, pass, is_last);
    return step.SumsOf(number);
  }
  StepBatches alone = {.micro_batches = {pass.batches->micro_batches[micro_batch]},
                       .places = {},
                       .denominators = pass.batches->denominators};
  if (!pass.batches->places.empty()) alone.places = {pass.batches->places[micro_batch]};
  alone.of_step = pass.batches->of_step;
  if (options_.joins_texts) alone = AllOnShapes(pass, alone);
  StepPass own = pass;
  own.batches = &alone;
  own.leaves = 1;
  if (alone.of_step > 1 && !options_.joins_texts && options_.negatives != NegativesOf::kMicroBatch) {
    PassOverTexts(options_, own, GritSpans(alone.micro_batches.front()));
  }
  GritStep step(options_, own, Solo());
  step.Compute();
  step.BackwardOf(0, own, is_last);
  return step.SumsOf(0);
}

double GritObjective::Loss(const std::vector<double>& means) const {
  double loss = options_.embeds() ? means[0] : 0.0;
  if (options_.generates()) loss += means[generative_term()];
  return loss;
}

Evaluation GritObjective::Evaluate(LanguageModel* model, const ShardSet& set,
                                   const EvaluationOptions& options) const {
  return EvaluateGrit(options_, model, set, options);
}

std::optional<EmbeddingSpec> GritObjective::EmbeddingOf(const ShardSet& set) const {
  if (!options_.embeds()) return std::nullopt;
  EmbeddingSpec spec = EmbeddingSpecOf(options_);
  for (const ShardSetPart& part : set.parts()) {
    if (part.records != RecordKind::kContrastive || !spec.template_text.empty()) continue;
    spec.template_text = TemplateIn(JsonOf(part.provenance_json));
  }
  return spec;
}

ObjectiveKind GritObjectiveKind() {
  return {.description = GritDescription(),
          .make =
              [](const ObjectiveOptions& options) {
                return std::make_unique<GritObjective>(GritOptionsOf(options.own, options.seed));
              },
          .own_of_folder = GritOwnOptionsOf};
}

}  // namespace trainwright

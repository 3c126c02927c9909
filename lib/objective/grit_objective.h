/// Representations and generation learned by one model: `grit`.
/// \source Muennighoff et al. 2024 (GRIT), arXiv:2402.09906, section 2: equation 1 is the loss of embedding,
/// 2 that of generation, 3 their sum
///
/// Mode embedding has the contrastive loss over queries and passages (contrastive_loss.h), generative the
/// next token's over rows (grit_generative.h), unified the sum of both. The negatives of a query are the
/// passages of the whole step, on all ranks; the memory that takes is that of GritStep.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/objective/grit_data.h"
#include "lib/objective/grit_options.h"
#include "lib/objective/objective.h"
#include "lib/objective/objective_registry.h"

namespace trainwright {

/// Immutable.
class GritObjective final : public Objective {
 public:
  /// \throws Error{kUsage} on options that say nothing to train on
  explicit GritObjective(GritOptions options);
  const GritOptions& options() const { return options_; }

  /// Of what is embedded loss_emb_nats and in_batch_top1, the share of queries whose positive is the closest
  /// of all passages; of what is generated loss_gen_nats, with its factor.
  const std::vector<LossTerm>& terms() const override { return terms_; }
  std::vector<std::string> Loaders(std::span<const OrderedSet> sets) const override;
  SampleStreamOptions Cutting(const std::string& loader, const SampleStreamOptions& options) const override;
  std::unique_ptr<const SampleCutter> MakeCutter(const std::string& loader, RecordKind records,
                                                 const SampleStreamOptions& options) const override;
  OpenedLoaders OpenLoaders(const ShardSet* set, const SampleStreamOptions& options,
                            const LoaderOptions& loader) const override;
  PackedBatch Pack(std::span<const Sample> samples) const override;
  std::vector<Sample> Join(std::vector<Sample> samples) const override;
  std::vector<int64_t> Count(const PackedBatch& micro_batch) const override;
  StepWork WorkOf(const PackedBatch& micro_batch, const ModelConfig& model) const override;
  PackedBatch LongestBatch(int64_t samples, int64_t span_tokens) const override;
  StepWork ForwardAgain(const PackedBatch& micro_batch, const ModelConfig& model) const override;
  std::vector<int64_t> GatheredBytes(const StepShape& shape, const ModelConfig& model) const override;
  int64_t HeldBytes(const StepShape& shape, const ModelConfig& model) const override;
  std::unique_ptr<StepContext> Begin(const StepPass& pass, World* world) const override;
  void Run(const StepPass& pass, LossSums* sums) const override;
  /// The sum of the losses.
  double Loss(const std::vector<double>& means) const override;
  Evaluation Evaluate(LanguageModel* model, const ShardSet& set,
                      const EvaluationOptions& options) const override;
  /// With the template of the first contrastive set whose provenance says one; else texts are written as they
  /// are.
  std::optional<EmbeddingSpec> EmbeddingOf(const ShardSet& set) const override;

 private:
  /// Places in terms().
  size_t generative_term() const { return options_.embeds() ? 2 : 0; }
  /// Elements of a vector.
  int64_t WidthOf(const ModelConfig& model) const {
    return options_.projection > 0 ? options_.projection : model.hidden_size;
  }
  /// Of a query; at least, where all positives of a record are taken.
  int64_t PassagesOfQuery() const;

  std::vector<Sample> Draw(const SampleLoaders& loaders, int64_t samples, bool drop_last) const override;
  /// \param with_rows whether those of the micro-batch are its own pass
  void RunMicroBatch(const StepPass& pass, size_t micro_batch, bool with_rows, bool is_last,
                     LossSums* sums) const;
  /// Gradients of the texts of a micro-batch, whose vectors are scored with each other alone or, as the
  /// context says, with all of the step.
  /// \returns as GritStep::SumsOf
  at::Tensor RunTexts(const StepPass& pass, size_t micro_batch, bool is_last) const;

  GritOptions options_;
  GritData data_;
  std::vector<LossTerm> terms_;
};

ObjectiveKind GritObjectiveKind();

}  // namespace trainwright

/// The prediction of the next token: "lm" of every token, "sft" of those that sft records say.
///
/// The loss is the mean cross-entropy over the labels of the whole step, plus, where the plan has them, what
/// label smoothing adds and the z-loss: three terms with one denominator. The run's loss is the cross-entropy
/// alone, so that runs with and without the others compare.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/nn/loss/cross_entropy.h"
#include "lib/objective/objective.h"
#include "lib/objective/objective_registry.h"

namespace trainwright {

class LmObjective final : public Objective {
 public:
  /// \param loss_on which tokens of sft records are labels
  LmObjective(LossOn loss_on, const LossTerms& terms);
  const std::vector<LossTerm>& terms() const override { return terms_; }
  SampleStreamOptions Cutting(const std::string& loader, const SampleStreamOptions& options) const override;
  std::vector<int64_t> Count(const PackedBatch& micro_batch) const override;
  bool takes_label_passes() const override { return true; }
  void Run(const StepPass& pass, LossSums* sums) const override;
  double Loss(const std::vector<double>& means) const override { return means[0]; }
  Evaluation Evaluate(LanguageModel* model, const ShardSet& set,
                      const EvaluationOptions& options) const override;

 private:
  LossOn loss_on_;
  LossTerms weights_;
  std::vector<LossTerm> terms_;
};

ObjectiveKind LmObjectiveKind();
ObjectiveKind SftObjectiveKind();

}  // namespace trainwright

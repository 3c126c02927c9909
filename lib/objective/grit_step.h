/// A step of contrastive training in two passes: first the vectors of all texts, which the loss is computed
/// from, then, micro-batch after micro-batch, the gradients of the model from those of the vectors.
/// \source Gao et al. 2021 (GradCache), arXiv:2101.06983, section 3
///
/// What is kept between both are vectors, so that the memory of a step is that of one micro-batch, its
/// vectors and a tile of scores, however many negatives a query has. Micro-batches are computed from the
/// last to the first: the first one keeps what its backward pass needs and is not computed twice, so that a
/// step of one micro-batch takes one forward pass.
///
/// Vectors, scores and gradients of vectors are fp32 under every precision. Not thread-safe.
///
/// Shape legend of lib/objective/grit_*: T texts, be they those of a pass, or all queries or all passages of
/// a rank; d elements of a vector. Of the whole step, as in contrastive_groups.h, Q queries, P passages and M
/// sizes; of hidden states, as in lib/model/body.h, N tokens and D hidden size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/dist/world.h"
#include "lib/nn/loss/contrastive_loss.h"
#include "lib/objective/grit_batch.h"
#include "lib/objective/grit_groups.h"
#include "lib/objective/grit_options.h"
#include "lib/objective/objective.h"
#include "lib/spec/precision.h"

namespace trainwright {

/// What of a step's texts is looked at.
enum class TextChecks : uint8_t {
  kNone,
  kNegatives,  ///< whether there is anything to learn from: see CheckNegatives
  kAll,        ///< and what a user may not expect of them is logged
};

class GritStep final : public StepContext {
 public:
  /// \param options outlive the step
  /// \param pass with all micro-batches of this rank; what it points to outlives the step
  /// \param world of the ranks that take the step together, outlives it; whether they score together as well,
  ///     NegativesOf says
  /// \throws Error{kUsage} on a size of vectors that the model's do not have
  GritStep(const GritOptions& options, const StepPass& pass, World* world);

  /// Vectors, losses, gradients of vectors. Once; all ranks of the world call together. On the meta device
  /// only the model's passes are taken.
  /// \throws Error{kBadInput} on an id outside the vocabulary, and as CheckNegatives, of
  ///     FalseNegatives::kMargin under kAll alone: it takes the wait for a number. What fails on one rank
  ///     fails on all
  void Compute(TextChecks checks = TextChecks::kNone);

  /// Adds what the texts of a micro-batch add to the gradients of the model. Each micro-batch once, in any
  /// order; number 0 first saves a forward pass.
  /// \param pass says loss scale and last backward pass
  /// \param is_last whether no other backward pass follows
  void BackwardOf(size_t micro_batch, const StepPass& pass, bool is_last);

  /// fp64 [2], where the model is: the sums over a micro-batch's queries of their losses, and of 1 for each
  /// whose positive is the closest of all.
  at::Tensor SumsOf(size_t micro_batch) const;

 private:
  /// What is kept for a backward pass.
  struct KeptPass {
    size_t micro_batch = 0;
    TextPass texts;
    at::Tensor hidden_nd;
  };

  /// The pass, with its texts joined in joined_ where options say so.
  StepPass OwnPass(const StepPass& pass);
  Body& body() const { return pass_.model->body(); }
  const GritSpans& spans(size_t micro_batch) const { return spans_[micro_batch]; }
  int64_t queries() const { return first_query_.back(); }
  int64_t passages() const { return first_passage_.back(); }
  bool is_meta() const { return queries_.vectors_td.is_meta(); }
  Precision precision() const { return std::as_const(*pass_.model).parameters().numerics().precision; }
  bool rounds() const { return options_.rounds_vectors && precision() != Precision::kFp32; }
  /// Whether gradients of these texts are wanted.
  bool IsFollowed(size_t micro_batch, const TextRange& range) const;
  TextPass PassOf(size_t micro_batch, const TextRange& range) const;

  void Represent();
  /// Vectors of texts, not yet of unit length.
  at::Tensor PoolTexts(const TextPass& texts, const at::Tensor& hidden_nd) const;
  /// Rounded where options say so.
  at::Tensor AsScored(const at::Tensor& vectors_td) const;
  void ScoreTogether(TextChecks checks);
  /// From the gradients of what was scored to those of the vectors before they had unit length.
  void FinishGradients();
  /// The gradients of the vectors of some texts, times the loss scale.
  at::Tensor GradientsOf(size_t micro_batch, const TextRange& range, const StepPass& pass) const;
  void AddGradients(const TextPass& texts, const at::Tensor& hidden_nd, const at::Tensor& d_vectors_td,
                    const StepPass& pass, bool is_last);

  /// The queries or the passages of this rank: T of them.
  struct Side {
    at::Tensor vectors_td;    ///< fp32, of unit length where options say so
    at::Tensor norms_t;       ///< before that
    at::Tensor gradients_td;  ///< fp32, unscaled, of the vectors as the model gave them
  };
  /// Copies rows of texts of a micro-batch from or to both sides.
  /// \param use called with the side, its first row, the first of the texts' rows, and their number
  template <typename Use>
  void ForSidesOf(size_t micro_batch, const TextRange& range, const Use& use) const;

  const GritOptions& options_;
  std::optional<StepBatches> joined_;  ///< what the pass has instead, where texts are joined
  const StepPass pass_;
  World* const world_;
  World* const scoring_world_;  ///< of the ranks that score together
  std::vector<GritSpans> spans_;
  std::vector<int64_t> first_query_, first_passage_;  ///< of each micro-batch among the rank's, and all
  int64_t samples_of_step_ = 0;
  Side queries_, passages_;
  std::optional<KeptPass> kept_;
  at::Tensor losses_, top1_;  ///< fp64 [queries of this rank]
};

}  // namespace trainwright

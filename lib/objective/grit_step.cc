#include "lib/objective/grit_step.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/dist/gather_rows.h"
#include "lib/dist/shared_work.h"
#include "lib/model/projected_rows.h"
#include "lib/nn/pooling/span_pooling.h"
#include "lib/nn/precision.h"
#include "lib/objective/grit_negatives.h"

namespace trainwright {
namespace {

/// Says once what a user may not expect of data in which texts come again.
void TellRepeatedPassages(const ContrastiveGroups& groups) {
  const int64_t repeated = CountRepeatedPassages(groups);
  if (repeated == 0) return;
  LogWarning(
      std::to_string(repeated) + " of the " + std::to_string(groups.passages()) +
      " passages of the first step repeat the text of another one and count as negatives all the same");
  LogHint("--mask-false-negatives text leaves out those with the text of a query's positive",
          LogLevel::kWarning);
}

/// Of scalars as ScalarShare has them: what is 0 in all sizes has no others.
QueryCount CountQueriesOf(const at::Tensor& rows_q2m) {
  return {.queries = rows_q2m.size(0), .alone = rows_q2m.eq(0).all(1).sum().item<int64_t>()};
}

/// Numbers of a type with fewer digits, as fp32 again.
at::Tensor Rounded(const at::Tensor& values, Precision precision) {
  return values.to(PrecisionDtype(precision)).to(at::kFloat);
}

/// The sum of some elements, in their order.
at::Tensor SumOf(const at::Tensor& values, int64_t begin, int64_t count) {
  const at::Tensor part = values.narrow(0, begin, count);
  if (!part.is_cpu()) return part.sum();
  const double* numbers = part.const_data_ptr<double>();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += numbers[i];
  return at::full({}, sum, values.options());
}

}  // namespace

GritStep::GritStep(const GritOptions& options, const StepPass& pass, World* world)
    : options_(options),
      pass_(OwnPass(pass)),
      world_(world),
      scoring_world_(options.negatives == NegativesOf::kStep ? world : Solo()),
      first_query_{0},
      first_passage_{0} {
  for (const PackedBatch& batch : pass_.batches->micro_batches) {
    spans_.emplace_back(batch);
    first_query_.push_back(first_query_.back() + spans_.back().num_queries());
    first_passage_.push_back(first_passage_.back() + spans_.back().num_passages());
  }
  samples_of_step_ = pass_.batches->denominators[0];
  const int64_t width = options_.projection > 0 ? options_.projection : body().config().hidden_size;
  const at::TensorOptions floats = body().parameters().values().options().dtype(at::kFloat);
  const auto allocate = [&](int64_t texts, Side* side) {
    side->vectors_td = at::empty({texts, width}, floats);
    side->norms_t = at::empty({texts}, floats);
    side->gradients_td = at::zeros({texts, width}, floats);
  };
  allocate(queries(), &queries_);
  allocate(passages(), &passages_);
  losses_ = at::zeros({queries()}, floats.dtype(at::kDouble));
  top1_ = at::zeros({queries()}, floats.dtype(at::kDouble));
}

StepPass GritStep::OwnPass(const StepPass& pass) {
  if (!options_.joins_texts) return pass;
  joined_ = WithJoinedTexts(*pass.batches, pass.leaves);
  StepPass own = pass;
  own.batches = &*joined_;
  return own;
}

template <typename Use>
void GritStep::ForSidesOf(size_t micro_batch, const TextRange& range, const Use& use) const {
  const int64_t own_queries = spans(micro_batch).num_queries();
  const int64_t queries_end = std::min(range.end, own_queries);
  if (range.begin < queries_end) {
    use(queries_, first_query_[micro_batch] + range.begin, int64_t{0}, queries_end - range.begin);
  }
  const int64_t passages_begin = std::max(range.begin, own_queries);
  if (passages_begin < range.end) {
    use(passages_, first_passage_[micro_batch] + passages_begin - own_queries, passages_begin - range.begin,
        range.end - passages_begin);
  }
}

TextPass GritStep::PassOf(size_t micro_batch, const TextRange& range) const {
  return TextPassOf({pass_, micro_batch, spans(micro_batch)}, range, options_.mask);
}

at::Tensor GritStep::PoolTexts(const TextPass& texts, const at::Tensor& hidden_nd) const {
  const at::Tensor pooled_td = Pooled(options_.pooling, texts.spans, hidden_nd);
  if (options_.projection == 0) return pooled_td;
  const at::Tensor projected_td = Projected(body(), pooled_td);
  TRAINWRIGHT_CHECK(projected_td.size(1) == options_.projection);
  return projected_td;
}

void GritStep::Represent() {
  for (size_t i = spans_.size(); i-- > 0;) {
    const std::vector<TextRange> ranges = TextRangesOf(spans(i), options_.splits_forward);
    for (const TextRange& range : ranges) {
      const bool is_kept = i == 0 && options_.splits_forward == options_.splits_backward &&
                           &range == &ranges.back() && IsFollowed(i, range);
      TextPass texts = PassOf(i, range);
      const at::Tensor hidden_nd = body().Forward(texts.input, is_kept ? Keep::kForBackward : Keep::kNothing);
      const at::Tensor vectors_td = PoolTexts(texts, hidden_nd);
      ForSidesOf(i, range, [&](const Side& side, int64_t row, int64_t text, int64_t count) {
        side.vectors_td.narrow(0, row, count).copy_(vectors_td.narrow(0, text, count));
      });
      if (is_kept) kept_.emplace(KeptPass{i, std::move(texts), hidden_nd});
    }
  }
  if (!options_.contrastive.normalize) return;
  NormalizeRows(queries_.vectors_td, queries_.norms_t);
  NormalizeRows(passages_.vectors_td, passages_.norms_t);
}

at::Tensor GritStep::AsScored(const at::Tensor& vectors_td) const {
  return rounds() ? Rounded(vectors_td, precision()) : vectors_td;
}

void GritStep::ScoreTogether(TextChecks checks) {
  const bool tells = checks == TextChecks::kAll;
  const bool masks_texts = options_.contrastive.false_negatives == FalseNegatives::kSameText;
  GritGroups all;
  const auto group = [&] {
    all = GroupsOf(scoring_world_, pass_.batches->micro_batches, spans_, masks_texts || tells, pass_.leaves,
                   queries_.vectors_td.device());
  };
  // Ranks that score apart do it apart, and still end it alike.
  if (scoring_world_ == world_) {
    group();
  } else {
    DoAlike(world_, group);
  }
  if (samples_of_step_ == 0) return;
  std::optional<RowGather> of_queries, of_passages;
  const bool warns = tells && world_->is_writer();
  DoAlike(world_, [&] {
    if (checks != TextChecks::kNone) CheckNegatives(CountQueries(all.groups, masks_texts), warns);
    if (warns && !masks_texts) TellRepeatedPassages(all.groups);
    of_queries.emplace(scoring_world_, AsScored(queries_.vectors_td), all.queries_of_rank);
    of_passages.emplace(scoring_world_, AsScored(passages_.vectors_td), all.passages_of_rank);
  });
  const at::Tensor all_queries = of_queries->Gather(), all_passages = of_passages->Gather();
  std::optional<ContrastiveLoss> loss;
  ScalarShare scalars;
  std::optional<RowGather> of_rows, of_columns;
  DoAlike(world_, [&] {
    loss.emplace(options_.contrastive, all.groups, all.share);
    scalars = loss->RowsAndScalars(all_queries, all_passages);
    of_rows.emplace(scoring_world_, scalars.rows_q2m, all.queries_of_rank);
    if (!scalars.columns_p2m.defined()) return;
    of_columns.emplace(scoring_world_, scalars.columns_p2m, all.passages_of_rank);
  });
  scalars.rows_q2m = of_rows->Gather();
  if (of_columns) scalars.columns_p2m = of_columns->Gather();
  // The mean is that over all queries of the step, whoever scores them.
  double factor = static_cast<double>(all.groups.queries()) / static_cast<double>(samples_of_step_);
  if (options_.divides_by_ranks) factor /= static_cast<double>(scoring_world_->size());
  DoAlike(world_, [&] {
    if (tells && options_.contrastive.false_negatives == FalseNegatives::kMargin) {
      CheckNegatives(CountQueriesOf(scalars.rows_q2m), warns);
    }
    loss->Gradients(scalars, all_queries, all_passages, factor, queries_.gradients_td,
                    passages_.gradients_td);
  });
  losses_ = loss->losses();
  top1_ = loss->top1();
}

void GritStep::FinishGradients() {
  for (Side* side : {&queries_, &passages_}) {
    // Of fp16 only when they are scaled: it has no room for small ones.
    if (rounds() && precision() == Precision::kBf16) {
      side->gradients_td = Rounded(side->gradients_td, precision());
    }
    if (options_.contrastive.normalize) {
      NormalizeRowsBackward(side->vectors_td, side->norms_t, side->gradients_td);
    }
    side->vectors_td = at::Tensor();
    side->norms_t = at::Tensor();
  }
}

void GritStep::Compute(TextChecks checks) {
  DoAlike(world_, [&] { Represent(); });
  if (is_meta()) return;
  ScoreTogether(checks);
  DoAlike(world_, [&] { FinishGradients(); });
}

bool GritStep::IsFollowed(size_t micro_batch, const TextRange& range) const {
  const int64_t own_queries = spans(micro_batch).num_queries();
  const bool has_queries = range.begin < own_queries;
  const bool has_passages = range.end > own_queries;
  return (has_queries && options_.sides != EmbeddedSides::kPassages) ||
         (has_passages && options_.sides != EmbeddedSides::kQueries);
}

at::Tensor GritStep::GradientsOf(size_t micro_batch, const TextRange& range, const StepPass& pass) const {
  const int64_t width = queries_.gradients_td.size(1);
  at::Tensor gradients_td = at::zeros({range.size(), width}, queries_.gradients_td.options());
  ForSidesOf(micro_batch, range, [&](const Side& side, int64_t row, int64_t text, int64_t count) {
    const EmbeddedSides unfollowed = &side == &queries_ ? EmbeddedSides::kPassages : EmbeddedSides::kQueries;
    if (options_.sides == unfollowed) return;
    gradients_td.narrow(0, text, count).copy_(side.gradients_td.narrow(0, row, count));
  });
  // Before they are rounded to a short type: those of many queries are small.
  if (pass.loss_scale != 1) gradients_td.mul_(pass.loss_scale);
  if (pass.loss_scale_on_device.defined()) gradients_td.mul_(pass.loss_scale_on_device.to(at::kFloat));
  return gradients_td;
}

void GritStep::AddGradients(const TextPass& texts, const at::Tensor& hidden_nd,
                            const at::Tensor& d_vectors_td, const StepPass& pass, bool is_last) {
  at::Tensor d_pooled_td = d_vectors_td;
  if (options_.projection > 0) {
    d_pooled_td = ProjectedBackward(&body(), d_vectors_td, Pooled(options_.pooling, texts.spans, hidden_nd));
  }
  at::Tensor d_hidden_nd = body().HiddenGradient(hidden_nd.size(0));
  PoolSpansBackward(options_.pooling, texts.spans, d_pooled_td, d_hidden_nd);
  if (is_last) pass.TellLastBackward();
  body().Backward(texts.input, d_hidden_nd);
}

void GritStep::BackwardOf(size_t micro_batch, const StepPass& pass, bool is_last) {
  std::vector<TextRange> ranges;
  for (const TextRange& range : TextRangesOf(spans(micro_batch), options_.splits_backward)) {
    if (IsFollowed(micro_batch, range)) ranges.push_back(range);
  }
  // What is kept goes first: the next pass overwrites it.
  std::reverse(ranges.begin(), ranges.end());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const at::Tensor gradients_td = GradientsOf(micro_batch, ranges[i], pass);
    const bool ends_step = is_last && i + 1 == ranges.size();
    if (i == 0 && kept_ && kept_->micro_batch == micro_batch) {
      const KeptPass kept = *std::exchange(kept_, std::nullopt);
      AddGradients(kept.texts, kept.hidden_nd, gradients_td, pass, ends_step);
      continue;
    }
    kept_.reset();
    const TextPass texts = PassOf(micro_batch, ranges[i]);
    const at::Tensor hidden_nd = body().Forward(texts.input, Keep::kForBackward);
    AddGradients(texts, hidden_nd, gradients_td, pass, ends_step);
  }
}

at::Tensor GritStep::SumsOf(size_t micro_batch) const {
  const int64_t begin = first_query_[micro_batch], count = first_query_[micro_batch + 1] - begin;
  return at::stack({SumOf(losses_, begin, count), SumOf(top1_, begin, count)});
}

}  // namespace trainwright

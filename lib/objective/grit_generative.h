/// The generative loss of GRIT, over rows of which each is a text: the next token is predicted with
/// causal attention.
///
/// Its sum and its denominator, both of the whole step, by GenerativeLoss; times generative_factor:
///   kMixed   losses of labels / labels; with means_of_micro_batches means of micro-batches / their number
///   kToken   losses of labels / rows
///   kSample  means of rows / rows
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

#include "lib/loading/packed_batch.h"
#include "lib/objective/grit_batch.h"
#include "lib/objective/grit_options.h"
#include "lib/objective/objective.h"

namespace trainwright {

/// Labels of rows; those of queries, which only count, are none.
int64_t GenerativeLabels(const PackedBatch& batch, const GritSpans& spans);

/// A micro-batch's share of the denominator.
int64_t GenerativeDenominator(const GritOptions& options, const PackedBatch& batch, const GritSpans& spans);

/// Adds the gradients of the rows of a micro-batch, which has labels.
/// \param denominator of the whole step
/// \param samples_of_step as of RowsOf
/// \param is_last whether no other backward pass follows
/// \returns the micro-batch's share of the sum: fp64 [1], where the model is
at::Tensor AddGenerativeGradients(const GritOptions& options, const GritMicroBatch& micro_batch,
                                  int64_t denominator, int64_t samples_of_step, bool is_last);

}  // namespace trainwright

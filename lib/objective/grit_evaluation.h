/// How well a model that GRIT trains finds passages and predicts tokens, on data that it does not train on.
///
/// Of contrastive records, at most GritOptions::evaluation_queries drawn by the seed, the queries search the
/// passages of all records, equal texts being one; relevant are the positives of all records of the query.
/// Measures are those of ranking_metrics.h over the best 100 passages. The contrastive loss is that of the
/// drawn records in stored order in batches of 256, the last of which is filled up with those before it, each
/// with its first positive and the first of its negatives: nothing is drawn, so that evaluations compare. Of
/// lm and sft records the perplexity.
#pragma once

#include "lib/formats/shard_set.h"
#include "lib/model/language_model.h"
#include "lib/objective/evaluation.h"
#include "lib/objective/grit_options.h"

namespace trainwright {

/// Of what the mode trains and the set holds. Its loss is the sum of both losses, as in training: the
/// generative one times its factor, and with GenerativeLoss::kToken summed over each text.
/// \throws as Objective::Evaluate
Evaluation EvaluateGrit(const GritOptions& options, LanguageModel* model, const ShardSet& set,
                        const EvaluationOptions& evaluation);

}  // namespace trainwright

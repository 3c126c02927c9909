#include "lib/eval/evaluate_settings.h"

#include "lib/retrieval/ranking_metrics.h"

namespace trainwright {
namespace {

EmbeddingSettings EmbeddingOf(const EvaluateSettings& settings) {
  EmbeddingSettings embedding = settings.retrieval.embedding;
  embedding.checkpoint = settings.checkpoint;
  embedding.adapter = settings.adapter;
  embedding.allow_other_base = settings.allow_other_base;
  embedding.mixed_precision = settings.mixed_precision;
  embedding.attn_backend = settings.attn_backend;
  return embedding;
}

}  // namespace

RetrievalSettings RetrievalSettingsOf(const EvaluateSettings& settings) {
  RetrievalSettings retrieval = settings.retrieval;
  retrieval.embedding = EmbeddingOf(settings);
  retrieval.metrics = {.cuts = ParseCuts(settings.metric_at),
                       .gain = ParseGain(settings.gain),
                       .averaged = ParseAveragedQueries(settings.average)};
  return retrieval;
}

StsSettings StsSettingsOf(const EvaluateSettings& settings) {
  const RetrievalSettings& retrieval = settings.retrieval;
  return {.embedding = EmbeddingOf(settings),
          .pairs = settings.data,
          .a_vectors = retrieval.query_vectors,
          .b_vectors = retrieval.corpus_vectors,
          .instruction = retrieval.query_instruction,
          .cosines_out = settings.cosines_out,
          .bootstrap_draws = retrieval.bootstrap_draws,
          .seed = retrieval.seed};
}

}  // namespace trainwright

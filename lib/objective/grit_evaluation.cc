#include "lib/objective/grit_evaluation.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/base/units.h"
#include "lib/dist/shared_work.h"
#include "lib/embedding/text_encoder.h"
#include "lib/embedding/top_k.h"
#include "lib/loading/part_shares.h"
#include "lib/loading/text_draws.h"
#include "lib/nn/loss/contrastive_loss.h"
#include "lib/objective/held_out_texts.h"
#include "lib/objective/perplexity.h"
#include "lib/retrieval/ranking_metrics.h"

namespace trainwright {
namespace {

constexpr int64_t kRanked = 100;        ///< passages of a query
constexpr size_t kQueriesOfLoss = 256;  ///< that are told from each other

/// Names whose order is that of the numbers.
std::string IdOfNumber(uint64_t number) {
  char name[24];
  std::snprintf(name, sizeof(name), "%010llu", static_cast<unsigned long long>(number));
  return name;
}

std::span<const uint32_t> PooledOf(const HeldText& text) {
  return std::span(text.tokens).subspan(text.instruction_tokens);
}

/// Numbers of the records whose queries are taken, rising.
std::vector<size_t> ChosenOf(size_t records, int64_t most, uint64_t seed) {
  std::vector<size_t> chosen;
  if (records == 0) return chosen;
  const KeyedPermutation places(records, Rng(seed, "grit evaluation").key());
  for (size_t i = 0; i < records; ++i) {
    if (places(i) < static_cast<uint64_t>(most)) chosen.push_back(i);
  }
  return chosen;
}

at::Tensor Encoded(TextEncoder* encoder, const std::vector<const HeldText*>& texts) {
  std::vector<EncodedText> encoded;
  for (const HeldText* text : texts) {
    encoded.push_back({.tokens = text->tokens, .instruction_tokens = text->instruction_tokens});
  }
  return encoder->Encode(encoded).cpu();
}

/// Texts and vectors of an evaluation.
struct Retrieval {
  const HeldOutTexts* texts = nullptr;
  std::vector<size_t> chosen;  ///< records
  at::Tensor queries_qd;       ///< of these
  at::Tensor passages_pd;

  const HeldRecord& record(size_t query) const { return texts->records()[chosen[query]]; }
};

/// Queries of chosen records, each but once.
struct AskedQueries {
  std::vector<int64_t> rows;                     ///< of their vectors
  std::vector<std::vector<uint64_t>> positives;  ///< of all records that have the query
};

AskedQueries AskedOf(const Retrieval& retrieval) {
  AskedQueries asked;
  std::unordered_map<uint64_t, size_t> numbers;  // by the hashes of all their tokens
  for (size_t i = 0; i < retrieval.chosen.size(); ++i) {
    const uint64_t hash = HashOfTokens(retrieval.record(i).query.tokens);
    if (numbers.try_emplace(hash, asked.rows.size()).second) asked.rows.push_back(static_cast<int64_t>(i));
  }
  asked.positives.resize(asked.rows.size());
  for (const HeldRecord& record : retrieval.texts->records()) {  // chosen or not: it says what is relevant
    const auto number = numbers.find(HashOfTokens(record.query.tokens));
    if (number == numbers.end()) continue;
    std::vector<uint64_t>& positives = asked.positives[number->second];
    positives.insert(positives.end(), record.positives.begin(), record.positives.end());
  }
  return asked;
}

at::Tensor RowsOf(const at::Tensor& vectors_td, const std::vector<int64_t>& rows) {
  return vectors_td.index_select(0, at::tensor(rows, at::TensorOptions().dtype(at::kLong)));
}

RankingScores ScoresOf(const Retrieval& retrieval) {
  const AskedQueries asked = AskedOf(retrieval);
  // As trec_eval breaks ties: by names, the later one first.
  TopK best(RowsOf(retrieval.queries_qd, asked.rows), kRanked, [](uint64_t a, uint64_t b) { return a > b; });
  best.Add(retrieval.passages_pd);
  const std::vector<std::vector<ScoredRow>> found = best.Take();
  Qrels qrels;
  RetrievalRun run;
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string query = IdOfNumber(i);
    for (const uint64_t passage : asked.positives[i]) qrels[query][IdOfNumber(passage)] = 1;
    for (const ScoredRow& row : found[i])
      run[query].push_back({.id = IdOfNumber(row.row), .score = row.score});
  }
  return ScoreRun(qrels, run, {.cuts = {10, kRanked}});
}

/// Queries with their passages, and which these are.
struct LossBatch {
  ContrastiveGroups groups;
  std::vector<int64_t> passages;
};

LossBatch LossBatchOf(const Retrieval& retrieval, size_t begin, size_t end, uint64_t negatives) {
  LossBatch batch;
  ContrastiveGroups& groups = batch.groups;
  groups.first_passage.push_back(0);
  groups.first_known.push_back(0);
  const auto hash_of = [&](uint64_t passage) {
    return HashOfTokens(PooledOf(retrieval.texts->passages()[passage]));
  };
  for (size_t query = begin; query < end; ++query) {
    const HeldRecord& record = retrieval.record(query);
    batch.passages.push_back(static_cast<int64_t>(record.positives.front()));
    for (size_t i = 0; i < std::min<size_t>(negatives, record.negatives.size()); ++i) {
      batch.passages.push_back(static_cast<int64_t>(record.negatives[i]));
    }
    groups.positives.push_back(1);
    groups.first_passage.push_back(static_cast<int64_t>(batch.passages.size()));
    groups.query_text.push_back(HashOfTokens(PooledOf(record.query)));
    for (const uint64_t passage : record.positives) groups.known_text.push_back(hash_of(passage));
    groups.first_known.push_back(static_cast<int64_t>(groups.known_text.size()));
  }
  for (const int64_t passage : batch.passages) {
    groups.passage_text.push_back(hash_of(static_cast<uint64_t>(passage)));
  }
  return batch;
}

double LossOf(const GritOptions& options, const Retrieval& retrieval) {
  double sum = 0;
  for (size_t begin = 0; begin < retrieval.chosen.size(); begin += kQueriesOfLoss) {
    const size_t end = std::min(begin + kQueriesOfLoss, retrieval.chosen.size());
    // The last batch is filled up with queries before it, which count once: among fewer passages a loss is
    // smaller.
    const size_t first = end - std::min(kQueriesOfLoss, end);
    const LossBatch batch = LossBatchOf(retrieval, first, end, options.data.choice.negatives);
    const at::Tensor queries =
        retrieval.queries_qd.narrow(0, static_cast<int64_t>(first), static_cast<int64_t>(end - first));
    const at::Tensor passages = RowsOf(retrieval.passages_pd, batch.passages);
    ContrastiveLoss loss(options.contrastive, batch.groups,
                         {.end_query = batch.groups.queries(), .end_passage = batch.groups.passages()});
    loss.RowsAndScalars(queries, passages);
    const auto filled = static_cast<int64_t>(begin - first), own = static_cast<int64_t>(end - begin);
    sum += loss.losses().narrow(0, filled, own).sum().item<double>();
  }
  return sum / static_cast<double>(retrieval.chosen.size());
}

void AddMeasure(const std::string& name, double value, const std::string& text, Evaluation* result) {
  result->measures.push_back({.name = name, .value = value, .text = text});
}

void AddMeasures(const RankingScores& scores, const Retrieval& retrieval, double loss_nats,
                 Evaluation* result) {
  const auto add = [&](const std::string& name, const std::string& shown) {
    const double value = scores.Mean(scores.MeasureOf(name));
    AddMeasure(name, value, shown + " " + FormatFixed(value, 4), result);
  };
  add("ndcg_at_10", "nDCG@10");
  add("recall_at_10", "recall@10");
  add("recall_at_100", "recall@100");
  add("mrr_at_10", "MRR@10");
  add("map", "MAP");
  const size_t queries = scores.queries.size(), corpus = retrieval.texts->passages().size();
  AddMeasure("queries", static_cast<double>(queries), std::to_string(queries) + " queries", result);
  AddMeasure("corpus", static_cast<double>(corpus), std::to_string(corpus) + " passages", result);
  AddMeasure("loss_emb_nats", loss_nats, "contrastive loss " + FormatFixed(loss_nats, 4), result);
}

/// The parts that hold contrastive records, or those that hold others.
std::vector<ShardSetPart> PartsThatHold(const ShardSet& set, bool contrastive) {
  std::vector<ShardSetPart> parts = set.parts();
  std::erase_if(parts, [&](const ShardSetPart& part) {
    return (part.records == RecordKind::kContrastive) != contrastive;
  });
  return parts;
}

/// A pass over them.
SharedPass PassOf(const ShardSet& set, bool contrastive, const EvaluationOptions& evaluation) {
  return {.parts = PartsThatHold(set, contrastive),
          .max_tokens = evaluation.max_tokens,
          .skip_bad = evaluation.skip_bad};
}

void EvaluateRetrieval(const GritOptions& options, LanguageModel* model, const ShardSet& set,
                       const EvaluationOptions& evaluation, Evaluation* result) {
  HeldOutTexts texts(
      {.query_tokens = options.data.query_tokens, .passage_tokens = options.data.passage_tokens});
  DoAlike(evaluation.world, [&] {
    result->frames_skipped += VisitShares(
        set, PassOf(set, /*contrastive=*/true, evaluation), [&] { return texts.tokens(); },
        [&](const ShardSetPart&, const Chunk& chunk) { texts.AddChunk(chunk, evaluation.split); });
    if (texts.records().empty()) {
      throw Error(
          ErrorCode::kBadInput, "evaluation data", "holds no record to embed", "",
          "a greater --eval-split holds out more; a record whose instruction fills --query-max-len or "
          "--passage-max-len is left out");
    }
  });
  Retrieval retrieval = {.texts = &texts, .chosen = {}, .queries_qd = {}, .passages_pd = {}};
  retrieval.chosen = ChosenOf(texts.records().size(), options.evaluation_queries, options.data.seed);
  TextEncoder encoder(model, EmbeddingSpecOf(options),
                      {.tokens_per_pass = evaluation.batch_tokens, .world = evaluation.world});
  std::vector<const HeldText*> queries, passages;
  for (const size_t record : retrieval.chosen) queries.push_back(&texts.records()[record].query);
  for (const HeldText& passage : texts.passages()) passages.push_back(&passage);
  retrieval.queries_qd = Encoded(&encoder, queries);
  retrieval.passages_pd = Encoded(&encoder, passages);
  DoAlike(evaluation.world, [&] {
    const double loss_nats = LossOf(options, retrieval);
    AddMeasures(ScoresOf(retrieval), retrieval, loss_nats, result);
    result->loss_nats += loss_nats;
  });
  result->tokens += static_cast<uint64_t>(encoder.counts().tokens);
  result->documents += texts.records().size();
}

/// As training has the loss: see lib/objective/grit_generative.h. What kSample takes the mean of is not known
/// text by text; the mean over tokens stands for it.
double GenerativeLossOf(const GritOptions& options, const PerplexitySums& sums) {
  const bool sums_texts = options.generative_loss == GenerativeLoss::kToken;
  const double mean_nats =
      sums_texts ? sums.loss_nats / static_cast<double>(sums.spans) : sums.mean_loss_nats();
  return options.generative_factor * mean_nats;
}

void EvaluateGeneration(const GritOptions& options, LanguageModel* model, const ShardSet& set,
                        const EvaluationOptions& evaluation, Evaluation* result) {
  PerplexityMeter meter(model, options.data.generative_tokens, evaluation.batch_tokens, evaluation.world);
  meter.set_split(evaluation.split);
  meter.set_last_run_only(options.data.last_answer_only);
  const PerplexitySums& sums = meter.Measure([&] {
    result->frames_skipped += VisitShares(
        set, PassOf(set, /*contrastive=*/false, evaluation), [&] { return meter.sums().tokens; },
        [&](const ShardSetPart& part, const Chunk& chunk) {
          meter.set_masked(part.records == RecordKind::kSft);
          meter.AddChunk(chunk);
        });
  });
  const double loss_nats = GenerativeLossOf(options, sums);
  AddMeasure("loss_gen_nats", loss_nats, "generative loss " + FormatFixed(loss_nats, 4), result);
  AddMeasure("perplexity", sums.perplexity(), "perplexity " + FormatFixed(sums.perplexity(), 2), result);
  result->loss_nats += loss_nats;
  result->tokens += sums.tokens;
  result->documents += sums.documents;
}

}  // namespace

Evaluation EvaluateGrit(const GritOptions& options, LanguageModel* model, const ShardSet& set,
                        const EvaluationOptions& evaluation) {
  const bool retrieves = options.embeds() && !PartsThatHold(set, /*contrastive=*/true).empty();
  const bool generates = options.generates() && !PartsThatHold(set, /*contrastive=*/false).empty();
  if (!retrieves && !generates) {
    throw Error(ErrorCode::kBadInput, "evaluation data",
                std::string("holds no records of what the mode trains: ") +
                    (options.embeds() ? "contrastive" : "lm or sft"),
                "", "name such a set by --eval-data");
  }
  Evaluation result;
  if (retrieves) EvaluateRetrieval(options, model, set, evaluation, &result);
  if (generates) EvaluateGeneration(options, model, set, evaluation, &result);
  return result;
}

}  // namespace trainwright

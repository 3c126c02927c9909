#include "lib/eval/sts_job.h"

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bootstrap.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/device/memory_error.h"
#include "lib/dist/equal_facts.h"
#include "lib/dist/shared_work.h"
#include "lib/documents/json_objects.h"
#include "lib/embedding/embedding_settings.h"
#include "lib/embedding/row_product.h"
#include "lib/embedding/similarity.h"
#include "lib/embedding/text_embedder.h"
#include "lib/embedding/vector_search.h"
#include "lib/eval/identity.h"
#include "lib/eval/rank_input.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/retrieval/compared_vectors.h"
#include "lib/retrieval/rank_correlation.h"

namespace trainwright {
namespace {

constexpr size_t kPairsOfBlock = 1024;

/// Scores and what was computed for them, pair by pair.
struct ScoredPairs {
  std::vector<double> gold, similarities;
  Similarity similarity = Similarity::kCosine;
  nlohmann::ordered_json data;  ///< what was read, with its hashes
};

double GoldScoreOf(const nlohmann::json& object, const JsonPlace& place) {
  const nlohmann::json& score = MemberOf(object, {"score"}, place);
  if (!score.is_number() || !std::isfinite(score.get<double>())) throw place.Bad("its score is no number");
  return score.get<double>();
}

/// Appends the products of rows that stand beside each other.
void AppendProducts(const at::Tensor& a_nd, const at::Tensor& b_nd, std::vector<double>* products) {
  TRAINWRIGHT_CHECK(a_nd.sizes() == b_nd.sizes());
  const int64_t columns = a_nd.size(1);
  const float* const a = a_nd.const_data_ptr<float>();
  const float* const b = b_nd.const_data_ptr<float>();
  for (int64_t row = 0; row < a_nd.size(0); ++row) {
    products->push_back(RowProduct(a + row * columns, b + row * columns, columns));
  }
}

/// Embeds the texts of pairs, and reads their scores.
ScoredPairs EmbedPairs(const StsSettings& settings, TextEmbedder* embedder) {
  ScoredPairs pairs;
  pairs.similarity = embedder->similarity();
  const auto rows_of = [&](const std::vector<TokenizedText>& texts) {
    return ComparedRows(embedder->Embed(texts), pairs.similarity);
  };
  std::vector<TokenizedText> a, b;
  const auto flush = [&] {
    if (a.empty()) return;
    AppendProducts(rows_of(a), rows_of(b), &pairs.similarities);
    a.clear();
    b.clear();
  };
  const std::string sha256 =
      ForEachJsonObject(settings.pairs, [&](const nlohmann::json& object, const JsonPlace& place) {
        pairs.gold.push_back(GoldScoreOf(object, place));
        const auto tokenize = [&](std::string text) {
          return embedder->Tokenize({settings.instruction, std::move(text), TextRole::kQuery}, place);
        };
        a.push_back(tokenize(TextMemberOf(object, {"a", "sentence1", "text1"}, place)));
        b.push_back(tokenize(TextMemberOf(object, {"b", "sentence2", "text2"}, place)));
        if (a.size() == kPairsOfBlock) flush();
      });
  flush();
  pairs.data = {{"path", settings.pairs}, {"sha256", sha256}};
  return pairs;
}

/// Reads the pairs' vectors and their scores.
ScoredPairs ReadPairs(const StsSettings& settings) {
  ScoredPairs pairs;
  const std::string sha256 =
      ForEachJsonObject(settings.pairs, [&](const nlohmann::json& object, const JsonPlace& place) {
        pairs.gold.push_back(GoldScoreOf(object, place));
      });
  const ComparedVectors vectors =
      OpenComparedVectors(settings.a_vectors, settings.b_vectors, settings.embedding.truncate_dim);
  const auto unit_rows = [&](std::span<const float> values) {
    return UnitRows(values, vectors.columns, vectors.kept_columns);
  };
  std::vector<float> rows_a, rows_b;
  std::vector<std::string> ids;
  while (true) {
    const size_t count_a = vectors.first->Read(kPairsOfBlock, &rows_a, &ids);
    const size_t count_b = vectors.second->Read(kPairsOfBlock, &rows_b, &ids);
    if (count_a != count_b) {
      throw Error(ErrorCode::kBadInput, settings.b_vectors,
                  "has another number of vectors than " + settings.a_vectors);
    }
    if (count_a == 0) break;
    AppendProducts(unit_rows(rows_a), unit_rows(rows_b), &pairs.similarities);
  }
  if (pairs.similarities.size() != pairs.gold.size()) {
    throw Error(ErrorCode::kBadInput, settings.a_vectors,
                "has " + std::to_string(pairs.similarities.size()) + " vectors, and " + settings.pairs + " " +
                    std::to_string(pairs.gold.size()) + " scores");
  }
  pairs.data = {{"path", settings.pairs},
                {"sha256", sha256},
                {"query_vectors", {{"path", settings.a_vectors}, {"sha256", vectors.first->Sha256()}}},
                {"corpus_vectors", {{"path", settings.b_vectors}, {"sha256", vectors.second->Sha256()}}}};
  return pairs;
}

/// A coefficient and its interval; null where there is none.
void AddCorrelation(const std::string& name,
                    double (*correlate)(std::span<const double>, std::span<const double>),
                    const ScoredPairs& pairs, const StsSettings& settings, nlohmann::ordered_json* json) {
  const auto number = [](double value) {
    return std::isnan(value) ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  (*json)[name] = number(correlate(pairs.similarities, pairs.gold));
  if (settings.bootstrap_draws == 0) return;
  std::vector<double> x(pairs.gold.size()), y(pairs.gold.size());
  const Interval interval = BootstrapInterval(x.size(), settings.bootstrap_draws, settings.seed,
                                              [&](std::span<const size_t> sample) {
                                                for (size_t i = 0; i < sample.size(); ++i) {
                                                  x[i] = pairs.similarities[sample[i]];
                                                  y[i] = pairs.gold[sample[i]];
                                                }
                                                return correlate(x, y);
                                              });
  (*json)[name + "_interval"] = {number(interval.low), number(interval.high)};
}

nlohmann::ordered_json DescribePairs(const ScoredPairs& pairs, const StsSettings& settings) {
  if (pairs.gold.size() < 2) {
    throw Error(
        ErrorCode::kBadInput, settings.pairs,
        "holds " + std::to_string(pairs.gold.size()) + " pairs, and a correlation needs at least two");
  }
  nlohmann::ordered_json result = {{"metric", "sts"}};
  AddCorrelation("spearman", SpearmanCorrelation, pairs, settings, &result);
  AddCorrelation("pearson", PearsonCorrelation, pairs, settings, &result);
  result["pairs"] = pairs.gold.size();
  result["bootstrap"] = settings.bootstrap_draws;
  return result;
}

/// A line a pair, in their order.
void WriteSimilarities(const ScoredPairs& pairs, const std::string& path) {
  if (path.empty()) return;
  const std::unique_ptr<ByteSink> sink = OpenSink(path, /*binary=*/false, /*allow_terminal=*/true);
  const std::string name = SimilarityName(pairs.similarity);
  for (size_t i = 0; i < pairs.gold.size(); ++i) {
    sink->Write(AsBytes(JsonLineOf({{name, pairs.similarities[i]}, {"score", pairs.gold[i]}})));
  }
  sink->Commit();
}

nlohmann::ordered_json EmbedAndCorrelate(const ModelFamilies& families, const StsSettings& settings,
                                         const ProcessSetup& process, World* world) {
  EmbeddingSettings embedding = settings.embedding;
  embedding.one_length = true;  // neither text of a pair is a query
  std::optional<TextEmbedder> embedder;
  DoAlike(world, [&] {
    embedder.emplace(families, embedding, process, world);
    embedder->LeaveOutRolePrompts();
    RefuseToReplaceModel(settings.cosines_out, embedder->checkpoint());
  });
  const Checkpoint& checkpoint = embedder->checkpoint();
  RequireEqual(world, FactsOf(checkpoint, embedder->precision()));
  const ScoredPairs pairs = EmbedPairs(settings, &*embedder);
  RequireEqual(world, {{"sha256 of the pairs", pairs.data.at("sha256").get<std::string>()}});
  nlohmann::ordered_json result = DescribePairs(pairs, settings);
  result.update(embedder->CountsAndMaker());
  result["data"] = pairs.data;
  AsWriter(world, [&] {
    WriteSimilarities(pairs, settings.cosines_out);
    return 0;
  });
  if (world->is_writer()) {
    WarnOfTexts(embedder->counts());
    LogInfo(DescribeIdentity(checkpoint, pairs.data));
  }
  return result;
}

}  // namespace

nlohmann::ordered_json RunSts(const ModelFamilies& families, const StsSettings& settings,
                              const ProcessSetup& process, World* world) {
  RefuseSharedPipe(world->size(), "--data", settings.pairs);
  RefuseToReplaceInputs(settings.cosines_out, {settings.pairs, settings.a_vectors, settings.b_vectors});
  return WithMemoryErrors(
      [] {
        return MemoryUser{"evaluation of pairs", "lower --batch-tokens"};
      },
      [&]() -> nlohmann::ordered_json {
        if (!settings.embedding.checkpoint.empty())
          return EmbedAndCorrelate(families, settings, process, world);
        nlohmann::ordered_json result;
        AsWriter(world, [&] {
          const ScoredPairs pairs = ReadPairs(settings);
          result = DescribePairs(pairs, settings);
          result["data"] = pairs.data;
          WriteSimilarities(pairs, settings.cosines_out);
          return 0;
        });
        return result;
      });
}

}  // namespace trainwright

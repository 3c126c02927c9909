#include "lib/eval/sts_job.h"

#include <cmath>
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
#include "lib/eval/identity.h"
#include "lib/eval/rank_input.h"
#include "lib/eval/text_embedder.h"
#include "lib/eval/vector_search.h"
#include "lib/retrieval/rank_correlation.h"
#include "lib/retrieval/vector_reader.h"

namespace trainwright {
namespace {

constexpr size_t kPairsOfBlock = 1024;

/// Scores and what was computed for them, pair by pair.
struct ScoredPairs {
  std::vector<double> gold, cosines;
  nlohmann::ordered_json data;  ///< what was read, with its hashes
};

double GoldScoreOf(const nlohmann::json& object, const JsonPlace& place) {
  const nlohmann::json& score = MemberOf(object, {"score"}, place);
  if (!score.is_number() || !std::isfinite(score.get<double>())) throw place.Bad("its score is no number");
  return score.get<double>();
}

/// Appends the products of rows that stand beside each other.
void AppendCosines(const at::Tensor& unit_a_nd, const at::Tensor& unit_b_nd, std::vector<double>* cosines) {
  TRAINWRIGHT_CHECK(unit_a_nd.sizes() == unit_b_nd.sizes());
  const int64_t columns = unit_a_nd.size(1);
  const float* a = unit_a_nd.const_data_ptr<float>();
  const float* b = unit_b_nd.const_data_ptr<float>();
  for (int64_t row = 0; row < unit_a_nd.size(0); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += static_cast<double>(*a++) * static_cast<double>(*b++);
    cosines->push_back(sum);
  }
}

/// Embeds the texts of pairs, and reads their scores.
ScoredPairs EmbedPairs(const StsSettings& settings, TextEmbedder* embedder) {
  ScoredPairs pairs;
  std::vector<TokenizedText> a, b;
  const auto flush = [&] {
    if (a.empty()) return;
    AppendCosines(UnitRows(embedder->Embed(a)), UnitRows(embedder->Embed(b)), &pairs.cosines);
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
  const auto a = OpenVectors(settings.a_vectors), b = OpenVectors(settings.b_vectors);
  if (a->columns() != b->columns()) {
    throw Error(ErrorCode::kBadInput, settings.b_vectors,
                "has vectors of " + std::to_string(b->columns()) + " numbers, and " + settings.a_vectors +
                    " of " + std::to_string(a->columns()),
                "", "embed both with the same model and --truncate-dim");
  }
  const int64_t columns = a->columns();
  const int64_t kept = settings.embedding.truncate_dim > 0 ? settings.embedding.truncate_dim : columns;
  if (kept > columns) {
    throw Error(ErrorCode::kUsage, "--truncate-dim",
                "is more than the " + std::to_string(columns) + " numbers of a vector");
  }
  std::vector<float> rows_a, rows_b;
  std::vector<std::string> ids;
  while (true) {
    const size_t count_a = a->Read(kPairsOfBlock, &rows_a, &ids),
                 count_b = b->Read(kPairsOfBlock, &rows_b, &ids);
    if (count_a != count_b) {
      throw Error(ErrorCode::kBadInput, settings.b_vectors,
                  "has another number of vectors than " + settings.a_vectors);
    }
    if (count_a == 0) break;
    AppendCosines(UnitRows(rows_a, columns, kept), UnitRows(rows_b, columns, kept), &pairs.cosines);
  }
  if (pairs.cosines.size() != pairs.gold.size()) {
    throw Error(ErrorCode::kBadInput, settings.a_vectors,
                "has " + std::to_string(pairs.cosines.size()) + " vectors, and " + settings.pairs + " " +
                    std::to_string(pairs.gold.size()) + " scores");
  }
  pairs.data = {{"path", settings.pairs},
                {"sha256", sha256},
                {"query_vectors", {{"path", settings.a_vectors}, {"sha256", a->Sha256()}}},
                {"corpus_vectors", {{"path", settings.b_vectors}, {"sha256", b->Sha256()}}}};
  return pairs;
}

/// A coefficient and its interval; null where there is none.
void AddCorrelation(const std::string& name,
                    double (*correlate)(std::span<const double>, std::span<const double>),
                    const ScoredPairs& pairs, const StsSettings& settings, nlohmann::ordered_json* json) {
  const auto number = [](double value) {
    return std::isnan(value) ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  (*json)[name] = number(correlate(pairs.cosines, pairs.gold));
  if (settings.bootstrap_draws == 0) return;
  std::vector<double> x(pairs.gold.size()), y(pairs.gold.size());
  const Interval interval = BootstrapInterval(x.size(), settings.bootstrap_draws, settings.seed,
                                              [&](std::span<const size_t> sample) {
                                                for (size_t i = 0; i < sample.size(); ++i) {
                                                  x[i] = pairs.cosines[sample[i]];
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

nlohmann::ordered_json EmbedAndCorrelate(const ModelFamilies& families, const StsSettings& settings,
                                         const ProcessSetup& process, World* world) {
  std::optional<TextEmbedder> embedder;
  DoAlike(world, [&] { embedder.emplace(families, settings.embedding, process, world); });
  const Checkpoint& checkpoint = embedder->checkpoint();
  RequireEqual(world, FactsOf(checkpoint, embedder->precision()));
  const ScoredPairs pairs = EmbedPairs(settings, &*embedder);
  RequireEqual(world, {{"sha256 of the pairs", pairs.data.at("sha256").get<std::string>()}});
  nlohmann::ordered_json result = DescribePairs(pairs, settings);
  const EmbeddedCounts counts = embedder->counts();
  result.update({{"tokens", counts.tokens},
                 {"texts_cut", counts.texts_cut},
                 {"texts_empty", counts.texts_empty},
                 {"embedding", embedder->Description()},
                 {"precision", PrecisionName(embedder->precision())},
                 {"checkpoint", checkpoint.named},
                 {"model", checkpoint.model_identity},
                 {"adapter", checkpoint.adapter_identity},
                 {"data", pairs.data}});
  if (world->is_writer()) LogInfo(DescribeIdentity(checkpoint, pairs.data));
  return result;
}

}  // namespace

nlohmann::ordered_json RunSts(const ModelFamilies& families, const StsSettings& settings,
                              const ProcessSetup& process, World* world) {
  RefuseSharedPipe(world->size(), "--data", settings.pairs);
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
          return 0;
        });
        return result;
      });
}

}  // namespace trainwright

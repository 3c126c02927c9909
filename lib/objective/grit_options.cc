#include "lib/objective/grit_options.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/number_list.h"
#include "lib/embedding/similarity.h"

namespace trainwright {
namespace {

/// Reads options that are all there.
class Reader {
 public:
  explicit Reader(const OwnOptions& own) : own_(own) {}
  const std::string& Text(const char* name) const { return own_.at(name).text(); }
  double Number(const char* name) const { return own_.at(name).number(); }
  int64_t Whole(const char* name) const { return static_cast<int64_t>(Number(name)); }
  bool IsOn(const char* name) const { return Text(name) == "on"; }
  bool Is(const char* name, const char* value) const { return Text(name) == value; }

 private:
  const OwnOptions& own_;
};

/// The numbers of a list; none of an empty one.
/// \throws Error{kUsage} on what is no list of numbers above 0 of this type
template <typename Value>
std::vector<Value> NumbersAboveZero(const std::string& list, const std::string& flag) {
  if (list.empty()) return {};
  const std::optional<std::vector<Value>> values = ParseNumberList<Value>(list);
  const auto is_positive = [](Value value) { return value > 0; };
  if (!values || !std::all_of(values->begin(), values->end(), is_positive)) {
    throw Error(ErrorCode::kUsage, flag, "'" + list + "' is no list of numbers above 0");
  }
  return *values;
}

/// Of "one", "all" or a number: as TextChoice has it.
uint64_t PositivesIn(const std::string& text) {
  if (text == "one") return 1;
  if (text == "all") return 0;
  const std::vector<uint64_t> count = NumbersAboveZero<uint64_t>(text, "--positives");
  if (count.size() != 1) throw Error(ErrorCode::kUsage, "--positives", "'" + text + "' is no number above 0");
  return count.front();
}

std::vector<ContrastiveOptions::Size> SizesIn(const Reader& own) {
  std::vector<ContrastiveOptions::Size> sizes;
  for (const int64_t columns : NumbersAboveZero<int64_t>(own.Text("matryoshka"), "--matryoshka")) {
    sizes.push_back({.columns = columns});
  }
  const std::vector<double> weights =
      NumbersAboveZero<double>(own.Text("matryoshka_weights"), "--matryoshka-weights");
  if (weights.empty()) return sizes;
  if (weights.size() != sizes.size()) {
    throw Error(ErrorCode::kUsage, "--matryoshka-weights", "takes as many numbers as --matryoshka");
  }
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i].weight = weights[i];
  return sizes;
}

GritDataOptions DataOptionsOf(const Reader& own, uint64_t seed) {
  const int64_t row_tokens = own.Whole("generative_max_len");
  GritDataOptions data;
  data.embeds = !own.Is("mode", "generative");
  data.generates = !own.Is("mode", "embedding");
  data.query_tokens = own.Whole("query_max_len");
  data.passage_tokens = own.Whole("passage_max_len");
  data.generative_tokens = row_tokens > 0 ? row_tokens : data.passage_tokens;
  data.choice.positives = PositivesIn(own.Text("positives"));
  data.choice.negatives = static_cast<uint64_t>(own.Whole("group_size")) - 1;
  data.companion_every = own.Whole("companion_every");
  data.last_answer_only = own.IsOn("prefixlm");
  data.extra = own.IsOn("unique_indices") ? DrawRules::Extra::kUnique : DrawRules::Extra::kUniform;
  data.max_records = static_cast<uint64_t>(own.Whole("max_records"));
  data.num_samples = own.Text("num_samples");
  data.seed = seed;
  return data;
}

ContrastiveOptions ContrastiveOptionsOf(const Reader& own) {
  ContrastiveOptions contrastive;
  contrastive.temperature = own.Number("temperature");
  contrastive.symmetric = own.IsOn("symmetric");
  contrastive.normalize = own.IsOn("normalize");
  if (own.Is("mask_false_negatives", "text")) contrastive.false_negatives = FalseNegatives::kSameText;
  if (own.Is("mask_false_negatives", "margin")) contrastive.false_negatives = FalseNegatives::kMargin;
  contrastive.margin = own.Number("false_negative_margin");
  contrastive.sizes = SizesIn(own);
  contrastive.tile_bytes = own.Whole("tile_mb") << 20;
  return contrastive;
}

NegativesOf NegativesIn(const Reader& own) {
  if (own.Is("negatives", "rank")) return NegativesOf::kRank;
  return own.Is("negatives", "micro-batch") ? NegativesOf::kMicroBatch : NegativesOf::kStep;
}

GenerativeLoss GenerativeLossIn(const Reader& own) {
  if (own.Is("gen_loss", "token")) return GenerativeLoss::kToken;
  return own.Is("gen_loss", "sample") ? GenerativeLoss::kSample : GenerativeLoss::kMixed;
}

EmbeddedSides SidesIn(const Reader& own) {
  if (own.Is("emb_sides", "query")) return EmbeddedSides::kQueries;
  return own.Is("emb_sides", "passage") ? EmbeddedSides::kPassages : EmbeddedSides::kBoth;
}

}  // namespace

GritOptions GritOptionsOf(const OwnOptions& own, uint64_t seed) {
  const Reader reader(own);
  GritOptions options;
  options.data = DataOptionsOf(reader, seed);
  options.contrastive = ContrastiveOptionsOf(reader);
  options.negatives = NegativesIn(reader);
  options.divides_by_ranks = reader.Is("emb_grad_scale", "upstream");
  const std::optional<Pooling> pooling = FindPooling(reader.Text("pooling"));
  const std::optional<AttentionMask> mask = FindEmbeddingMask(reader.Text("attn"));
  TRAINWRIGHT_CHECK(pooling && mask);
  options.pooling = *pooling;
  options.attention = reader.Text("attn");
  options.mask = *mask;
  options.projection = reader.Whole("projection");
  options.rounds_vectors = reader.IsOn("round_vectors");
  options.sides = SidesIn(reader);
  options.splits_backward = !reader.Is("split_emb", "no");
  options.splits_forward = reader.Is("split_emb", "full");
  options.joins_texts = reader.IsOn("no_emb_gas");
  options.joins_rows = reader.IsOn("no_gen_gas");
  options.generative_loss = GenerativeLossIn(reader);
  options.means_of_micro_batches = reader.Is("gen_mean", "micro-batch");
  options.generative_factor = reader.Number("gen_loss_factor");
  options.evaluation_queries = reader.Whole("eval_queries");
  return options;
}

EmbeddingSpec EmbeddingSpecOf(const GritOptions& options) {
  EmbeddingSpec spec;
  spec.pooling = options.pooling;
  spec.mask = options.mask;
  spec.attention = options.attention;
  spec.normalize = options.contrastive.normalize;
  // The loss is of products: the model is trained for that of vectors as they are.
  spec.similarity = spec.normalize ? Similarity::kCosine : Similarity::kDot;
  spec.projection = options.projection;
  spec.query_max_len = options.data.query_tokens;
  spec.passage_max_len = options.data.passage_tokens;
  return spec;
}

OwnOptions GritOwnOptionsOf(const EmbeddingSpec& spec) {
  return {{"mode", "embedding"},
          {"pooling", PoolingName(spec.pooling)},
          {"attn", spec.attention},
          {"projection", spec.projection},
          {"normalize", spec.normalize ? "on" : "off"},
          {"query_max_len", spec.query_max_len},
          {"passage_max_len", spec.passage_max_len}};
}

}  // namespace trainwright

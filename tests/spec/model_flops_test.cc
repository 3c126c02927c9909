#include "lib/spec/model_flops.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/spec/built_in_families.h"
#include "lib/spec/gpt2_family.h"
#include "lib/spec/mistral_family.h"
#include "lib/spec/neox_family.h"
#include "tests/spec/two_layers.h"

namespace trainwright {
namespace {

TEST(CountAttentionPairs, OfAWindowEqualsAWalkOverTheMask) {
  const std::vector<int32_t> starts = {0, 1, 6, 40};
  for (const int64_t window : {1, 5, 33, 34, 100}) {
    int64_t pairs = 0;
    for (size_t span = 0; span + 1 < starts.size(); ++span) {
      for (int64_t query = starts[span]; query < starts[span + 1]; ++query) {
        for (int64_t key = starts[span]; key <= query; ++key) pairs += query - key < window;
      }
    }
    EXPECT_EQ(CountAttentionPairs(starts, window), pairs) << window;
  }
  ModelConfig config;
  config.family = &MistralFamily();
  config.num_layers = 2;
  config.layer_windows = {0, 1};
  EXPECT_EQ(CountAttentionPairs({0, 3}, config), (6 + 3) / 2);
}

TEST(CountAttentionPairs, EqualsAWalkOverTheMask) {
  const std::vector<int32_t> starts = {0, 1, 5, 5, 12};
  int64_t pairs = 0;
  for (size_t span = 1; span < starts.size(); ++span) {
    for (int32_t query = starts[span - 1]; query < starts[span]; ++query) {
      for (int32_t key = starts[span - 1]; key <= query; ++key) ++pairs;
    }
  }
  EXPECT_EQ(CountAttentionPairs(starts), pairs);
  EXPECT_EQ(CountAttentionPairs({0}), 0);
}

TEST(TrainingFlops, IsTheHandComputedNumberOfALlamaWithGroupedQueries) {
  ModelConfig config = test::TwoLayers();
  // Spans of 4 and 2 tokens: 10 + 3 pairs. A layer multiplies 8x8 (q), 8x4 (k), 8x4 (v), 8x8 (o) and three
  // 8x16: 576 weights; 2 * 6 * 2 * 576 = 13824. The head: 2 * 5 * 8 * 10 = 800. A pair takes 2 multiply-adds
  // for the score and 2 for the value in each of 4 heads: 13 * 2 * 4 * 4 * 2 = 832.
  const TokenCounts counts = {.tokens = 6, .labels = 5, .attention_pairs = 13};
  EXPECT_EQ(TrainingFlops(config, counts), 3 * (13824 + 800 + 832));
  config.tie_embeddings = true;
  EXPECT_EQ(TrainingFlops(config, counts), 3 * (13824 + 800 + 832)) << "a tied head is multiplied, too";
  config.tie_embeddings = false;
  config.head_dim = 4;  // the heads together wider than the model: 128 + 64 + 64 + 128 + 384 = 768 weights
  EXPECT_EQ(TrainingFlops(config, counts), 3 * (2 * 6 * 2 * 768 + 800 + 2 * 832));
}

TEST(TrainingFlops, IsTheHandComputedNumberOfAGpt2) {
  ModelConfig config;
  config.family = &Gpt2Family();
  config.activation = Activation::kGelu;
  config.biases = Biases::All();
  config.tie_embeddings = true;
  config.vocab_size = 11;
  config.hidden_size = 6;
  config.intermediate_size = 24;
  config.num_layers = 1;
  config.num_heads = config.num_kv_heads = 3;
  config.head_dim = 2;
  // 6x18 (q, k, v), 6x6 (output), 6x24 and 24x6: 432 weights; 2 * 5 * 432 = 4320. The head: 2 * 4 * 6 * 11 =
  // 528. One span of 5 tokens, 15 pairs: 15 * 3 heads * 4 multiply-adds * 2 = 360.
  EXPECT_EQ(TrainingFlops(config, {.tokens = 5, .labels = 4, .attention_pairs = 15}), 3 * (4320 + 528 + 360));
}

StepFlops FlopsOf(const ModelConfig& config, const std::string& targets,
                  WeightFormat format = WeightFormat::kPlain) {
  return CountStepFlops(
      config, {.lora = LoraOptions{.rank = 2, .alpha = 4, .targets = targets}, .frozen_format = format});
}

TEST(CountStepFlops, OfAWholeModelIsTheFormula) {
  for (const char* preset : {"llama-1m", "gpt2-124m", "neox-tiny"}) {
    const ModelConfig c = BuiltInDescriptions().PresetConfig(preset, 300);
    const int64_t tokens = 7, labels = 5, pairs = 9,
                  into_and_out_of_mlp = preset == std::string("llama-1m") ? 3 : 2;
    const int64_t layer = 2 * c.hidden_size * c.num_heads * c.head_dim +
                          2 * c.hidden_size * c.num_kv_heads * c.head_dim +
                          into_and_out_of_mlp * c.hidden_size * c.intermediate_size;
    const int64_t forward = 2 * tokens * c.num_layers * layer + 2 * labels * c.hidden_size * c.vocab_size +
                            4 * pairs * c.num_layers * c.num_heads * c.head_dim;
    EXPECT_EQ(CountStepFlops(c, {}).Of({.tokens = tokens, .labels = labels, .attention_pairs = pairs}),
              static_cast<double>(3 * forward))
        << preset;
  }
}

TEST(CountStepFlops, OfAdaptersIsTheHandComputedNumber) {
  const double forward = 2 * 2 * 576, head = 2 * 8 * 10, pair = 4 * 4 * 2;
  // The last product alone has an adapter, [8, 16] of rank 2: its layers are 0 and 1. No input of layer 0
  // leads to one, all of layer 1's do.
  const double down = 2 * 2 * (16 + 8) + 4 * 2 * 8 + 2 * 2 * 16;
  const StepFlops of_down = FlopsOf(test::TwoLayers(), "down_proj");
  EXPECT_EQ(of_down.per_token, forward + 2 * down + 2 * 2 * 16 + 2 * 576);
  EXPECT_EQ(of_down.per_label, 2 * head);
  EXPECT_EQ(of_down.per_pair, 2 * pair + 2 * pair) << "backwards in layer 1 only";
  // Queries, [8, 8]: attention and all above lead to them, the products of queries, keys and values of layer
  // 0 do not.
  const double queries = 2 * 2 * (8 + 8) + 4 * 2 * 8 + 2 * 2 * 8;
  const StepFlops of_queries = FlopsOf(test::TwoLayers(), "q_proj");
  EXPECT_EQ(of_queries.per_token, forward + 2 * queries + 2 * 2 * 8 + 2 * (2 * 576 - (64 + 32 + 32)));
  EXPECT_EQ(of_queries.per_pair, 2 * pair + 2 * 2 * pair);
  // Quantisation changes no product.
  EXPECT_EQ(FlopsOf(test::TwoLayers(), "q_proj", WeightFormat::kNf4).per_token, of_queries.per_token);
}

TEST(CountStepFlops, OfModulesThatAreTrainedWholeBesideAdaptersIsTheHandComputedNumber) {
  const auto flops = [](const std::string& saved, bool tied = false) {
    ModelConfig config = test::TwoLayers();
    config.tie_embeddings = tied;
    return CountStepFlops(
        config, {.lora = LoraOptions{.rank = 2, .alpha = 4, .targets = "down_proj", .saved_modules = saved}});
  };
  const double head = 2 * 8 * 10, pair = 4 * 4 * 2;
  const StepFlops plain = flops("");
  // The head's own gradient is one more product of a label.
  EXPECT_EQ(flops("lm_head").per_label, plain.per_label + head);
  EXPECT_EQ(flops("lm_head").per_token, plain.per_token);
  // A gradient goes down to the table: through all of layer 0, too, and its adapter's input.
  const StepFlops table = flops("embed_tokens");
  EXPECT_EQ(table.per_token, plain.per_token + 2 * 576 + 2 * 2 * 16);
  EXPECT_EQ(table.per_pair, plain.per_pair + 2 * pair);
  EXPECT_EQ(table.per_label, plain.per_label);
  EXPECT_EQ(flops("embed_tokens", /*tied=*/true).per_label, plain.per_label + head) << "it is the head, too";
  EXPECT_EQ(flops("model.norm").per_token, plain.per_token);
}

TEST(CountStepFlops, OfDoraIsThatOfPlainAdapters) {
  const FineTuning plain = {.lora = LoraOptions{.rank = 2, .alpha = 4}},
                   dora = {.lora = LoraOptions{.rank = 2, .alpha = 4, .dora = true}};
  EXPECT_EQ(CountStepFlops(test::TwoLayers(), dora).per_token,
            CountStepFlops(test::TwoLayers(), plain).per_token);
}

TEST(CountStepFlops, OfAParallelLayerTheMlpDoesNotLieAboveAttention) {
  ModelConfig config = test::TwoLayers();
  config.family = &NeoxFamily();
  config.activation = Activation::kGelu;
  config.biases = Biases::All();
  config.num_kv_heads = 4;
  config.num_layers = 1;
  // query_key_value is 8x24, dense 8x8, the MLP's two 8x16. With adapters at query_key_value no gradient goes
  // through the MLP; in a sequential layer it does.
  const double forward = 2 * (192 + 64 + 2 * 128), adapter = 2 * 2 * (8 + 24) + 4 * 2 * 24 + 2 * 2 * 8;
  config.parallel_residual = true;
  EXPECT_EQ(FlopsOf(config, "query_key_value").per_token, forward + adapter + 2 * 64);
  config.parallel_residual = false;
  EXPECT_EQ(FlopsOf(config, "query_key_value").per_token, forward + adapter + 2 * 64 + 2 * 2 * 128);
}

}  // namespace
}  // namespace trainwright

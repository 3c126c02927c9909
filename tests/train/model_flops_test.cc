#include "lib/train/model_flops.h"

#include <gtest/gtest.h>

#include "lib/model/language_model.h"
#include "lib/nn/peak_rate.h"

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
  ModelConfig config;
  config.vocab_size = 10;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 2;
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
  config.family = ModelFamily::kGpt2;
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

/// Without attention it is 6 operations a token and weight that is multiplied (Kaplan et al. 2020), counted
/// here on the model itself.
TEST(TrainingFlops, IsSixATokenAndMatrixElement) {
  for (const char* preset : {"llama-1m", "nanogpt-10m", "gpt2-124m"}) {
    const ModelConfig config = PresetConfig(preset, 300);
    const auto model = MakeModel(config, Precision::kFp32, at::Device(at::kMeta), std::nullopt);
    int64_t elements = 0;
    for (const Parameter& parameter : model->parameters().all()) {
      const bool looked_up = parameter.name.find("embed_tokens") != std::string::npos ||
                             parameter.name.find("wte") != std::string::npos ||
                             parameter.name.find("wpe") != std::string::npos;
      if (parameter.shape.size() == 2 && !looked_up) elements += parameter.size;
    }
    if (config.tie_embeddings) elements += config.vocab_size * config.hidden_size;
    EXPECT_EQ(TrainingFlops(config, {.tokens = 7, .labels = 7}), 6.0 * 7 * static_cast<double>(elements))
        << preset;
  }
}

TEST(PublishedPeakRate, IsTheDenseRateOfThePrecision) {
  EXPECT_EQ(PublishedPeakRate("NVIDIA H200", Precision::kBf16)->tflops, 989.5);
  EXPECT_EQ(PublishedPeakRate("NVIDIA H200", Precision::kFp16)->tflops, 989.5);
  EXPECT_EQ(PublishedPeakRate("NVIDIA H200", Precision::kFp32)->tflops, 67);
  EXPECT_EQ(PublishedPeakRate("NVIDIA A100-SXM4-80GB", Precision::kBf16)->tflops, 312);
}

TEST(PublishedPeakRate, IsNotGuessedForOtherNames) {
  for (const char* name : {"", "NVIDIA H200 NVL", "NVIDIA H100", "NVIDIA GeForce RTX 4090 D", "Graphics Device"}) {
    EXPECT_FALSE(PublishedPeakRate(name, Precision::kBf16).has_value()) << name;
  }
  EXPECT_EQ(GpuName(at::Device(at::kCPU)), "");
}

}  // namespace
}  // namespace trainwright

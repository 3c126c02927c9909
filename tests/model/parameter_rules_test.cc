// Models of which parameters are frozen by their names, against the same models that train all.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/model/language_model.h"
#include "lib/model/trained_flops.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"

namespace trainwright {
namespace {

using test::kCpu;

struct FrozenCase {
  std::string name;
  ModelConfig config;
  std::vector<std::string> freeze;  ///< each on its own
};

void PrintTo(const FrozenCase& family, std::ostream* out) {
  *out << family.name;
}

class FrozenParametersTest : public testing::TestWithParam<FrozenCase> {
 protected:
  std::shared_ptr<Body> Make(const std::string& freeze,
                             const Numerics& numerics = test::kFp32Numerics) const {
    FineTuning tuning;
    tuning.rules.freeze = freeze;
    return test::MakeBody(GetParam().config, numerics, kCpu, 5, tuning);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Families, FrozenParametersTest,
    testing::Values(
        FrozenCase{"llama",
                   test::SmallLlama(),
                   {"layers.0", "embed_tokens,layers.0", "embed_tokens,*proj*", "q_proj,up_proj", "*norm*",
                    "embed_tokens,layers.0.mlp,layers.0.self_attn", "embed_tokens,v_proj,down_proj"}},
        FrozenCase{"qwen2", test::SmallQwen2(), {"bias", "k_proj.weight", "embed_tokens,k_proj"}},
        FrozenCase{
            "gpt2",
            test::SmallGpt2(),
            {"wpe,wte", "wte,wpe,h.0", "bias", "ln_1.bias", "wte,wpe,c_attn,c_proj,c_fc", "c_attn.bias"}},
        FrozenCase{"neox",
                   test::SmallNeox(),
                   {"layers.0", "embed_in,layers.0", "embed_in,*dense*,query_key_value", "*layernorm*"}},
        FrozenCase{"ten_windowed",
                   test::TenOf(test::TenKinds()[3].fields),
                   {"embed_tokens,*proj*,memory", "multi_scale_norm", "embed_tokens,layers.[0-1]"}},
        FrozenCase{
            "ten_selective", test::TenOf(test::TenKinds()[2].fields), {"log_decay,frequency", "*proj*"}},
        FrozenCase{"ten",
                   test::TenOf(test::TenKinds()[1].fields),
                   {"layers.0", "embed_tokens,layers.0", "embed_tokens,*proj*,memory", "log_decay,frequency",
                    "*norm*"}}),
    [](const auto& info) { return info.param.name; });

/// Whether a list freezes matrices that the passes read in fp32 where they are trained, such as embeddings:
/// frozen they are as they are stored.
bool RoundsWhatIsReadInFp32(const FlatParameters& parameters, const std::string& freeze) {
  for (const std::string& pattern : ParsePatterns(freeze, "--freeze")) {
    for (const Parameter& parameter : parameters.all()) {
      if (parameter.shape.size() < 2 || parameter.of_products) continue;
      if (MeansParameter(pattern, parameter.name)) return true;
    }
  }
  return false;
}

TEST_P(FrozenParametersTest, TheOthersHaveTheGradientsOfAModelThatTrainsAll) {
  const BodyInput input = test::RandomInput(GetParam().config, {17, 5, 30});
  for (const Numerics& numerics : {test::kFp32Numerics, Numerics{Precision::kBf16, at::kBFloat16}}) {
    // A product of which a part is frozen is cut, and rounded, elsewhere.
    const double tolerance = numerics.precision == Precision::kFp32 ? 1e-5 : 1e-2;
    const std::shared_ptr<Body> whole = Make("", numerics);
    whole->parameters().ZeroGradients();
    const at::Tensor d_hidden_nd = whole->Forward(input, Keep::kForBackward).clone().mul_(0.01);
    whole->Backward(input, d_hidden_nd);
    for (const std::string& freeze : GetParam().freeze) {
      if (numerics.precision != Precision::kFp32 && RoundsWhatIsReadInFp32(whole->parameters(), freeze))
        continue;
      const std::shared_ptr<Body> body = Make(freeze, numerics);
      body->parameters().ZeroGradients();
      body->Forward(input, Keep::kForBackward);
      body->Backward(input, d_hidden_nd);
      for (size_t i = 0; i < body->parameters().all().size(); ++i) {
        const Parameter& parameter = body->parameters().all()[i];
        if (!parameter.trainable) {
          EXPECT_FALSE(body->parameters().Gradient(i).defined());
          continue;
        }
        const at::Tensor expected = whole->parameters().Gradient(i), own = body->parameters().Gradient(i);
        EXPECT_LE(own.sub(expected).norm().item<double>(), tolerance * expected.norm().item<double>())
            << freeze << ": " << parameter.name;
      }
    }
  }
}

TEST_P(FrozenParametersTest, WhatAPatternMeansIsFrozenAndNothingElse) {
  const std::shared_ptr<Body> whole = Make("");
  for (const std::string& freeze : GetParam().freeze) {
    const std::shared_ptr<Body> body = Make(freeze);
    int64_t frozen = 0;
    for (size_t i = 0; i < body->parameters().all().size(); ++i) {
      const Parameter& parameter = body->parameters().all()[i];
      const std::vector<std::string> patterns = ParsePatterns(freeze, "--freeze");
      const bool meant = std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        return MeansParameter(pattern, parameter.name);
      });
      EXPECT_EQ(parameter.trainable, !meant) << parameter.name;
      EXPECT_TRUE(at::equal(parameter.value, whole->parameters().all()[i].value)) << "not initialised alike";
      frozen += meant ? parameter.size : 0;
    }
    EXPECT_GT(frozen, 0);
    EXPECT_EQ(body->parameters().trainable_count(), whole->parameters().count() - frozen);
  }
}

std::shared_ptr<Body> LlamaWith(const ParameterRules& rules) {
  FineTuning tuning;
  tuning.rules = rules;
  return test::MakeBody(test::SmallLlama(), test::kFp32Numerics, kCpu, 5, tuning);
}

TEST(ParameterRules, RefuseAPatternThatMeansNothingAndListTheNames) {
  for (const ParameterRules& rules :
       {ParameterRules{.freeze = "wte"}, {.lr_scale = "wte=2"}, {.no_decay = "wte"}}) {
    try {
      LlamaWith(rules);
      FAIL() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_NE(error.hint().find("model.embed_tokens.weight"), std::string::npos) << error.hint();
    }
  }
}

TEST(ParameterRules, RefuseToFreezeAll) {
  EXPECT_THROW(LlamaWith({.freeze = "*"}), Error);
}

TEST(ParameterRules, TenFreezesBothNumbersOfAnEigenstateOrNone) {
  FineTuning tuning;
  tuning.rules.freeze = "log_decay";
  EXPECT_THROW(test::MakeBody(test::TenOf(test::TenKinds()[1].fields), test::kFp32Numerics, kCpu, 5, tuning),
               Error);
}

TEST(ParameterRules, TheLastFactorOfAParameterCounts) {
  const std::shared_ptr<Body> body = LlamaWith({.lr_scale = "layers.0=0.5,q_proj=3", .no_decay = "up_proj"});
  for (const Parameter& parameter : body->parameters().all()) {
    const auto has = [&](const char* part) { return parameter.name.find(part) != std::string::npos; };
    EXPECT_EQ(parameter.rate, has("q_proj") ? 3 : has("layers.0.") ? 0.5 : 1) << parameter.name;
    EXPECT_EQ(parameter.decay, parameter.shape.size() == 2 && !has("up_proj")) << parameter.name;
  }
}

TEST(TrainedFlopsTest, LeaveOutTheGradientsThatAreNotComputed) {
  const ModelConfig config = test::SmallLlama();
  const auto count = [&](const std::string& freeze) {
    FineTuning tuning;
    tuning.rules.freeze = freeze;
    const auto model =
        MakeModel(test::Families(), config, Precision::kFp32, kCpu, 5, AttentionBackend::kAuto, tuning);
    return CountTrainedFlops(model.get(), tuning);
  };
  const StepFlops all = CountStepFlops(config, {});
  const auto layers = static_cast<double>(config.num_layers);
  ASSERT_EQ(count("").per_token, all.per_token);

  const StepFlops last = count("embed_tokens,layers.0");
  EXPECT_NEAR(last.per_token, all.per_token * (1 - 2.0 / 3 / layers), 1e-6 * all.per_token);
  EXPECT_NEAR(last.per_pair, all.per_pair * (1 - 2.0 / 3 / layers), 1e-6 * all.per_pair);
  EXPECT_EQ(count("layers.0").per_pair, all.per_pair) << "its input leads to the embeddings";

  const double down = 2.0 * static_cast<double>(config.hidden_size * config.intermediate_size);
  EXPECT_NEAR(count("down_proj").per_token, all.per_token - layers * down, 1e-6 * all.per_token);
  EXPECT_EQ(count("norm").per_token, all.per_token);
}

}  // namespace
}  // namespace trainwright

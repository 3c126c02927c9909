// A step in two passes with the public calls, as losses over several micro-batches need it: the gradients of
// the hidden states come from outside.
#include <ATen/ops/equal.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <tuple>

#include "lib/model/language_model.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"

namespace trainwright {
namespace {

using test::kCpu;

/// InfoNCE over pairs of neighbouring spans, in double: the state of a span is that of its last token, each
/// first of a pair is to find its second among all seconds. \source van den Oord et al. 2018,
/// arXiv:1807.03748
struct Contrastive {
  double loss = 0;
  at::Tensor d_hidden_nd;  ///< fp32
};

Contrastive ContrastiveLoss(const at::Tensor& hidden_nd, const std::vector<int32_t>& starts) {
  const at::Tensor hidden = hidden_nd.to(at::kDouble);
  std::vector<at::Tensor> firsts, seconds;
  for (size_t s = 0; s + 2 < starts.size(); s += 2) {
    firsts.push_back(hidden[starts[s + 1] - 1]);
    seconds.push_back(hidden[starts[s + 2] - 1]);
  }
  const double scale = 1.0 / static_cast<double>(hidden.size(1));
  const at::Tensor a = at::stack(firsts), b = at::stack(seconds), scores = a.matmul(b.t()).mul(scale);
  const int64_t pairs = a.size(0);
  Contrastive result;
  result.loss = scores.logsumexp({1}).sub(scores.diagonal()).sum().item<double>();
  at::Tensor d_scores = scores.softmax(1);
  d_scores.diagonal().sub_(1);
  const at::Tensor d_a = d_scores.matmul(b).mul(scale), d_b = d_scores.t().matmul(a).mul(scale);
  at::Tensor d_hidden = at::zeros_like(hidden);
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const auto at = static_cast<size_t>(2 * pair);
    d_hidden[starts[at + 1] - 1].add_(d_a[pair]);
    d_hidden[starts[at + 2] - 1].add_(d_b[pair]);
  }
  result.d_hidden_nd = d_hidden.to(at::kFloat);
  return result;
}

struct TwoPassCase {
  std::string name;
  ModelConfig config;
};

void PrintTo(const TwoPassCase& family, std::ostream* out) {
  *out << family.name;
}

/// What is trained: the dropout of adapters, or nullopt for all weights.
using Trained = std::optional<double>;

class TwoPassTest : public testing::TestWithParam<std::tuple<TwoPassCase, Trained>> {
 protected:
  const ModelConfig& config() const { return std::get<0>(GetParam()).config; }
  bool trains_all() const { return !std::get<1>(GetParam()); }
  double dropout() const { return std::get<1>(GetParam()).value_or(0.0); }

  std::shared_ptr<Body> Make() const {
    FineTuning tuning;
    if (!trains_all()) tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = dropout()};
    auto body = test::MakeBody(config(), test::kFp32Numerics, kCpu, 5, tuning);
    for (const Parameter& parameter : body->parameters().all()) {
      if (parameter.trainable && !trains_all()) at::Tensor(parameter.value).add_(0.05);
    }
    body->parameters().RefreshCompute();
    body->parameters().ZeroGradients();
    return body;
  }
  BodyInput Input() const {
    BodyInput input = test::RandomInput(config(), {17, 5, 66, 9, 3, 21});
    if (dropout() > 0) input.dropout = DropoutPosition{9, 1, {{4, 0}, {2, 22}}};
    return input;
  }
};

INSTANTIATE_TEST_SUITE_P(Families, TwoPassTest,
                         testing::Combine(testing::Values(TwoPassCase{"llama", test::SmallLlama()},
                                                          TwoPassCase{"mistral", test::SmallMistral()},
                                                          TwoPassCase{"qwen2", test::SmallQwen2()},
                                                          TwoPassCase{"gpt2", test::SmallGpt2()},
                                                          TwoPassCase{"neox", test::SmallNeox()}),
                                          testing::Values(Trained(0.0), Trained(0.3), Trained())),
                         [](const auto& info) {
                           const Trained trained = std::get<1>(info.param);
                           const char* name = !trained ? "_all" : *trained > 0 ? "_dropout" : "_no_dropout";
                           return std::get<0>(info.param).name + name;
                         });

TEST_P(TwoPassTest, TheSecondForwardPassGivesTheHiddenStatesOfTheFirst) {
  const std::shared_ptr<Body> body = Make();
  const BodyInput input = Input();
  const at::Tensor first = body->Forward(input, Keep::kNothing).clone();
  EXPECT_TRUE(at::equal(body->Forward(input, Keep::kForBackward), first));
  BodyInput without = input;
  without.dropout.reset();
  EXPECT_EQ(at::equal(body->Forward(without, Keep::kNothing), first), dropout() == 0);
}

TEST_P(TwoPassTest, ItsGradientsAreThoseOfOnePass) {
  const BodyInput input = Input();
  const std::shared_ptr<Body> direct = Make(), cached = Make();
  const Contrastive expected = ContrastiveLoss(direct->Forward(input, Keep::kForBackward), input.span_starts);
  direct->Backward(input, expected.d_hidden_nd);

  const Contrastive loss = ContrastiveLoss(cached->Forward(input, Keep::kNothing), input.span_starts);
  cached->Forward(test::RandomInput(config(), {40}, 1), Keep::kNothing);  // other micro-batches of the step
  cached->Forward(input, Keep::kForBackward);
  cached->Backward(input, loss.d_hidden_nd);
  EXPECT_NEAR(loss.loss, expected.loss, 1e-9);
  EXPECT_GT(expected.loss, 0);
  EXPECT_GT(direct->parameters().gradients().abs().max().item<double>(), 0);
  EXPECT_LT(test::RelativeDifference(cached->parameters().gradients(), direct->parameters().gradients()),
            1e-5);
  const double largest = direct->parameters().gradients().abs().max().item<double>();
  for (const Parameter& parameter : direct->parameters().all()) {
    if (!parameter.trainable) continue;
    const auto of = [&](Body& body) {
      return body.parameters().gradients().narrow(0, parameter.offset, parameter.size);
    };
    EXPECT_LT(of(*cached).sub(of(*direct)).abs().max().item<double>(), 1e-5 * largest) << parameter.name;
    // The loss is one of the hidden states, so a head of its own gets nothing.
    const bool is_reached = of(*direct).abs().max().item<double>() > 0;
    EXPECT_TRUE(is_reached || parameter.name.find("head") != std::string::npos ||
                parameter.name.find("embed_out") != std::string::npos)
        << parameter.name;
  }
}

TEST_P(TwoPassTest, ItsGradientsEqualFiniteDifferences) {
  for (const AttentionMask mask : {AttentionMask::kCausal, AttentionMask::kBidirectional}) {
    BodyInput input = Input();
    input.mask = mask;
    const std::shared_ptr<Body> body = Make();
    const auto loss = [&] {
      body->parameters().RefreshCompute();
      return ContrastiveLoss(body->Forward(input, Keep::kNothing), input.span_starts);
    };
    const at::Tensor d_hidden_nd = loss().d_hidden_nd;
    body->Forward(input, Keep::kForBackward);
    body->Backward(input, d_hidden_nd);
    const at::Tensor gradients = body->parameters().gradients().clone();
    const at::Tensor direction = gradients.div(gradients.norm()),
                     before = body->parameters().values().clone();
    constexpr double kStep = 1e-3;
    body->parameters().values().copy_(before).add_(direction, kStep);
    const double above = loss().loss;
    body->parameters().values().copy_(before).add_(direction, -kStep);
    const double slope = (above - loss().loss) / (2 * kStep), expected = gradients.norm().item<double>();
    EXPECT_NEAR(slope, expected, 1e-2 * expected)
        << (mask == AttentionMask::kCausal ? "causal" : "bidirectional");
  }
}

TEST_P(TwoPassTest, UnderTheBidirectionalMaskATokenSeesWhatFollowsInItsSpanAlone) {
  const std::shared_ptr<Body> body = Make();
  BodyInput input = Input(), changed = Input();
  changed.tokens_n = input.tokens_n.clone();
  changed.tokens_n[21].add_(1).remainder_(config().vocab_size);  // the last of the second span
  for (const AttentionMask mask : {AttentionMask::kCausal, AttentionMask::kBidirectional}) {
    input.mask = changed.mask = mask;
    const at::Tensor before = body->Forward(input, Keep::kNothing).clone(),
                     after = body->Forward(changed, Keep::kNothing);
    EXPECT_EQ(at::equal(before.narrow(0, 17, 4), after.narrow(0, 17, 4)), mask == AttentionMask::kCausal);
    EXPECT_TRUE(at::equal(before.narrow(0, 0, 17), after.narrow(0, 0, 17)));
    EXPECT_TRUE(at::equal(before.narrow(0, 22, 99), after.narrow(0, 22, 99)));
  }
}

}  // namespace
}  // namespace trainwright

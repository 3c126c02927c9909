// What the layer stack does for every family: it tells when a segment's gradients are done, and ends the
// backward pass below the lowest adapter.
#include "lib/model/layer_stack.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "lib/model/language_model.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kCpu;

struct StackCase {
  std::string name;
  ModelConfig config;
  std::string one_matrix;  ///< of the layer in the middle
};

void PrintTo(const StackCase& family, std::ostream* out) {
  *out << family.name;
}

ModelConfig Tied(ModelConfig config) {
  config.tie_embeddings = true;
  return config;
}

class LayerStackTest : public testing::TestWithParam<StackCase> {
 protected:
  std::unique_ptr<LanguageModel> Make(const FineTuning& tuning = {}) const {
    auto model = std::make_unique<LanguageModel>(
        test::MakeBody(GetParam().config, test::kFp32Numerics, kCpu, 5, tuning));
    for (const Parameter& parameter : model->parameters().all()) {
      if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
    }
    model->parameters().RefreshCompute();
    return model;
  }
  /// The gradients of each segment as they were when it was called done.
  static std::map<size_t, at::Tensor> WhenDone(LanguageModel* model, const ModelInput& input) {
    std::map<size_t, at::Tensor> done;
    const GradientBuffer& buffer = model->parameters().gradient_buffer();
    model->body().set_on_segment_gradients_done([&](size_t segment) {
      EXPECT_EQ(done.count(segment), 0u) << segment;
      const auto [begin, end, written] = buffer.segments()[segment];
      done[segment] = model->parameters().gradients().narrow(0, begin, end - begin).clone();
    });
    model->LossAndGradients(input, 1.0);
    model->body().set_on_segment_gradients_done(nullptr);
    return done;
  }

  const ModelInput input_ = test::RandomInput(GetParam().config, {30, 1, 20});
  const test::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(
    Families, LayerStackTest,
    testing::Values(
        StackCase{"llama", test::SmallLlama(), "model.layers.1.self_attn.o_proj"},
        StackCase{"llama_tied", Tied(test::SmallLlama()), "model.layers.1.mlp.down_proj"},
        StackCase{"gpt2", test::SmallGpt2(), "transformer.h.1.attn.c_attn"},
        StackCase{"neox", test::SmallNeox(), "gpt_neox.layers.1.attention.dense"},
        StackCase{"neox_sequential", test::SmallNeox(false), "gpt_neox.layers.1.mlp.dense_h_to_4h"},
        StackCase{"ten", test::TenOf(test::TenKinds()[2].fields), "ten.layers.1.cell.out_proj"},
        StackCase{"ten_windowed", test::TenOf(test::TenKinds()[3].fields), "ten.layers.1.mlp.up_proj"}),
    [](const auto& info) { return info.param.name; });

TEST_P(LayerStackTest, ASegmentIsCalledDoneOnceAndItsGradientsStayAsTheyAreThen) {
  for (const bool adapters : {false, true}) {
    FineTuning tuning;
    if (adapters) tuning.lora = LoraOptions{.rank = 2, .alpha = 4};
    const auto model = Make(tuning);
    model->parameters().ZeroGradients();
    const std::map<size_t, at::Tensor> done = WhenDone(model.get(), input_);
    const std::vector<GradientBuffer::Segment>& segments = model->parameters().gradient_buffer().segments();
    ASSERT_EQ(done.size(), segments.size());
    for (const auto& [segment, gradients] : done) {
      const auto [begin, end, written] = segments[segment];
      EXPECT_TRUE(at::equal(gradients, model->parameters().gradients().narrow(0, begin, end - begin)))
          << segment;
      EXPECT_GT(gradients.abs().max().item<double>(), 0) << segment;
    }
  }
}

TEST_P(LayerStackTest, LayersAreDoneFromTheLastToTheFirst) {
  const auto model = Make();
  std::vector<size_t> order;
  model->body().set_on_segment_gradients_done([&](size_t segment) { order.push_back(segment); });
  model->LossAndGradients(input_, 1.0);
  EXPECT_EQ(order, (std::vector<size_t>{4, 3, 2, 1, 0}));  // head and last norm, three layers, embeddings
}

TEST_P(LayerStackTest, NothingBelowTheLowestAdapterIsBroughtBack) {
  const auto in_bytes = [&](const std::string& targets) {
    const auto model = Make({.lora = LoraOptions{.rank = 2, .alpha = 4, .targets = targets}});
    model->Offload({.activations = true}, folder_.path());
    model->LossAndGradients(input_, 1.0);
    const OffloadCounts counts = model->offload_counts();
    return std::pair(counts.in_bytes, counts.out_bytes);
  };
  const auto [all_in, all_out] = in_bytes("all-linear");
  const auto [some_in, some_out] = in_bytes(GetParam().one_matrix);
  EXPECT_EQ(some_out, all_out);
  EXPECT_EQ(all_in, all_out);
  EXPECT_EQ(some_in * 2, all_in);  // of the three layers the last stays, and the first is not needed
}

TEST_P(LayerStackTest, TheOnlyAdapterHasTheGradientsThatItHasAmongAll) {
  const auto some = Make({.lora = LoraOptions{.rank = 2, .alpha = 4, .targets = GetParam().one_matrix}}),
             all = Make({.lora = LoraOptions{.rank = 2, .alpha = 4}});
  // Of the others B is zero: they add nothing.
  for (const Parameter& parameter : all->parameters().all()) {
    if (!parameter.name.ends_with("lora_B.weight") || some->parameters().Find(parameter.name) != nullptr)
      continue;
    at::Tensor(parameter.value).zero_();
  }
  all->parameters().RefreshCompute();
  some->LossAndGradients(input_, 1.0);
  all->LossAndGradients(input_, 1.0);
  int64_t compared = 0;
  for (const Parameter& parameter : some->parameters().all()) {
    if (!parameter.trainable) continue;
    EXPECT_LT(test::RelativeDifference(parameter.gradient, all->parameters().Find(parameter.name)->gradient),
              1e-5)
        << parameter.name;
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

TEST_P(LayerStackTest, ABackwardPassWithoutItsForwardPassIsRefused) {
  const auto model = Make();
  Body& body = model->body();
  at::Tensor d_hidden = body.Forward(input_, Keep::kForBackward).clone();
  body.Forward(input_, Keep::kNothing);  // writes into the buffers of what was kept
  EXPECT_NE(test::CodeOf([&] { body.Backward(input_, d_hidden); }), std::nullopt);
}

}  // namespace
}  // namespace trainwright

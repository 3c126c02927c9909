// A micro-batch in pieces that carry the state (LanguageModel::set_tbptt).
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lib/model/input_pieces.h"
#include "tests/model/gradient_checks.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kFp32Numerics;
using test::LivelyModel;
using test::RandomInput;
using test::RelativeDifference;
using test::TenKind;
using test::TenOf;

class TenTbpttTest : public testing::TestWithParam<TenKind> {
 protected:
  std::unique_ptr<LanguageModel> NewModel(int64_t tbptt, const Numerics& numerics = kFp32Numerics) const {
    ModelConfig config = TenOf(GetParam().fields);
    config.num_layers = 2;
    auto model = LivelyModel(config, numerics);
    model->set_tbptt(tbptt);
    return model;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, TenTbpttTest, testing::ValuesIn(test::TenKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TenTbpttTest, TheLossIsThatOfTheWhole) {
  const auto whole = NewModel(0);
  const ModelInput input = RandomInput(whole->config(), {37, 1, 50});
  const double expected = whole->Loss(input).loss_nats;
  for (const int64_t tokens : {1, 7, 40}) {
    const auto model = NewModel(tokens);
    EXPECT_NEAR(model->Loss(input).loss_nats, expected, 1e-5 * expected) << tokens;
    const LossSum trained = model->LossAndGradients(input, 1.0);
    EXPECT_NEAR(trained.loss_nats, expected, 1e-5 * expected) << tokens;
    EXPECT_EQ(trained.num_labels, 37 + 1 + 50 - 3) << tokens;
  }
}

TEST_P(TenTbpttTest, CutsBetweenDocumentsChangeNoGradient) {
  const auto whole = NewModel(0), model = NewModel(16);
  const ModelInput input = RandomInput(whole->config(), {16, 7, 9, 16});
  whole->LossAndGradients(input, 1.0);
  model->LossAndGradients(input, 1.0);
  EXPECT_LT(RelativeDifference(model->parameters().gradients(), whole->parameters().gradients()), 1e-4);
}

/// The loss of a piece where the parameters were changed after what came before it.
double LossOfPiece(LanguageModel* model, const std::vector<ModelInput>& pieces, size_t piece,
                   at::Tensor parameter, const at::Tensor& changed) {
  for (size_t i = 0; i < piece; ++i) model->body().Forward(pieces[i], Keep::kNothing);
  const at::Tensor before = parameter.clone();
  parameter.copy_(changed);
  const double loss = model->Loss(pieces[piece]).loss_nats;
  parameter.copy_(before);
  return loss;
}

TEST_P(TenTbpttTest, TheGradientIsThatOfThePiecesWithTheirStatesAsConstants) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const auto model = NewModel(13), probe = NewModel(0);
  const ModelInput input = RandomInput(model->config(), {11, 25});
  const std::vector<ModelInput> pieces = PiecesOf(input, 13);
  ASSERT_EQ(pieces.size(), 3u);
  model->LossAndGradients(input, 1.0);
  for (size_t i = 0; i < model->parameters().all().size(); ++i) {
    const Parameter& parameter = model->parameters().all()[i];
    const at::Tensor direction = test::DirectionOf(parameter);
    const at::Tensor value = probe->parameters().all()[i].value;
    const auto loss_at = [&](double step) {
      double loss = 0;
      for (size_t piece = 0; piece < pieces.size(); ++piece) {
        loss += LossOfPiece(probe.get(), pieces, piece, value, value.add(direction, step));
      }
      return loss;
    };
    const double expected = parameter.gradient.mul(direction).sum().item<double>();
    EXPECT_NEAR(test::SlopeOf(loss_at, 4e-3), expected, 5e-3 * (1 + parameter.gradient.norm().item<double>()))
        << parameter.name;
  }
}

TEST_P(TenTbpttTest, RecomputedAndOffloadedItHasTheSameGradientsBitForBit) {
  const test::TemporaryFolder folder;
  for (const Numerics& numerics : {kFp32Numerics, Numerics{Precision::kBf16, at::kBFloat16}}) {
    const auto gradients = [&](ActivationCheckpointing kind, bool offload) {
      const auto model = NewModel(13, numerics);
      model->set_activation_checkpointing(kind);
      model->Offload({.activations = offload}, folder.path());
      model->LossAndGradients(RandomInput(model->config(), {11, 25}), 1.0);
      return model->parameters().gradients().clone();
    };
    const at::Tensor expected = gradients(ActivationCheckpointing::kNo, false);
    EXPECT_TRUE(at::equal(gradients(ActivationCheckpointing::kFull, false), expected));
    EXPECT_TRUE(at::equal(gradients(ActivationCheckpointing::kSelective, true), expected));
  }
}

/// Of training with adapters that are not zero any more.
double LossWithDropout(const ModelConfig& config, double dropout, int64_t tbptt) {
  const LoraOptions options{.rank = 2, .alpha = 4, .dropout = dropout};
  LanguageModel model(test::MakeBody(config, kFp32Numerics, test::kCpu, 5, {options}));
  for (const Parameter& parameter : model.parameters().all()) {
    if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.3);
  }
  model.parameters().RefreshCompute();
  model.set_tbptt(tbptt);
  ModelInput input = RandomInput(config, {37, 1, 50});
  // Samples begin in the middle of a document, too.
  input.dropout = DropoutPosition{9, 1, {{.index = 0, .row = 0}, {.index = 1, .row = 50}}};
  return model.LossAndGradients(input, 1.0).loss_nats;
}

TEST_P(TenTbpttTest, AdaptersDropWhatTheyDropOfTheWhole) {
  const ModelConfig config = TenOf(GetParam().fields);
  const double whole = LossWithDropout(config, 0.3, 0);
  EXPECT_GT(std::abs(LossWithDropout(config, 0, 0) - whole), 1e-4 * whole);
  for (const int64_t tokens : {7, 40}) {
    EXPECT_NEAR(LossWithDropout(config, 0.3, tokens), whole, 1e-5 * whole) << tokens;
  }
}

TEST_P(TenTbpttTest, MemoryIsThatOfAPiece) {
  const auto held = [&](int64_t tbptt, int64_t tokens) {
    const auto model = NewModel(tbptt);
    model->LossAndGradients(RandomInput(model->config(), {tokens}), 1.0);
    return model->memory().activation_bytes;
  };
  EXPECT_EQ(held(32, 256), held(0, 32));
  EXPECT_LT(held(32, 256), held(0, 256) / 4);
}

TEST_P(TenTbpttTest, NothingIsCarriedFromOneMicroBatchToTheNext) {
  const auto model = NewModel(16), fresh = NewModel(16);
  const ModelInput input = RandomInput(model->config(), {40}, 1);
  model->LossAndGradients(RandomInput(model->config(), {30}, 2), 1.0);
  model->parameters().ZeroGradients();
  EXPECT_EQ(model->LossAndGradients(input, 1.0).loss_nats, fresh->LossAndGradients(input, 1.0).loss_nats);
  EXPECT_TRUE(at::equal(model->parameters().gradients(), fresh->parameters().gradients()));
}

/// What happens in the passes of a micro-batch: that the last backward pass begins (-1), or that a segment
/// has its gradients.
std::vector<int64_t> EventsOf(LanguageModel* model, ModelInput input) {
  std::vector<int64_t> events;
  input.before_last_backward = [&] { events.push_back(-1); };
  model->body().set_on_segment_gradients_done(
      [&](size_t segment) { events.push_back(static_cast<int64_t>(segment)); });
  model->LossAndGradients(input, 1.0);
  model->body().set_on_segment_gradients_done(nullptr);
  return events;
}

TEST_P(TenTbpttTest, TheLastBackwardPassIsToldOnceAndBeforeItsSegments) {
  const auto whole = NewModel(0), model = NewModel(10);
  const ModelInput input = RandomInput(model->config(), {35});
  const std::vector<int64_t> once = EventsOf(whole.get(), input), events = EventsOf(model.get(), input);
  ASSERT_EQ(once.front(), -1);
  const size_t segments = once.size() - 1;
  ASSERT_EQ(events.size(), 4 * segments + 1);
  EXPECT_EQ(std::vector<int64_t>(events.begin() + static_cast<std::ptrdiff_t>(3 * segments), events.end()),
            once);
}

TEST_P(TenTbpttTest, PiecesWithoutLabelsAreReadForTheirStateAlone) {
  const auto whole = NewModel(0), model = NewModel(10);
  ModelInput input = RandomInput(model->config(), {45});
  input.labels_n.slice(0, 0, 20).fill_(-100);
  input.labels_n.slice(0, 30, 45).fill_(-100);
  const size_t segments = EventsOf(whole.get(), input).size() - 1;
  EXPECT_EQ(EventsOf(model.get(), input).size() - 1, segments);  // one backward pass
  EXPECT_NEAR(model->Loss(input).loss_nats, whole->Loss(input).loss_nats, 1e-3);
}

TEST(TbpttTest, AModelWithoutAStateRefusesIt) {
  const auto model = LivelyModel(test::SmallLlama(), kFp32Numerics);
  EXPECT_EQ(test::CodeOf([&] { model->set_tbptt(8); }), ErrorCode::kUsage);
  model->set_tbptt(0);
}

}  // namespace
}  // namespace trainwright

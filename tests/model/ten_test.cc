// The body of the family ten, one layer of each kind: its gradients by finite differences, what packing,
// recomputation and offload leave alone, what a token may know, adapters, and states from pass to pass.
// tests/model/ten_parity_test.cc has what PyTorch computes.
#include "lib/model/ten.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/model/language_model.h"
#include "lib/nn/linear/lora.h"
#include "tests/model/gradient_checks.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::Document;
using test::kCpu;
using test::kFp32Numerics;
using test::MaxDifference;
using test::RandomInput;
using test::RelativeDifference;
using test::TenKind;
using test::TenKinds;
using test::TenOf;

std::shared_ptr<Ten> MakeTen(const TenFields& fields, const Numerics& numerics = kFp32Numerics,
                             const FineTuning& tuning = {}) {
  return std::make_shared<Ten>(TenOf(fields), numerics, kCpu, 5, tuning);
}

/// A decay that follows the input begins as one that does not.
void MakeSelective(FlatParameters* parameters) {
  for (size_t i = 0; i < parameters->all().size(); ++i) {
    const Parameter& parameter = parameters->all()[i];
    if (!parameter.name.ends_with("selective_proj.weight")) continue;
    const at::Tensor drawn = at::empty(parameter.shape, at::kFloat);
    Rng(7, parameter.name)
        .FillNormal(0, static_cast<uint64_t>(parameter.size), 0.3, drawn.mutable_data_ptr<float>());
    parameters->Assign(i, drawn);
  }
  parameters->RefreshCompute();
}

/// Every term of the maths shows.
std::unique_ptr<LanguageModel> LivelyTen(const TenFields& fields, const Numerics& numerics = kFp32Numerics) {
  auto model = test::Lively(MakeTen(fields, numerics));
  MakeSelective(&model->parameters());
  return model;
}

/// With adapters that are not zero any more.
std::unique_ptr<LanguageModel> AdaptedTen(const TenFields& fields, const FineTuning& tuning,
                                          Precision precision = Precision::kFp32) {
  auto model = MakeModel(test::Families(), TenOf(fields), precision, kCpu, 5, {}, tuning);
  MakeSelective(&model->parameters());
  for (const Parameter& parameter : model->parameters().all()) {
    if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
  }
  model->parameters().RefreshCompute();
  return model;
}

class TenTest : public testing::TestWithParam<TenKind> {
 protected:
  const TenFields& fields() const { return GetParam().fields; }
};

INSTANTIATE_TEST_SUITE_P(Kinds, TenTest, testing::ValuesIn(TenKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TenTest, TheBodyHasWhatTheDescriptionSays) {
  for (const bool tied : {false, true}) {
    ModelConfig config = TenOf(fields());
    config.tie_embeddings = tied;
    const Ten body(config, kFp32Numerics, kCpu, 5);
    EXPECT_EQ(body.parameters().count(), CountParameters(config));
    for (const Parameter& parameter : body.parameters().all()) {
      const bool dynamics = parameter.name.ends_with(".log_decay") || parameter.name.ends_with(".frequency");
      EXPECT_EQ(parameter.rate, dynamics ? fields().dynamics_rate : 1) << parameter.name;
      EXPECT_EQ(parameter.decay, parameter.shape.size() > 1) << parameter.name;
    }
  }
}

TEST_P(TenTest, GradientsEqualFiniteDifferences) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const auto model = LivelyTen(fields());
  // Of fourth order: an angle is turned once for each row that remembers. The last number is of rounding.
  test::ExpectGradientsOfFiniteDifferences(model.get(), RandomInput(model->config(), {9, 1, 19}), 4e-3, 4e-3,
                                           3e-3);
}

TEST_P(TenTest, PackedDocumentsHaveTheLogitsAndGradientsThatTheyHaveAlone) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const auto packed_model = LivelyTen(fields()), alone_model = LivelyTen(fields());
  const ModelInput packed = RandomInput(packed_model->config(), {5, 1, 30, 3});
  const at::Tensor logits = packed_model->Logits(packed);
  packed_model->LossAndGradients(packed, 1.0);
  for (size_t k = 0; k < 4; ++k) {
    const ModelInput alone = Document(packed, k);
    EXPECT_LT(RelativeDifference(logits.narrow(0, packed.span_starts[k], alone.tokens_n.numel()),
                                 alone_model->Logits(alone)),
              1e-6)
        << k;
    alone_model->LossAndGradients(alone, 1.0);
  }
  EXPECT_LT(RelativeDifference(packed_model->parameters().gradients(), alone_model->parameters().gradients()),
            1e-5);
}

TEST_P(TenTest, ATokenKnowsThoseBeforeItInItsDocumentAlone) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const auto model = LivelyTen(fields());
  ModelInput input = RandomInput(model->config(), {9, 24, 7});
  const at::Tensor before = model->Logits(input).clone();
  constexpr int64_t kChanged = 9 + 6, kSoonAfter = kChanged + 6, kEnd = 9 + 24;
  auto* tokens = input.tokens_n.mutable_data_ptr<int64_t>();
  tokens[kChanged] = (tokens[kChanged] + 1) % model->config().vocab_size;
  const at::Tensor after = model->Logits(input);
  EXPECT_TRUE(at::equal(after.narrow(0, 0, kChanged), before.narrow(0, 0, kChanged)));
  EXPECT_TRUE(at::equal(after.narrow(0, kEnd, 7), before.narrow(0, kEnd, 7)));
  for (int64_t row = kChanged; row < kSoonAfter; ++row)
    EXPECT_GT(MaxDifference(after[row], before[row]), 0) << row;
}

TEST_P(TenTest, RecomputedAndOffloadedItHasTheSameGradientsBitForBit) {
  test::ExpectTheSameRecomputedAndOffloaded(
      [&](const Numerics& numerics) { return LivelyTen(fields(), numerics); },
      {kFp32Numerics, Numerics{Precision::kBf16, at::kBFloat16}, Numerics{Precision::kBf16, at::kFloat}},
      RandomInput(TenOf(fields()), {30, 1, 20}), RandomInput(TenOf(fields()), {14, 3}, 1),
      {ActivationCheckpointing::kNo, ActivationCheckpointing::kSelective, ActivationCheckpointing::kFull});
}

TEST_P(TenTest, AnMlpWhoseActivationIsComputedInPartsCannotKeepIt) {
  const auto model = LivelyTen(fields(), kFp32Numerics);
  EXPECT_THAT([&] { model->set_activation_checkpointing(ActivationCheckpointing::kLeast); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("least has no meaning")));
}

/// The kinds without a multi-scale block, whose views are its own.
std::vector<TenKind> KindsOfACellAlone() {
  std::vector<TenKind> kinds;
  for (const TenKind& kind : TenKinds()) {
    if (!kind.fields.multi_scale()) kinds.push_back(kind);
  }
  return kinds;
}

class TenCellMemoryTest : public TenTest {};

INSTANTIATE_TEST_SUITE_P(Kinds, TenCellMemoryTest, testing::ValuesIn(KindsOfACellAlone()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TenCellMemoryTest, IsThatOfOneLayerForWhatIsComputedAgain) {
  const ModelConfig config = TenOf(fields());
  const ModelInput input = RandomInput(config, {70, 1, 60});
  const auto bytes = [&](ActivationCheckpointing kind) {
    const auto model = LivelyTen(fields());
    model->set_activation_checkpointing(kind);
    model->LossAndGradients(input, 1.0);
    return model->memory().activation_bytes;
  };
  const int64_t all = bytes(ActivationCheckpointing::kNo), tokens = 131, chunks = 9 + 1 + 8,
                channels = 2 * fields().eigenstates, layers = config.num_layers, fp32 = 4;
  const bool has_scan_input = fields().convolution > 0 || fields().init == TenInit::kLru;
  const int64_t of_selective = tokens * (config.intermediate_size + (has_scan_input ? channels : 0));
  const int64_t of_full = of_selective + tokens * (2 * channels + 3 * config.hidden_size) + chunks * channels;
  EXPECT_EQ(all - bytes(ActivationCheckpointing::kSelective), (layers - 1) * of_selective * fp32);
  EXPECT_EQ(all - bytes(ActivationCheckpointing::kFull), (layers - 1) * of_full * fp32);
}

TEST_P(TenTest, AdaptersTrainBesideFrozenWeights) {
  for (const WeightFormat format : {WeightFormat::kPlain, WeightFormat::kNf4}) {
    const auto model = AdaptedTen(fields(), {LoraOptions{.rank = 2, .alpha = 4}, format});
    const ModelInput input = RandomInput(model->config(), {9, 1, 14});
    const double before = model->Loss(input).loss_nats;
    for (int step = 0; step < 20; ++step) {
      model->parameters().ZeroGradients();
      model->LossAndGradients(input, 1.0 / 21);
      model->parameters().values().sub_(model->parameters().gradients(), 0.05);
      model->parameters().RefreshCompute();
    }
    EXPECT_LT(model->Loss(input).loss_nats, before);
    for (const Parameter& parameter : model->parameters().all()) {
      EXPECT_EQ(parameter.trainable, IsAdapterParameter(parameter)) << parameter.name;
      EXPECT_TRUE(parameter.adaptable || !parameter.quantized()) << parameter.name;
    }
  }
}

TEST_P(TenTest, TheMatricesThatGemmsReadAreAllButTheConvolutions) {
  const auto model = MakeModel(test::Families(), TenOf(fields()), Precision::kFp32, kCpu, 5);
  std::vector<std::string> expected, found;
  for (const Parameter& parameter : model->parameters().all()) {
    const bool of_layer = parameter.name.find(".layers.") != std::string::npos;
    const bool is_convolution = parameter.name.ends_with(".conv.weight");
    if (of_layer && parameter.shape.size() == 2 && !is_convolution) expected.push_back(parameter.name);
  }
  for (const size_t index : ProductMatrices(model->parameters())) {
    found.push_back(model->parameters().all()[index].name);
  }
  EXPECT_EQ(found, expected);
}

TEST_P(TenTest, AdaptersWithDropoutHaveTheSameGradientsWhenTheRestIsComputedAgain) {
  ModelInput input = RandomInput(TenOf(fields()), {40, 33});
  input.dropout = DropoutPosition{9, 1, {{0, 0}}};
  for (const WeightFormat format : {WeightFormat::kPlain, WeightFormat::kNf4}) {
    const auto gradients = [&](ActivationCheckpointing kind) {
      const LoraOptions options{.rank = 2, .alpha = 4, .dropout = 0.3};
      const auto model = AdaptedTen(fields(), {options, format}, Precision::kBf16);
      model->set_activation_checkpointing(kind);
      model->parameters().ZeroGradients();
      model->LossAndGradients(input, 1.0);
      return model->parameters().gradients().clone();
    };
    const at::Tensor expected = gradients(ActivationCheckpointing::kNo);
    EXPECT_GT(expected.abs().max().item<double>(), 0);
    EXPECT_TRUE(at::equal(gradients(ActivationCheckpointing::kSelective), expected));
    EXPECT_TRUE(at::equal(gradients(ActivationCheckpointing::kFull), expected));
  }
}

/// The first rows of the documents, or those behind them.
DeviceInput PartOf(const ModelInput& packed, const std::vector<int64_t>& cuts, bool first) {
  std::vector<at::Tensor> tokens;
  std::vector<int32_t> starts = {0};
  for (size_t k = 0; k < cuts.size(); ++k) {
    const int64_t begin = packed.span_starts[k] + (first ? 0 : cuts[k]),
                  end = first ? packed.span_starts[k] + cuts[k] : packed.span_starts[k + 1];
    tokens.push_back(packed.tokens_n.narrow(0, begin, end - begin));
    starts.push_back(starts.back() + static_cast<int32_t>(end - begin));
  }
  const at::Tensor tokens_n = at::cat(tokens), positions_n = at::arange(tokens_n.numel(), at::kLong);
  return {tokens_n, positions_n, positions_n, SpanTable(starts)};
}

TEST_P(TenTest, SpansGoOnFromTheStatesThatTheyLeft) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const auto body = MakeTen(fields());
  const auto model = test::Lively(body);
  MakeSelective(&model->parameters());
  const std::vector<int64_t> lengths = {20, 6, 11}, cuts = {13, 2, 5};
  const ModelInput packed = RandomInput(model->config(), lengths);
  const at::Tensor whole_nd = body->Forward(packed, Keep::kNothing).clone();
  std::vector<LayerStates> states(3, body->NewState());
  const std::vector<LayerStates*> all = {&states[0], &states[1], &states[2]};
  for (const bool first : {true, false}) {
    const DeviceInput part = PartOf(packed, cuts, first);
    const at::Tensor hidden_nd = body->ForwardFrom(part, all);
    for (size_t k = 0; k < 3; ++k) {
      const int64_t rows = part.spans.starts[k + 1] - part.spans.starts[k],
                    begin = packed.span_starts[k] + (first ? 0 : cuts[k]);
      EXPECT_LT(RelativeDifference(hidden_nd.narrow(0, part.spans.starts[k], rows),
                                   whole_nd.narrow(0, begin, rows)),
                1e-5)
          << k;
    }
  }
}

TEST_P(TenTest, APassGoesOnWhereTheLastSpanOfTheOneBeforeEnded) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const auto body = MakeTen(fields());
  const auto model = test::Lively(body);
  MakeSelective(&model->parameters());
  const ModelInput packed = RandomInput(model->config(), {3, 16, 5});
  const at::Tensor whole_nd = body->Forward(packed, Keep::kNothing).clone();
  const auto rows = [&](int64_t begin, int64_t end, std::vector<int32_t> starts, bool continues) {
    BodyInput piece;
    piece.tokens_n = packed.tokens_n.narrow(0, begin, end - begin);
    piece.positions_n = at::arange(end - begin, at::kLong);
    piece.span_starts = std::move(starts);
    piece.continues = continues;
    EXPECT_LT(
        RelativeDifference(body->Forward(piece, Keep::kNothing), whole_nd.narrow(0, begin, end - begin)),
        1e-5)
        << begin;
  };
  rows(0, 8, {0, 3, 8}, false);
  rows(8, 16, {0, 8}, true);
  rows(16, 24, {0, 3, 8}, true);
  rows(19, 24, {0, 5}, false);  // what came before is forgotten
}

TEST(TenBodyTest, RowsBeyondASliceOfTheMlpAreComputedAsTheOthers) {
  const TenFields fields = TenKinds()[1].fields;
  const auto model = LivelyTen(fields), alone_model = LivelyTen(fields);
  const ModelInput packed = RandomInput(model->config(), {8150, 70});
  const ModelInput alone = Document(packed, 1);
  EXPECT_LT(RelativeDifference(model->Logits(packed).narrow(0, 8150, 70), alone_model->Logits(alone)), 1e-5);
  // Without the labels of the first document the gradients are those of the second.
  ModelInput second = packed;
  second.labels_n = packed.labels_n.clone();
  second.labels_n.narrow(0, 0, 8150).fill_(-100);
  model->LossAndGradients(second, 1.0);
  alone_model->LossAndGradients(alone, 1.0);
  EXPECT_LT(RelativeDifference(model->parameters().gradients(), alone_model->parameters().gradients()), 1e-5);
}

TEST(TenBodyTest, StartsWithMixingThatIsNearlyNoneAndGatesThatAreNearlyClosed) {
  TenFields fields = TenKinds()[2].fields;
  fields.eigenstates = 256;
  const auto body = MakeTen(fields);
  const auto value = [&](const std::string& name) {
    const Parameter* found = body->parameters().Find("ten.layers.1.cell." + name);
    EXPECT_NE(found, nullptr) << name;
    return found != nullptr ? found->value : at::zeros({1});
  };
  EXPECT_TRUE(at::equal(value("gate_proj.bias"), at::full({24}, -2.0f)));
  EXPECT_TRUE(at::equal(value("memory.gate"), at::full({1}, -3.0f)));
  EXPECT_TRUE(at::equal(value("memory.weight"), at::eye(256, at::kFloat)));
  EXPECT_EQ(value("selective_proj.weight").abs().max().item<double>(), 0);
  const at::Tensor noise = value("coupling.weight").sub(at::eye(64, at::kFloat)), taps = value("conv.weight");
  EXPECT_NEAR(noise.std().item<double>(), 0.01 / 8, 1e-4);
  EXPECT_LT(taps.abs().max().item<double>(), 0.5);
  EXPECT_NEAR(taps.std().item<double>(), 0.5 / std::sqrt(3.0), 0.02);
  const at::Tensor modulus = value("log_decay").exp().neg().exp();
  EXPECT_GE(modulus.min().item<double>(), 0.9 - 1e-6);
  EXPECT_LE(modulus.max().item<double>(), 0.999 + 1e-6);
}

TEST(TenBodyTest, AShapeThatMakesNoModelIsRefusedByItsField) {
  const auto message = [](const auto& change) {
    ModelConfig config = TenOf(TenKinds()[3].fields);
    TenFields fields = TenFieldsOf(config);
    change(&config, &fields);
    config.own = FamilyFields::Of(fields);
    return test::MessageOf([&] { Ten(config, kFp32Numerics, at::Device(at::kMeta), std::nullopt); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(message([](ModelConfig*, TenFields* fields) { fields->heads = 3; }), HasSubstr("num_heads"));
  EXPECT_THAT(message([](ModelConfig*, TenFields* fields) { fields->max_modulus = 1; }),
              HasSubstr("max_modulus"));
  EXPECT_THAT(message([](ModelConfig*, TenFields* fields) {
                fields->windows = {2, 3};
              }),
              HasSubstr("windows"));
  EXPECT_THAT(message([](ModelConfig* config, TenFields*) { config->hidden_size = 0; }),
              HasSubstr("hidden_size"));
}

TEST(TenBodyTest, BidirectionalAttentionIsRefused) {
  const auto body = MakeTen(TenKinds()[0].fields);
  ModelInput input = RandomInput(body->config(), {5});
  input.mask = AttentionMask::kBidirectional;
  EXPECT_EQ(test::CodeOf([&] { body->Forward(input, Keep::kNothing); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace trainwright

// What every optimizer of this library promises: the steps of its published implementation, whatever decides
// them and however the ranges of an update are cut.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/gemm_operations.h"
#include "lib/base/host_timeline.h"
#include "lib/base/profile_scope.h"
#include "lib/base/rng.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/optim/adamw_8bit.h"
#include "lib/optim/muon.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/spec/built_in_optimizers.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr char kGate[] = "model.layers.0.mlp.gate_proj.weight";

/// Matrices that are tall, wide and square, two of them of one shape, vectors, an embedding and a head, of
/// sizes that need padding.
/// \param large with a matrix of more than 4096 elements, which is the first
/// \param rate of the norm and a matrix
std::unique_ptr<FlatParameters> MakeParameters(bool large, double rate = 1) {
  auto parameters = std::make_unique<FlatParameters>();
  if (large) parameters->Add(kGate, {83, 50}, true);
  parameters->Add("model.embed_tokens.weight", {12, 8}, true);
  parameters->StartSegment();
  parameters->Add("model.layers.0.input_layernorm.weight", {16}, false, rate);
  parameters->Add("model.layers.0.self_attn.q_proj.weight", {16, 16}, true);
  parameters->Add("model.layers.0.self_attn.o_proj.weight", {16, 16}, true);
  parameters->Add("model.layers.0.mlp.up_proj.weight", {40, 16}, true);
  parameters->Add("model.layers.0.mlp.down_proj.weight", {16, 40}, true, rate);
  parameters->StartSegment();
  parameters->Add("lm_head.weight", {12, 16}, true);
  parameters->Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  return parameters;
}

/// make_optimizer_fixtures.py's: a multiple of 2^-16 in [-1/2, 1/2) for each element and step.
float ShareOf(int64_t element, uint32_t step) {
  uint32_t x = static_cast<uint32_t>(element) * 2654435761u + step * 2246822519u + 374761393u;
  x = (x ^ x >> 15) * 2246822519u;
  x = (x ^ x >> 13) * 3266489917u;
  return static_cast<float>(x >> 16) / 65536 - 0.5f;
}

/// Calls fill(number of the element without padding) for each element of a buffer.
template <typename Fill>
void FillByElement(const FlatParameters& parameters, at::Tensor& buffer, const Fill& fill) {
  auto* values = buffer.mutable_data_ptr<float>();
  int64_t number = 0;
  for (const Parameter& parameter : parameters.all()) {
    for (int64_t i = 0; i < parameter.size; ++i) values[parameter.offset + i] = fill(number++);
  }
}

void SetWeights(FlatParameters* parameters) {
  FillByElement(*parameters, parameters->values(), [](int64_t i) { return ShareOf(i, 0); });
  parameters->RefreshCompute();
}

void SetGradients(FlatParameters* parameters, uint32_t step, float factor = 1) {
  FillByElement(*parameters, parameters->gradients(),
                [&](int64_t i) { return factor * (ShareOf(i, 1000) + ShareOf(i, step)); });
}

OptimizerOptions DefaultsOf(const std::string& name) {
  return BuiltInOptimizers().Find(name).description.defaults;
}

std::unique_ptr<Optimizer> Make(FlatParameters* parameters, const OptimizerOptions& options) {
  return MakeOptimizer(BuiltInOptimizers(), parameters, options, test::TestSeed());
}

nlohmann::json Fixture() {
  std::ifstream file(std::string(TRAINWRIGHT_SOURCE_DIR) + "/tests/optim/fixtures/optimizers.json");
  return nlohmann::json::parse(file);
}

OptimizerOptions OptionsOf(const nlohmann::json& fixture) {
  OptimizerOptions options = DefaultsOf(fixture.at("optimizer"));
  const nlohmann::json& said = fixture.at("options");
  options.beta1 = said.value("beta1", options.beta1);
  options.beta2 = said.value("beta2", options.beta2);
  options.weight_decay = said.value("weight_decay", options.weight_decay);
  for (const auto& [name, value] : fixture.at("own").items()) options.own[name] = value.get<double>();
  return options;
}

/// The largest deviation from the published weights, over a learning rate at its peak.
double DeviationFrom(const nlohmann::json& fixture, int64_t steps) {
  const auto parameters = MakeParameters(fixture.at("values").contains(kGate));
  SetWeights(parameters.get());
  const OptimizerOptions options = OptionsOf(fixture);
  const auto optimizer = Make(parameters.get(), options);
  const double peak = fixture.at("peak");
  for (int64_t step = 1; step <= steps; ++step) {
    SetGradients(parameters.get(), static_cast<uint32_t>(step));
    optimizer->Step(peak * static_cast<double>(1 + step % 5) / 4, options.beta1);
  }
  double deviation = 0;
  for (const Parameter& parameter : parameters->all()) {
    const nlohmann::json& expected = fixture.at("values").at(parameter.name);
    const int64_t stride = std::max<int64_t>(1, parameter.size / 64);
    for (size_t i = 0; i < expected.size(); ++i) {
      const double value =
          static_cast<double>(parameter.value.flatten()[static_cast<int64_t>(i) * stride].item<float>());
      deviation = std::max(deviation, std::fabs(value - expected[i].get<double>()));
    }
  }
  return deviation / peak;
}

/// Of all cases of an optimizer; each must be there as often as `count` says.
void ExpectPublished(const std::string& name, double tolerance, int count, bool as_published = true) {
  const nlohmann::json fixture = Fixture();
  int found = 0;
  for (const nlohmann::json& one : fixture.at("cases")) {
    if (one.at("optimizer") != name || one.value("published", true) != as_published) continue;
    EXPECT_LE(DeviationFrom(one, fixture.at("steps")), tolerance) << one.at("own");
    ++found;
  }
  EXPECT_EQ(found, count);
}

TEST(PublishedOptimizersTest, SgdTakesTheStepsOfPyTorchs) {
  ExpectPublished("sgd", 1e-4, 3);
}

TEST(PublishedOptimizersTest, LionTakesTheStepsOfLionPytorch) {
  ExpectPublished("lion", 1e-3, 2);
}

TEST(PublishedOptimizersTest, MuonTakesTheStepsOfPyTorchsWithItsIterationInDouble) {
  ExpectPublished("muon", 2e-3, 2, /*as_published=*/false);
}

// bf16 has 8 bits, and the iteration makes all singular values about as large, small ones among them.
TEST(PublishedOptimizersTest, MuonIsPyTorchsUpToTheRoundingOfItsIterationToBf16) {
  ExpectPublished("muon", 2.5, 2);
}

TEST(PublishedOptimizersTest, AdamW8BitTakesTheStepsOfBitsandbytes) {
  ExpectPublished("adamw8bit", 0.05, 1);
}

TEST(DynamicMapTest, IsBitsandbytesBitForBit) {
  const nlohmann::json fixture = Fixture();
  for (const bool is_signed : {false, true}) {
    const at::Tensor map = DynamicMap(is_signed);
    const nlohmann::json& expected = fixture.at(is_signed ? "signed_map" : "unsigned_map");
    ASSERT_EQ(expected.size(), static_cast<size_t>(map.numel()));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(map[static_cast<int64_t>(i)].item<float>(), expected[i].get<float>()) << i;
    }
  }
}

TEST(NewtonSchulzTest, BringsSingularValuesNearOneAndKeepsDirections) {
  const Rng rng(test::TestSeed(), "matrix");
  at::Tensor x_nab = at::full({3, 16, 40}, 0.0);
  rng.FillNormal(0, 3 * 16 * 40, 1.0, x_nab.mutable_data_ptr<float>());
  const at::Tensor before_nab = x_nab.to(at::kDouble), after_nab = NewtonSchulz(x_nab, 5).to(at::kDouble);
  const at::Tensor gram_naa = after_nab.matmul(after_nab.transpose(1, 2));
  for (int64_t i = 0; i < 3; ++i) {
    // The eigenvalues of X X^T lie between 0.7^2 and 1.2^2; its trace is their sum.
    EXPECT_NEAR(gram_naa[i].trace().item<double>() / 16, 0.9, 0.3);
    // X^T of the result times X is symmetric, where X = U S V^T and the result is U f(S) V^T.
    const at::Tensor product = after_nab[i].matmul(before_nab[i].t());
    EXPECT_LT(product.sub(product.t()).abs().max().item<double>(), 1e-4 * product.abs().max().item<double>());
  }
}

TEST(NewtonSchulzTest, AProfileCountsTheOperationsOfItsProductsAsThoseOfGemms) {
  const at::Tensor x_nab = at::full({3, 16, 40}, 0.25);
  HostTimeline timeline;
  {
    const ProfiledThread profiled(&timeline);
    NewtonSchulz(x_nab, 2);
  }
  const auto product = [](int64_t m, int64_t k, int64_t n) { return 2 * m * k * n; };
  const int64_t of_a_step = product(16, 40, 16) + product(16, 16, 16) + product(16, 16, 40);
  EXPECT_EQ(GemmOperations(timeline), 3 * 2 * of_a_step);
}

class OptimizersTest : public ::testing::TestWithParam<std::string> {
 protected:
  OptimizersTest() : options_(DefaultsOf(GetParam())) {}
  std::unique_ptr<FlatParameters> NewParameters(double rate = 1) const {
    auto parameters = MakeParameters(/*large=*/true, rate);
    SetWeights(parameters.get());
    return parameters;
  }
  /// Weights and states after some steps.
  struct Result {
    at::Tensor weights;
    std::vector<at::Tensor> states;
  };
  static Result ResultOf(FlatParameters* parameters, const Optimizer& optimizer) {
    Result result{parameters->values().clone(), {}};
    for (const OptimizerState& state : optimizer.States()) result.states.push_back(state.value.clone());
    return result;
  }
  static void ExpectEqual(const Result& result, const Result& expected) {
    EXPECT_TRUE(at::equal(result.weights, expected.weights));
    ASSERT_EQ(result.states.size(), expected.states.size());
    for (size_t i = 0; i < result.states.size(); ++i) {
      EXPECT_TRUE(at::equal(result.states[i], expected.states[i])) << i;
    }
  }
  Result AfterHostSteps(int steps, double learning_rate, double rate = 1) const {
    const auto parameters = NewParameters(rate);
    const auto optimizer = Make(parameters.get(), options_);
    for (int step = 1; step <= steps; ++step) {
      SetGradients(parameters.get(), static_cast<uint32_t>(step));
      optimizer->Step(learning_rate, options_.beta1);
    }
    return ResultOf(parameters.get(), *optimizer);
  }
  static DeviceInputs Inputs(double step, double learning_rate, double divisor, bool found_inf) {
    return {.divisor = at::full({}, divisor, at::kFloat),
            .found_inf = at::full({}, found_inf ? 1 : 0, at::kFloat),
            .step = at::full({}, step, at::kFloat),
            .learning_rate = at::full({}, learning_rate, at::kDouble)};
  }

  OptimizerOptions options_;
};
INSTANTIATE_TEST_SUITE_P(BuiltIn, OptimizersTest,
                         ::testing::Values("adamw", "sgd", "lion", "muon", "adamw8bit"),
                         [](const auto& info) { return info.param; });

TEST_P(OptimizersTest, AStepThatTheDeviceDecidesIsThatOfTheHost) {
  constexpr double kLearningRate = 0x1p-7, kDivisor = 4;  // exact in fp32
  const auto parameters = NewParameters(0.5);
  const auto optimizer = Make(parameters.get(), options_);
  for (int step = 1; step <= 3; ++step) {
    SetGradients(parameters.get(), static_cast<uint32_t>(step), kDivisor);
    // What the host says of the rate counts no more.
    optimizer->StepOnDevice(/*learning_rate=*/1e3, options_.beta1,
                            Inputs(step, kLearningRate, kDivisor, /*found_inf=*/false));
  }
  ExpectEqual(ResultOf(parameters.get(), *optimizer), AfterHostSteps(3, kLearningRate, 0.5));
}

TEST_P(OptimizersTest, AStepThatIsNotFiniteChangesNothing) {
  const auto parameters = NewParameters();
  const auto optimizer = Make(parameters.get(), options_);
  SetGradients(parameters.get(), 1);
  optimizer->StepOnDevice(0, options_.beta1, Inputs(1, 1e-3, 1, /*found_inf=*/false));
  const Result before = ResultOf(parameters.get(), *optimizer);
  SetGradients(parameters.get(), 2, std::numeric_limits<float>::infinity());
  parameters->gradients().narrow(0, 0, 20).fill_(std::nan(""));
  optimizer->StepOnDevice(0, options_.beta1, Inputs(1, 1e-3, 1, /*found_inf=*/true));
  ExpectEqual(ResultOf(parameters.get(), *optimizer), before);
}

TEST_P(OptimizersTest, CutsBetweenSegmentsChangeNoBit) {
  const auto parameters = NewParameters();
  const auto optimizer = Make(parameters.get(), options_);
  std::vector<int64_t> cuts;
  size_t segment = 0;
  for (const Parameter& parameter : parameters->all()) {
    if (parameter.segment != segment) cuts.push_back(parameter.offset);
    segment = parameter.segment;
  }
  ASSERT_EQ(cuts.size(), 2u);
  cuts.push_back(parameters->elements());
  for (int step = 1; step <= 3; ++step) {
    SetGradients(parameters.get(), static_cast<uint32_t>(step));
    const OptimizerUpdate update = {.learning_rate = 1e-2,
                                    .momentum = options_.beta1,
                                    .inputs = {.step = at::full({}, step, at::kFloat)}};
    int64_t begin = 0;
    for (const int64_t end : cuts) {
      at::Tensor part = parameters->gradients().narrow(0, begin, end - begin).clone();
      optimizer->Step({begin, end - begin}, part, update);
      begin = end;
    }
  }
  ExpectEqual(ResultOf(parameters.get(), *optimizer), AfterHostSteps(3, 1e-2));
}

TEST_P(OptimizersTest, AParametersRateMultipliesItsLearningRateAlone) {
  constexpr double kLearningRate = 0x1p-7;
  const at::Tensor mixed = AfterHostSteps(3, kLearningRate, 0.5).weights,
                   whole = AfterHostSteps(3, kLearningRate).weights,
                   slow = AfterHostSteps(3, kLearningRate / 2).weights;
  const auto parameters = NewParameters(0.5);
  for (const Parameter& parameter : parameters->all()) {
    const auto of = [&](const at::Tensor& weights) {
      return weights.narrow(0, parameter.offset, parameter.size);
    };
    EXPECT_TRUE(at::equal(of(mixed), of(parameter.rate == 1 ? whole : slow))) << parameter.name;
  }
}

// Without a gradient decay is all that a step does, of matrices alone.
TEST_P(OptimizersTest, DecayIsOfMatricesAlone) {
  options_.weight_decay = 0.25;
  const auto parameters = NewParameters();
  const auto optimizer = Make(parameters.get(), options_);
  const at::Tensor before = parameters->values().clone();
  parameters->ZeroGradients();
  optimizer->Step(1e-2, options_.beta1);
  for (const Parameter& parameter : parameters->all()) {
    const double decay = parameter.decay ? 0.25 * 1e-2 : 0;
    const at::Tensor expected =
        before.narrow(0, parameter.offset, parameter.size).to(at::kDouble).mul(1 - decay);
    EXPECT_LE(parameter.value.flatten().to(at::kDouble).sub(expected).abs().max().item<double>(), 1e-7)
        << parameter.name;
  }
}

TEST_P(OptimizersTest, ADescriptionsBytesAreThoseOfTheStates) {
  const auto parameters = NewParameters();
  const auto optimizer = Make(parameters.get(), options_);
  TrainedSizes sizes = {.elements = parameters->elements(), .segments = 3};
  for (const Parameter& parameter : parameters->all()) {
    const bool of_layer = parameter.name.find(".layers.") != std::string::npos;
    sizes.parameters.push_back(parameter.size);
    if (of_layer && parameter.shape.size() == 2) sizes.matrix_elements += (parameter.size + 15) / 16 * 16;
  }
  EXPECT_EQ(BuiltInOptimizers().Find(GetParam()).description.state_bytes(options_, sizes),
            optimizer->state_bytes());
}

TEST_P(OptimizersTest, RestoredStatesContinueBitForBit) {
  const auto parameters = NewParameters(), resumed = NewParameters();
  const auto first = Make(parameters.get(), options_), second = Make(resumed.get(), options_);
  for (uint32_t step = 1; step <= 3; ++step) {
    SetGradients(parameters.get(), step);
    first->Step(1e-2, options_.beta1);
  }
  resumed->values().copy_(parameters->values());
  for (size_t i = 0; i < first->States().size(); ++i) {
    second->States()[i].value.copy_(first->States()[i].value);
  }
  second->set_steps(3);
  for (const auto& [own, optimizer] :
       {std::pair(parameters.get(), first.get()), {resumed.get(), second.get()}}) {
    SetGradients(own, 4);
    optimizer->Step(1e-2, options_.beta1);
  }
  ExpectEqual(ResultOf(resumed.get(), *second), ResultOf(parameters.get(), *first));
}

/// Those whose states can be divided among ranks.
class ShardableOptimizersTest : public OptimizersTest {};
INSTANTIATE_TEST_SUITE_P(BuiltIn, ShardableOptimizersTest, ::testing::Values("adamw", "sgd", "lion"),
                         [](const auto& info) { return info.param; });

/// Larger than a block of a shard.
std::unique_ptr<FlatParameters> TwoBlocks() {
  auto parameters = std::make_unique<FlatParameters>();
  parameters->Add("matrix", {300, 256}, true);
  parameters->Add("norm", {48}, false);
  parameters->Add("slow matrix", {16, 48}, true, 0.5);
  parameters->Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  SetWeights(parameters.get());
  return parameters;
}

TEST_P(ShardableOptimizersTest, ShardsTakeTheStepsOfTheWhole) {
  EXPECT_TRUE(BuiltInOptimizers().Find(GetParam()).description.shardable);
  const auto take_steps = [&](FlatParameters* parameters) {
    const auto optimizer = Make(parameters, options_);
    for (uint32_t step = 1; step <= 3; ++step) {
      SetGradients(parameters, step);
      optimizer->Step(1e-2, options_.beta1);
    }
  };
  const auto whole = TwoBlocks();
  take_steps(whole.get());
  for (const int64_t rank : {0, 1}) {
    const auto sharded = TwoBlocks();
    const ShardLayout layout(sharded->values().numel(), rank, 2);
    sharded->Shard(layout, /*gives_gradients_away=*/false);
    take_steps(sharded.get());
    ASSERT_GT(layout.size(), 0);
    layout.ForEachPiece([&](const ShardLayout::Piece& piece) {
      EXPECT_TRUE(at::equal(sharded->values().narrow(0, piece.begin, piece.size),
                            whole->values().narrow(0, piece.begin, piece.size)))
          << "rank " << rank;
    });
  }
}

TEST(OptimizerOptionsTest, AnOwnOptionOutOfItsRangeIsRefusedByName) {
  const auto parameters = MakeParameters(/*large=*/false);
  const auto message = [&](const std::string& name, const std::string& option, double value) {
    OptimizerOptions options = DefaultsOf(name);
    options.own[option] = value;
    return test::MessageOf([&] { Make(parameters.get(), options); });
  };
  EXPECT_NE(message("sgd", "nesterov", 2).find("nesterov"), std::string::npos);
  EXPECT_NE(message("muon", "ns_steps", 2.5).find("ns_steps"), std::string::npos);
  EXPECT_NE(message("muon", "momentum", 1).find("momentum"), std::string::npos);
}

TEST(MuonTest, KeepsSecondMomentsOfTheOtherParametersAlone) {
  const auto parameters = MakeParameters(/*large=*/false);
  const auto optimizer = Make(parameters.get(), DefaultsOf("muon"));
  const std::vector<OptimizerState> states = optimizer->States();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].value.numel(), parameters->elements());
  EXPECT_EQ(states[1].value.numel(), 12 * 8 + 16 + 12 * 16);
}

TEST(MuonTest, TakesMatricesThatGemmsReadThoughTheyCanHaveNoAdapter) {
  FlatParameters parameters;
  const size_t projection = parameters.Add("ten.layers.0.multi_scale.1.in_proj.weight", {16, 32}, true),
               convolution = parameters.Add("ten.layers.0.cell.conv.weight", {16, 4}, true);
  parameters[projection].adaptable = parameters[convolution].adaptable = false;
  parameters[projection].of_products = true;
  parameters.Allocate({Precision::kFp32, at::kFloat}, at::Device(at::kCPU));
  const auto optimizer = Make(&parameters, DefaultsOf("muon"));
  EXPECT_EQ(optimizer->States()[1].value.numel(), 16 * 4) << "AdamW's: the convolution alone";
}

TEST(AdamW8BitTest, KeepsMomentsOfSmallParametersInFp32) {
  const auto parameters = MakeParameters(/*large=*/true);
  const auto optimizer = Make(parameters.get(), DefaultsOf("adamw8bit"));
  int64_t large = 0, others = 0;
  for (const OptimizerState& state : optimizer->States()) {
    if (state.name == "exp_avg") large = state.value.numel();
    if (state.name == "small_exp_avg") others = state.value.numel();
  }
  EXPECT_EQ(large, (83 * 50 + 255) / 256 * 256);
  EXPECT_EQ(others, 12 * 8 + 16 + 2 * 16 * 16 + 2 * 40 * 16 + 12 * 16);
}

}  // namespace
}  // namespace trainwright

// The loss and gradients of a whole model of each family on every device and in every precision against
// the CPU's in fp32, which tests/model checks. Without a GPU that can be used the cuda instances are skipped:
// NOT RUN.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "lib/base/rng.h"
#include "lib/device/cuda_backend.h"
#include "lib/model/language_model.h"
#include "tests/model/families.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/support/print_precision.h"
#include "tests/support/relative_difference.h"
#include "tests/support/support.h"
#include "tests/support/tested_device.h"

namespace trainwright {
namespace {

/// A family, and a model of it.
struct Family {
  std::string name;
  ModelConfig config;
};

void PrintTo(const Family& family, std::ostream* out) {
  *out << family.name;
}

ModelConfig Sized(ModelConfig config) {
  config.vocab_size = 211;
  config.hidden_size = 96;
  config.intermediate_size = 200;
  config.num_layers = 3;
  if (config.num_heads > 0) {
    config.num_heads = 3;
    config.num_kv_heads = config.num_kv_heads == 6 ? 3 : 1;
    config.head_dim = 32;
  }
  return config;
}

std::vector<Family> AllFamilies() {
  std::vector<Family> families = {{"llama", Sized(test::SmallLlama())},
                                  {"llama_biased", Sized(test::SmallBiasedLlama())},
                                  {"mistral", Sized(test::SmallMistral())},
                                  {"qwen2", Sized(test::SmallQwen2())},
                                  {"gpt2", Sized(test::SmallGpt2())},
                                  {"gpt2_without_biases", Sized(test::SmallGpt2(/*bias=*/false))},
                                  {"neox", Sized(test::SmallNeox())},
                                  {"neox_sequential", Sized(test::SmallNeox(/*parallel=*/false))}};
  for (const test::TenKind& kind : test::TenKinds()) {
    families.push_back({"ten_" + kind.name, Sized(test::TenOf(kind.fields))});
  }
  return families;
}

constexpr uint64_t kSeed = 5;

/// Three documents of random tokens, each labelled by its next token.
ModelInput PackedDocuments(int64_t vocab_size) {
  const std::vector<int32_t> spans = {0, 70, 75, 240};
  const auto numbers = [&] { return at::empty({spans.back()}, at::kLong); };
  ModelInput input{{.tokens_n = numbers(), .positions_n = numbers(), .span_starts = spans}, numbers()};
  const Rng rng(test::TestSeed(), "tokens");
  const auto token = [&](int64_t i) {
    return static_cast<int64_t>(rng.Bits(static_cast<uint64_t>(i)) % static_cast<uint64_t>(vocab_size));
  };
  for (size_t s = 0; s + 1 < spans.size(); ++s) {
    for (int64_t i = spans[s]; i < spans[s + 1]; ++i) {
      input.tokens_n.mutable_data_ptr<int64_t>()[i] = token(i);
      input.positions_n.mutable_data_ptr<int64_t>()[i] = i - spans[s];
      input.labels_n.mutable_data_ptr<int64_t>()[i] = i + 1 < spans[s + 1] ? token(i + 1) : -100;
    }
  }
  return input;
}

struct Computed {
  double loss_nats;
  at::Tensor gradients;  ///< of the mean loss, fp32 on the host
};

Computed Compute(const ModelConfig& config, at::Device device, Precision precision) {
  const auto model = MakeModel(test::Families(), config, precision, device, kSeed);
  model->parameters().ZeroGradients();
  const ModelInput input = PackedDocuments(config.vocab_size);
  const LossSum sum = model->LossAndGradients(input, 1.0 / 237);
  const double loss = sum.on_device.defined() ? sum.on_device.cpu()[0].item<double>() : sum.loss_nats;
  EXPECT_EQ(sum.num_labels, 237);
  return {loss, model->parameters().gradients().cpu()};
}

using Computation = std::tuple<at::DeviceType, Precision>;

class DeviceParityTest : public testing::TestWithParam<std::tuple<Family, Computation>> {};

TEST_P(DeviceParityTest, LossAndGradientsAreTheCpusWithinThePrecision) {
  const auto& [family, computation] = GetParam();
  const auto& [device, precision] = computation;
  if (device == at::kCUDA && ProcessCudaBackend().plugin == nullptr) {
    GTEST_SKIP() << "NOT RUN: " << ProcessCudaBackend().problem;
  }
  const Computed expected = Compute(family.config, at::Device(at::kCPU), Precision::kFp32);
  const Computed computed = Compute(family.config, at::Device(device), precision);
  const bool is_fp32 = precision == Precision::kFp32;
  EXPECT_NEAR(computed.loss_nats, expected.loss_nats, (is_fp32 ? 1e-5 : 1e-3) * expected.loss_nats);
  EXPECT_LT(test::RelativeDifference(computed.gradients, expected.gradients), is_fp32 ? 1e-4 : 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceParityTest,
                         testing::Combine(testing::ValuesIn(AllFamilies()),
                                          testing::Values(Computation(at::kCPU, Precision::kBf16),
                                                          Computation(at::kCPU, Precision::kFp16),
                                                          Computation(test::kTestedDevice, Precision::kFp32),
                                                          Computation(test::kTestedDevice, Precision::kBf16),
                                                          Computation(test::kTestedDevice,
                                                                      Precision::kFp16))),
                         [](const auto& info) {
                           const Computation& computation = std::get<1>(info.param);
                           return std::get<0>(info.param).name + "_" +
                                  test::NameOfDevice(std::get<0>(computation)) + "_" +
                                  PrecisionName(std::get<1>(computation));
                         });

}  // namespace
}  // namespace trainwright

// A whole model's loss and gradients on every device and in every precision against the CPU's in fp32, which
// tests/model checks. Without a GPU that can be used the cuda instances are skipped: NOT RUN.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "lib/base/rng.h"
#include "lib/device/cuda_backend.h"
#include "lib/model/language_model.h"
#include "lib/spec/llama_family.h"
#include "tests/model/families.h"
#include "tests/support/print_precision.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

const ModelConfig kConfig = {.family = &LlamaFamily(),
                             .vocab_size = 211,
                             .hidden_size = 96,
                             .intermediate_size = 200,
                             .num_layers = 3,
                             .num_heads = 4,
                             .num_kv_heads = 2,
                             .head_dim = 32,
                             .max_positions = 256};
constexpr uint64_t kSeed = 5;

/// Three documents of random tokens, each labelled by its next token.
ModelInput PackedDocuments() {
  const std::vector<int32_t> spans = {0, 70, 75, 240};
  const auto numbers = [&] { return at::empty({spans.back()}, at::kLong); };
  ModelInput input{{.tokens_n = numbers(), .positions_n = numbers(), .span_starts = spans}, numbers()};
  const Rng rng(test::TestSeed(), "tokens");
  const auto token = [&](int64_t i) {
    return static_cast<int64_t>(rng.Bits(static_cast<uint64_t>(i)) %
                                static_cast<uint64_t>(kConfig.vocab_size));
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

Computed Compute(at::Device device, Precision precision) {
  const auto model = MakeModel(test::Families(), kConfig, precision, device, kSeed);
  model->parameters().ZeroGradients();
  const ModelInput input = PackedDocuments();
  const LossSum sum = model->LossAndGradients(input, 1.0 / 237);
  const double loss = sum.on_device.defined() ? sum.on_device.cpu()[0].item<double>() : sum.loss_nats;
  EXPECT_EQ(sum.num_labels, 237);
  return {loss, model->parameters().gradients().cpu()};
}

double RelativeDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).norm().item<double>() / b.norm().item<double>();
}

class DeviceParityTest : public testing::TestWithParam<std::tuple<at::DeviceType, Precision>> {};

TEST_P(DeviceParityTest, LossAndGradientsAreTheCpusWithinThePrecision) {
  const auto& [device, precision] = GetParam();
  if (device == at::kCUDA && ProcessCudaBackend().plugin == nullptr) {
    GTEST_SKIP() << "NOT RUN: " << ProcessCudaBackend().problem;
  }
  const Computed expected = Compute(at::Device(at::kCPU), Precision::kFp32);
  const Computed computed = Compute(at::Device(device), precision);
  const bool is_fp32 = precision == Precision::kFp32;
  EXPECT_NEAR(computed.loss_nats, expected.loss_nats, (is_fp32 ? 1e-5 : 1e-3) * expected.loss_nats);
  EXPECT_LT(RelativeDifference(computed.gradients, expected.gradients), is_fp32 ? 1e-4 : 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceParityTest,
                         testing::Values(std::tuple(at::kCPU, Precision::kBf16),
                                         std::tuple(at::kCPU, Precision::kFp16),
                                         std::tuple(at::kCUDA, Precision::kFp32),
                                         std::tuple(at::kCUDA, Precision::kBf16),
                                         std::tuple(at::kCUDA, Precision::kFp16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) == at::kCPU ? "cpu_" : "cuda_") +
                                  PrecisionName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace trainwright

// Generation on the device that refuses the host: its tokens are the CPU's, and a token costs one copy.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/eval/generate.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::CountsOfDevice;
using test::kCpu;
using test::kRefusingDevice;
using test::NamedModel;

const std::vector<std::vector<uint32_t>> kPrompts = {{1, 2, 3, 4, 5}, {7}, {9, 3, 16, 0, 2, 2, 8}};

/// Greedy continuations of the prompts, by their number.
std::vector<std::vector<uint32_t>> Continue(LanguageModel* model, int64_t tokens,
                                            bool batch_invariant = false) {
  std::vector<std::vector<uint32_t>> samples(kPrompts.size());
  uint64_t next = 0;
  const GenerationOptions options = {.max_tokens = tokens, .batch = 2, .batch_invariant = batch_invariant};
  Generate(
      model, options,
      [&](TokenizedPrompt* prompt) {
        if (next == kPrompts.size()) return false;
        *prompt = {next, kPrompts[next]};
        ++next;
        return true;
      },
      {}, [&](Generation&& sample) { samples[sample.prompt] = std::move(sample.ids); });
  return samples;
}

/// Weights so large that predictions differ by context, far beyond rounding.
std::unique_ptr<LanguageModel> SureModel(const ModelConfig& config, at::Device device) {
  auto model = MakeModel(test::Families(), config, Precision::kFp32, device, 11);
  for (const Parameter& parameter : model->parameters().all()) {
    at::Tensor value = parameter.value;
    if (parameter.decay) value.mul_(8);
  }
  model->parameters().RefreshCompute();
  return model;
}

/// Those of SureModel, quantised.
std::unique_ptr<LanguageModel> SureQuantisedModel(const ModelConfig& config, at::Device device,
                                                  WeightFormat format) {
  const auto stored = SureModel(config, kCpu);
  auto model = MakeModel(test::Families(), config, Precision::kFp32, device, std::nullopt, {},
                         {.frozen_format = format});
  for (size_t i = 0; i < stored->parameters().all().size(); ++i) {
    model->parameters().Assign(i, stored->parameters().all()[i].value);
  }
  model->parameters().RefreshCompute();
  return model;
}

TEST(DeviceGenerationTest, GreedyTokensAreTheCpus) {
  for (const NamedModel& named : test::DeviceModels()) {
    const auto here = SureModel(named.config, kCpu), there = SureModel(named.config, kRefusingDevice);
    EXPECT_EQ(Continue(there.get(), 20), Continue(here.get(), 20)) << named.name;
  }
}

TEST(DeviceGenerationTest, TokensThatDoNotDependOnTheBatchAreTheCpus) {
  const ModelConfig config = test::DeviceModels()[0].config;
  const auto here = SureModel(config, kCpu), there = SureModel(config, kRefusingDevice);
  EXPECT_EQ(Continue(there.get(), 20, true), Continue(here.get(), 20, true));
}

TEST(DeviceGenerationTest, GreedyTokensOfQuantisedWeightsAreTheCpus) {
  for (const NamedModel& named : test::DeviceModels()) {
    for (const WeightFormat format : {WeightFormat::kNf4, WeightFormat::kInt8}) {
      const auto here = SureQuantisedModel(named.config, kCpu, format),
                 there = SureQuantisedModel(named.config, kRefusingDevice, format);
      EXPECT_EQ(Continue(there.get(), 20), Continue(here.get(), 20))
          << named.name << ", " << WeightFormatName(format);
    }
  }
}

TEST(DeviceGenerationTest, ATokenOfAllSequencesWaitsOnce) {
  for (const NamedModel& named : test::DeviceModels()) {
    for (const WeightFormat format : {WeightFormat::kPlain, WeightFormat::kNf4, WeightFormat::kInt8}) {
      const auto model = format == WeightFormat::kPlain
                             ? SureModel(named.config, kRefusingDevice)
                             : SureQuantisedModel(named.config, kRefusingDevice, format);
      const std::unique_ptr<Decoder> decoder = model->NewDecoder(32, 2);
      const std::vector<Continuation> next = {{0, {1, 2, 3}}, {1, {4}}};
      decoder->AppendToEach(next).cpu();
      test::ResetDeviceCounts();
      decoder->AppendToEach({{0, {5}}, {1, {6}}}).cpu();
      EXPECT_EQ(CountsOfDevice().waits, (std::map<std::string, int64_t>{{"a copy to the host", 1}}))
          << named.name << ", " << WeightFormatName(format);
    }
  }
}

}  // namespace
}  // namespace trainwright

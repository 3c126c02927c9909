// Gradients that wait outside memory: the same bits in every family, in the memory of one layer.
#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/error.h"
#include "lib/spec/offload_choice.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::LivelyModel;
using test::RandomInput;

struct OffloadedCase {
  std::string name;
  ModelConfig config;
};

void PrintTo(const OffloadedCase& family, std::ostream* out) {
  *out << family.name;
}

ModelConfig WithHead(ModelConfig config, bool tied) {
  config.tie_embeddings = tied;
  return config;
}

/// On one thread: more gain nothing on tensors this small.
class OffloadedModelTest : public testing::TestWithParam<OffloadedCase> {
 protected:
  OffloadedModelTest() { at::set_num_threads(1); }
  ~OffloadedModelTest() override { at::set_num_threads(threads_); }

  const test::TemporaryFolder folder_;

 private:
  const int threads_ = at::get_num_threads();
};

INSTANTIATE_TEST_SUITE_P(Families, OffloadedModelTest,
                         testing::Values(OffloadedCase{"llama", WithHead(test::SmallLlama(), false)},
                                         OffloadedCase{"llama_tied", WithHead(test::SmallLlama(), true)},
                                         OffloadedCase{"qwen2", test::SmallQwen2()},
                                         OffloadedCase{"gpt2", test::SmallGpt2()},
                                         OffloadedCase{"neox", test::SmallNeox()}),
                         [](const auto& info) { return info.param.name; });

at::Tensor AllGradients(LanguageModel* model) {
  std::vector<at::Tensor> parts;
  model->parameters().ForEachGradientPart(
      [&](int64_t, const at::Tensor& part) { parts.push_back(part.clone()); });
  return at::cat(parts);
}

TEST_P(OffloadedModelTest, GradientsOfSeveralMicroBatchesAreThoseKeptInMemoryBitForBit) {
  const ModelConfig& config = GetParam().config;
  const ModelInput first = RandomInput(config, {30, 1, 20}), second = RandomInput(config, {14, 3}, 1);
  for (const Numerics& numerics :
       {Numerics{Precision::kFp32, at::kFloat}, Numerics{Precision::kBf16, at::kBFloat16}}) {
    const auto run = [&](const OffloadChoice& choice) {
      const auto model = LivelyModel(config, numerics);
      model->Offload(choice, folder_.path());
      at::Tensor gradients;
      for (int step = 0; step < 2; ++step) {  // the second begins from zero again
        model->parameters().ZeroGradients();
        model->LossAndGradients(first, 0.5);
        model->LossAndGradients(second, 0.25);
        gradients = AllGradients(model.get());
      }
      return gradients;
    };
    const at::Tensor kept = run({});
    EXPECT_GT(kept.abs().max().item<double>(), 0);
    EXPECT_TRUE(at::equal(run({.gradients = true}), kept)) << PrecisionName(numerics.precision);
    EXPECT_TRUE(at::equal(run({.activations = true, .gradients = true}), kept));
  }
}

TEST_P(OffloadedModelTest, TheMemoryIsThatOfTheEmbeddingsTheHeadOrALayer) {
  const auto model = LivelyModel(GetParam().config, test::kFp32Numerics);
  // By names alone: what has a number belongs to that layer, what has none to the input or the output.
  std::map<std::string, int64_t> elements;
  for (const Parameter& parameter : model->parameters().all()) {
    const size_t digit = parameter.name.find_first_of("0123456789", parameter.name.find('.'));
    const bool of_input = parameter.name.find("embed_tokens") != std::string::npos ||
                          parameter.name.find("wte") != std::string::npos ||
                          parameter.name.find("wpe") != std::string::npos ||
                          parameter.name.find("embed_in") != std::string::npos;
    const std::string part =
        parameter.name.find("layers.") != std::string::npos || parameter.name.find(".h.") != std::string::npos
            ? parameter.name.substr(0, digit + 1)
        : of_input ? "input"
                   : "output";
    elements[part] += (parameter.size + 15) / 16 * 16;
  }
  int64_t largest = 0;
  for (const auto& [part, size] : elements) largest = std::max(largest, size);
  model->Offload({.gradients = true}, folder_.path());
  EXPECT_EQ(model->parameters().gradient_buffer().memory_bytes(), 4 * largest);
}

TEST(OffloadChoiceTest, AnUnknownChoiceIsRefusedByName) {
  try {
    ParseOffloadChoice("weights", "--offload");
    ADD_FAILURE() << "took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.object(), "--offload");
  }
}

}  // namespace
}  // namespace trainwright

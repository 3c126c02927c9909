// Models whose weights are kept quantised, against models with the dequantised weights in full precision.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/nn/linear/lora.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"

namespace trainwright {
namespace {

using test::kCpu;

struct Case {
  const char* name;
  ModelConfig config;
};

std::vector<Case> Cases() {
  ModelConfig wide = test::SmallLlama();  // depths that are whole blocks of NF4
  wide.hidden_size = 64;
  wide.intermediate_size = 128;
  return {
      {"llama", test::SmallLlama()},          {"llama_wide", wide},        {"mistral", test::SmallMistral()},
      {"qwen2", test::SmallQwen2()},          {"gpt2", test::SmallGpt2()}, {"neox", test::SmallNeox()},
      {"neox_serial", test::SmallNeox(false)}};
}

class QuantisedModelTest : public testing::TestWithParam<Case> {
 protected:
  /// The same weights in a format.
  static std::unique_ptr<LanguageModel> Quantised(const LanguageModel& model, WeightFormat format,
                                                  const std::optional<LoraOptions>& lora = {}) {
    auto quantised = std::make_unique<LanguageModel>(
        test::MakeBody(model.config(), model.parameters().numerics(), kCpu, std::nullopt,
                       {.lora = lora, .frozen_format = format}));
    for (size_t i = 0; i < quantised->parameters().all().size(); ++i) {
      const Parameter* stored = model.parameters().Find(quantised->parameters().all()[i].name);
      if (stored != nullptr) quantised->parameters().Assign(i, stored->value);
    }
    quantised->parameters().RefreshCompute();
    quantised->parameters().set_reads_quantized(true);
    return quantised;
  }
  /// Replaces weights by what they read as.
  static void TakeDequantised(const LanguageModel& quantised, LanguageModel* plain) {
    for (const Parameter& parameter : quantised.parameters().all()) {
      if (!parameter.quantized()) continue;
      at::Tensor read = at::empty(parameter.shape, at::kFloat);
      parameter.matrix->DequantizeRows(test::kFp32Numerics, 0, read);
      for (size_t i = 0; i < plain->parameters().all().size(); ++i) {
        if (plain->parameters().all()[i].name == parameter.name) plain->parameters().Assign(i, read);
      }
    }
    plain->parameters().RefreshCompute();
  }
  std::unique_ptr<LanguageModel> plain_ = test::LivelyModel(GetParam().config, test::kFp32Numerics);
  ModelInput input_ = test::RandomInput(GetParam().config, {20, 13});
};

TEST_P(QuantisedModelTest, LogitsAndLossAreThoseOfTheDequantisedWeights) {
  for (const WeightFormat format : {WeightFormat::kNf4, WeightFormat::kInt8}) {
    SCOPED_TRACE(WeightFormatName(format));
    const auto quantised = Quantised(*plain_, format);
    const at::Tensor before = plain_->Logits(input_);
    TakeDequantised(*quantised, plain_.get());
    const at::Tensor exact = plain_->Logits(input_);
    EXPECT_GT(test::RelativeDifference(before, exact), 1e-4);  // so that the weights were replaced
    EXPECT_LT(test::RelativeDifference(quantised->Logits(input_), exact), 1e-5);
    const double loss = plain_->Loss(input_).loss_nats;
    EXPECT_NEAR(quantised->Loss(input_).loss_nats, loss, 1e-5 * loss);
  }
}

TEST_P(QuantisedModelTest, DecodingGivesTheLogitsOfTheWholeSequence) {
  for (const WeightFormat format : {WeightFormat::kNf4, WeightFormat::kInt8}) {
    SCOPED_TRACE(WeightFormatName(format));
    const auto quantised = Quantised(*plain_, format);
    TakeDequantised(*quantised, plain_.get());
    const ModelInput document = test::Document(input_, 0);
    const at::Tensor logits = plain_->Logits(document);
    const auto decoder = quantised->NewDecoder(20);
    for (int64_t i = 0; i < 20; ++i) {
      const at::Tensor next = decoder->Append({document.tokens_n[i].item<int64_t>()});
      EXPECT_LT(test::RelativeDifference(next, logits[i]), 1e-5) << i;
    }
  }
}

TEST_P(QuantisedModelTest, MatricesOfLayersTakeTheBytesOfTheFormatAndNothingElse) {
  for (const WeightFormat format : {WeightFormat::kNf4, WeightFormat::kInt8}) {
    SCOPED_TRACE(WeightFormatName(format));
    const auto quantised = Quantised(*plain_, format);
    int64_t bytes = 0, elements = 0;
    for (const Parameter& parameter : quantised->parameters().all()) {
      const bool head = parameter.name == "lm_head.weight" || parameter.name == "embed_out.weight";
      const bool of_layer =
          parameter.shape.size() == 2 && parameter.name.find("layers.") != std::string::npos;
      const bool expected = of_layer ||
                            (parameter.shape.size() == 2 && parameter.name.starts_with("transformer.h.")) ||
                            (head && format == WeightFormat::kInt8);
      EXPECT_EQ(parameter.quantized(), expected) << parameter.name;
      if (!parameter.quantized()) continue;
      elements += parameter.size;
      bytes += parameter.matrix->bytes();
      EXPECT_FALSE(parameter.value.defined() || parameter.compute.defined()) << parameter.name;
    }
    EXPECT_EQ(quantised->parameters().frozen_bytes(), bytes);
    EXPECT_LT(static_cast<double>(bytes),
              (format == WeightFormat::kNf4 ? 0.54 : 1.1) * static_cast<double>(elements));
    EXPECT_LE(quantised->parameters().elements(), plain_->parameters().elements() - elements);
    // Decoding makes no copy of a matrix.
    const auto decoder = quantised->NewDecoder(4);
    decoder->Append({1, 2});
    decoder->Append({3});
    EXPECT_EQ(quantised->parameters().scratch_bytes(), 0);
  }
}

TEST_P(QuantisedModelTest, AdaptersBesideThemStayInFullPrecision) {
  const LoraOptions lora{.rank = 2, .alpha = 4};
  for (const WeightFormat format : {WeightFormat::kNf4, WeightFormat::kInt8}) {
    SCOPED_TRACE(WeightFormatName(format));
    const auto quantised = Quantised(*plain_, format, lora),
               adapted = Quantised(*plain_, WeightFormat::kPlain, lora);
    TakeDequantised(*quantised, adapted.get());
    const at::Tensor without = adapted->Logits(input_);
    for (LanguageModel* model : {quantised.get(), adapted.get()}) {
      for (size_t i = 0; i < model->parameters().all().size(); ++i) {
        const Parameter& parameter = model->parameters().all()[i];
        if (!IsAdapterParameter(parameter)) continue;
        EXPECT_FALSE(parameter.quantized());
        at::Tensor value = parameter.value;
        const Rng rng(7, parameter.name);
        for (int64_t k = 0; k < value.numel(); ++k) {
          value.mutable_data_ptr<float>()[k] = static_cast<float>(0.3 * rng.Normal(static_cast<uint64_t>(k)));
        }
      }
      model->parameters().RefreshCompute();
    }
    const at::Tensor exact = adapted->Logits(input_);
    EXPECT_GT(test::RelativeDifference(without, exact), 1e-3);
    EXPECT_LT(test::RelativeDifference(quantised->Logits(input_), exact), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, QuantisedModelTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(QuantisedTenTest, LossIsThatOfTheDequantisedWeights) {
  for (const test::TenKind& kind : test::TenKinds()) {
    const ModelConfig config = test::TenOf(kind.fields);
    const auto plain = test::LivelyModel(config, test::kFp32Numerics);
    const ModelInput input = test::RandomInput(config, {20, 13});
    for (const WeightFormat format : {WeightFormat::kNf4, WeightFormat::kInt8}) {
      SCOPED_TRACE(std::string(kind.name) + ", " + WeightFormatName(format));
      LanguageModel quantised(
          test::MakeBody(config, test::kFp32Numerics, kCpu, std::nullopt, {.frozen_format = format}));
      quantised.parameters().set_reads_quantized(true);
      size_t count = 0;
      for (size_t i = 0; i < plain->parameters().all().size(); ++i) {
        quantised.parameters().Assign(i, plain->parameters().all()[i].value);
        const Parameter& parameter = quantised.parameters().all()[i];
        if (!parameter.quantized()) continue;
        ++count;
        at::Tensor read = at::empty(parameter.shape, at::kFloat);
        parameter.matrix->DequantizeRows(test::kFp32Numerics, 0, read);
        plain->parameters().Assign(i, read);
      }
      EXPECT_GT(count, 0u);
      const double loss = plain->Loss(input).loss_nats;
      EXPECT_NEAR(quantised.Loss(input).loss_nats, loss, 1e-5 * loss);
    }
  }
}

}  // namespace
}  // namespace trainwright

// What is told of the types of a model's values, against the tensors that its passes give.
#include "lib/train/value_types.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/model/families.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"

namespace trainwright {
namespace {

struct TypesCase {
  const char* name;
  Numerics numerics;
  FineTuning tuning = {};
  const char* weights;
  const char* logits;
  const char* rounded_to = "";
};

void PrintTo(const TypesCase& one, std::ostream* out) {
  *out << one.name;
}

class ValueTypesTest : public testing::TestWithParam<TypesCase> {};

INSTANTIATE_TEST_SUITE_P(
    Precisions, ValueTypesTest,
    testing::Values(TypesCase{"fp32", {Precision::kFp32, at::kFloat}, {}, "fp32", "fp32"},
                    TypesCase{"bf16", {Precision::kBf16, at::kBFloat16}, {}, "bf16", "bf16"},
                    TypesCase{"bf16_in_fp32", {Precision::kBf16, at::kFloat}, {}, "fp32", "fp32", "bf16"},
                    TypesCase{"fp16_in_fp32", {Precision::kFp16, at::kFloat}, {}, "fp32", "fp32", "fp16"},
                    TypesCase{
                        "nf4",
                        {Precision::kFp32, at::kFloat},
                        {.lora = LoraOptions{.rank = 2, .alpha = 4}, .frozen_format = WeightFormat::kNf4},
                        "fp32+nf4",
                        "fp32"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(ValueTypesTest, AreThoseOfTheTensors) {
  const TypesCase& one = GetParam();
  LanguageModel model(test::MakeBody(test::SmallLlama(), one.numerics, test::kCpu, 5, one.tuning));
  const ValueTypes types = ValueTypesOf(model);
  EXPECT_EQ(types.masters, "fp32");
  EXPECT_EQ(types.weights, one.weights);
  EXPECT_EQ(types.logits, one.logits);
  EXPECT_EQ(types.softmax, "fp32");
  EXPECT_EQ(types.rounded_to, one.rounded_to);

  const ModelInput input = test::RandomInput(test::SmallLlama(), {5, 3});
  const at::Tensor hidden_nd = model.body().Forward(input, Keep::kNothing);
  EXPECT_EQ(hidden_nd.scalar_type(), types.logits == "fp32" ? at::kFloat : at::kBFloat16);
  if (types.rounded_to.empty()) return;
  const at::ScalarType rounded = types.rounded_to == "bf16" ? at::kBFloat16 : at::kHalf;
  EXPECT_TRUE(at::equal(hidden_nd, hidden_nd.to(rounded).to(at::kFloat)));
}

}  // namespace
}  // namespace trainwright

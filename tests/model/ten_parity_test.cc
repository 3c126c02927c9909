// What PyTorch's autograd gives in float64 for the formulas of the family ten (make_ten_fixtures.py), and
// what we compute.
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/model/hf_folder.h"
#include "tests/model/families.h"
#include "tests/model/inputs.h"
#include "tests/model/tensor_file.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kCpu;

/// Packed documents, each predicting its own tokens.
ModelInput PackedInput(const at::Tensor& ids_n, const at::Tensor& starts) {
  std::vector<at::Tensor> positions, labels;
  ModelInput input;
  input.tokens_n = ids_n;
  const auto* bounds = starts.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < starts.numel(); ++i) {
    input.span_starts.push_back(static_cast<int32_t>(bounds[i]));
    if (i + 1 == starts.numel()) break;
    const ModelInput document = test::OneDocument(ids_n.narrow(0, bounds[i], bounds[i + 1] - bounds[i]));
    positions.push_back(document.positions_n);
    labels.push_back(document.labels_n);
  }
  input.positions_n = at::cat(positions);
  input.labels_n = at::cat(labels);
  return input;
}

class TenParityTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<LanguageModel> Load(Precision precision = Precision::kFp32,
                                      ScanKind scan = ScanKind::kFused) const {
    return LoadHfModel(test::Families(), folder_, precision, kCpu, {AttentionBackend::kAuto, scan});
  }

  std::string folder_ = test::Fixture(std::string("model/fixtures/") + GetParam());
  test::TensorFile expected_{folder_ + "/expected.safetensors"};
  ModelInput input_ = PackedInput(expected_["ids"][0], expected_["span_starts"]);
};

INSTANTIATE_TEST_SUITE_P(Fixtures, TenParityTest,
                         testing::Values("ten_compat", "ten_compat_pro", "ten_lru", "ten_lru_pro",
                                         "ten_selective_compat", "ten_selective_lru", "ten_windows",
                                         "ten_windows_selective"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(TenParityTest, LogitsAgree) {
  EXPECT_LT(test::RelativeDifference(Load()->Logits(input_), expected_["logits"][0]), 1e-5);
  EXPECT_LT(test::MaxDifference(Load()->Logits(input_), expected_["logits"][0]), 1e-4);
}

TEST_P(TenParityTest, LossAndGradientsAgree) {
  for (const ScanKind scan : {ScanKind::kFused, ScanKind::kChunked}) {
    const auto model = Load(Precision::kFp32, scan);
    const LossSum loss = model->LossAndGradients(input_, 1.0);
    EXPECT_NEAR(loss.loss_nats, expected_["loss_sum"].item<double>(), 1e-5 * loss.loss_nats);
    for (const Parameter& parameter : model->parameters().all()) {
      EXPECT_LT(test::RelativeDifference(parameter.gradient, expected_["gradient." + parameter.name]), 3e-5)
          << parameter.name << ", " << ScanKindName(scan);
    }
  }
}

TEST_P(TenParityTest, ShortPrecisionsStayClose) {
  for (const auto& [precision, tolerance] :
       {std::pair{Precision::kBf16, 4e-2}, std::pair{Precision::kFp16, 6e-3}}) {
    EXPECT_LT(test::RelativeDifference(Load(precision)->Logits(input_), expected_["logits"][0]), tolerance)
        << PrecisionName(precision);
  }
}

TEST_P(TenParityTest, WrittenAndReadAgainItIsTheSameModel) {
  const auto model = Load();
  const test::TemporaryFolder folder;
  TokenizerIdentity tokenizer;
  tokenizer.kind = "bytes";
  WriteHfFolder(folder.path(), *model, tokenizer);
  const auto again = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  EXPECT_EQ(again->config(), model->config());
  EXPECT_TRUE(at::equal(again->Logits(input_), model->Logits(input_)));
}

}  // namespace
}  // namespace trainwright

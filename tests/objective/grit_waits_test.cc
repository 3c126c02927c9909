// What a micro-step of GRIT asks a device for: no number that the host would wait for, and no copy of a mask.
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "lib/nn/pooling/span_pooling.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/objective/grit_texts.h"

namespace trainwright {
namespace {

/// Operators that this thread calls while the counter lives, by name.
class OperatorWatch {
 public:
  OperatorWatch() : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&Note))) {
    called_.clear();
  }
  OperatorWatch(const OperatorWatch&) = delete;
  OperatorWatch& operator=(const OperatorWatch&) = delete;
  ~OperatorWatch() { at::removeCallback(handle_); }
  int64_t Calls(const std::set<std::string>& names) const {
    int64_t calls = 0;
    for (const std::string& name : names) calls += static_cast<int64_t>(called_.count(name));
    return calls;
  }
  int64_t AllCalls() const { return static_cast<int64_t>(called_.size()); }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    called_.insert(function.name());
    return nullptr;
  }
  static inline thread_local std::multiset<std::string> called_;
  at::CallbackHandle handle_;
};

/// What brings numbers of a device to the host, and so waits for it.
const std::set<std::string> kWaits = {"aten::item",       "aten::_local_scalar_dense",
                                      "aten::is_nonzero", "aten::nonzero",
                                      "aten::equal",      "aten::allclose"};

TEST(OperatorWatch, SeesANumberThatIsAskedFor) {
  const at::Tensor one = at::ones({1});
  const OperatorWatch watch;
  EXPECT_EQ(one.item<float>(), 1);
  EXPECT_GT(watch.Calls(kWaits), 0);
}

class GritWaitsTest : public testing::TestWithParam<OwnOptions> {};

TEST_P(GritWaitsTest, NoMicroStepWaitsForANumber) {
  OwnOptions own = GetParam();
  own.emplace("temperature", 0.1);
  const auto objective = test::GritOf(own);
  const ModelConfig config = test::SmallLlama();
  LanguageModel model(test::MakeBody(config, test::kFp32Numerics, test::kCpu, 5));
  const bool generates_alone = own.at("mode") == "generative";
  const StepBatches step = test::GritStepOf(
      *objective,
      {.vocabulary = config.vocab_size, .queries = 12, .every_row = 2, .records = !generates_alone},
      /*chunk=*/4);
  StepPass pass = {.model = &model, .batches = &step, .seed = 9, .step = 2};
  model.parameters().ZeroGradients();
  const std::unique_ptr<StepContext> context = objective->Begin(pass, Solo());
  pass.context = context.get();
  at::Tensor sums = at::zeros({static_cast<int64_t>(objective->terms().size())}, at::kDouble);
  TensorLossSums loss_sums(sums);
  {
    const OperatorWatch watch;
    objective->Run(pass, &loss_sums);
    EXPECT_GT(watch.AllCalls(), 0);
    EXPECT_EQ(watch.Calls(kWaits), 0);
  }
  EXPECT_GT(sums[0].item<double>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, GritWaitsTest,
                         testing::Values(OwnOptions{{"mode", "embedding"}},
                                         OwnOptions{{"mode", "embedding"}, {"negatives", "micro-batch"}},
                                         OwnOptions{{"mode", "generative"}}, OwnOptions{{"mode", "unified"}}),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

TEST(GritWaits, TheContrastiveLossAsksForNoNumber) {
  OwnOptions own = {{"mode", "embedding"}, {"symmetric", "on"}, {"mask_false_negatives", "text"}};
  const auto objective = test::GritOf(own);
  const ModelConfig config = test::SmallLlama();
  LanguageModel model(test::MakeBody(config, test::kFp32Numerics, test::kCpu, 5));
  const StepBatches step =
      test::GritStepOf(*objective, {.vocabulary = config.vocab_size, .queries = 12}, /*chunk=*/4);
  const OperatorWatch watch;
  objective->Begin({.model = &model, .batches = &step, .seed = 9, .step = 2}, Solo());
  EXPECT_EQ(watch.Calls(kWaits), 0);
}

TEST(GritWaits, PoolingMakesNoMaskAndCopiesNone) {
  const PooledSpans spans = {.begin = {0, 3}, .end = {3, 8}, .first_pooled = {1, 3}};
  const at::Tensor hidden = at::ones({8, 4});
  at::Tensor pooled = at::zeros({2, 4}), d_hidden = at::zeros({8, 4});
  const OperatorWatch watch;
  PoolSpans(Pooling::kMean, spans, hidden, pooled);
  PoolSpansBackward(Pooling::kMean, spans, pooled, d_hidden);
  EXPECT_EQ(watch.Calls({"aten::clone", "aten::copy_", "aten::ge", "aten::mul", "aten::bitwise_and"}), 0);
}

}  // namespace
}  // namespace trainwright

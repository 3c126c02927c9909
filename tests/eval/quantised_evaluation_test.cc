// evaluate and generate with --quant, against a folder with the dequantised weights.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/eval/evaluate_job.h"
#include "lib/eval/generate_job.h"
#include "lib/model/hf_folder.h"
#include "lib/model/open_model.h"
#include "lib/tok/tokenizer.h"
#include "tests/eval/bytes_model.h"
#include "tests/model/families.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class QuantisedEvaluationTest : public testing::TestWithParam<std::string> {
 protected:
  QuantisedEvaluationTest() {
    test::WriteModel(stored_);
    WriteDequantised();
    test::WriteFile(folder_.path("text.txt"), "To be, or not to be\nthat is the question\nx\n");
  }
  nlohmann::ordered_json Evaluate(const std::string& checkpoint, const std::string& quant) const {
    EvaluateJobOptions options;
    options.checkpoint = checkpoint;
    options.data = folder_.path("text.txt");
    options.quant = quant;
    return RunEvaluate(test::Families(), BuiltInObjectives(), options, ProgressMode::kNever);
  }
  GenerateSettings Settings(const std::string& checkpoint, const std::string& quant) const {
    return {
        .checkpoint = checkpoint, .input = folder_.path("prompts.jsonl"), .max_tokens = 12, .quant = quant};
  }
  static std::string Generate(const GenerateSettings& settings, nlohmann::ordered_json* summary = nullptr) {
    MemorySink sink;
    const nlohmann::ordered_json counts = RunGenerate(test::Families(), settings, ProcessSetup(), &sink);
    if (summary != nullptr) *summary = counts;
    return std::string(AsText(sink.bytes()));
  }
  void WritePrompts() const {
    test::WriteFile(folder_.path("prompts.jsonl"), R"({"prompt": "To be"})"
                                                   "\n"
                                                   R"({"prompt": "that is the question"})"
                                                   "\n"
                                                   R"({"prompt": "x"})"
                                                   "\n");
  }
  test::TemporaryFolder folder_;
  std::string stored_ = folder_.path("model"), dequantised_ = folder_.path("dequantised");

 private:
  void WriteDequantised() const {
    const Checkpoint quantised = LoadCheckpoint(test::Families(), stored_, Precision::kFp32, at::kCPU, {}, "",
                                                false, ParseWeightFormat(GetParam(), "--quant"));
    const auto plain = test::BytesModel();
    for (size_t i = 0; i < plain->parameters().all().size(); ++i) {
      const Parameter& parameter = quantised.model->parameters().all()[i];
      if (!parameter.quantized()) continue;
      at::Tensor read = at::empty(parameter.shape, at::kFloat);
      parameter.matrix->DequantizeRows(Numerics(), 0, read);
      plain->parameters().Assign(i, read);
    }
    std::filesystem::create_directories(dequantised_);
    WriteHfFolder(dequantised_, *plain, LoadTokenizer("bytes")->identity());
  }
};

TEST_P(QuantisedEvaluationTest, PerplexityIsThatOfTheDequantisedWeights) {
  const nlohmann::ordered_json measured = Evaluate(stored_, GetParam()),
                               exact = Evaluate(dequantised_, "none"), whole = Evaluate(stored_, "none");
  const double loss = exact.at("loss_nats").get<double>();
  EXPECT_NEAR(measured.at("loss_nats").get<double>(), loss, 1e-5 * loss);
  EXPECT_GT(std::abs(whole.at("loss_nats").get<double>() - loss), 1e-4 * loss);
  EXPECT_EQ(measured.at("quant"), GetParam());
  EXPECT_EQ(whole.at("quant"), "none");
}

TEST_P(QuantisedEvaluationTest, SamplesAreThoseOfTheDequantisedWeights) {
  WritePrompts();
  nlohmann::ordered_json summary;
  EXPECT_EQ(Generate(Settings(stored_, GetParam()), &summary), Generate(Settings(dequantised_, "none")));
  EXPECT_EQ(summary.at("quant"), GetParam());
}

TEST_P(QuantisedEvaluationTest, NeitherThreadsNorTheBatchChangeAByte) {
  WritePrompts();
  GenerateSettings settings = Settings(stored_, GetParam());
  settings.sampling.temperature = 1;
  settings.samples = 3;
  settings.log_probabilities = 2;
  settings.batch_invariant = true;
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const std::string one = Generate(settings);
  EXPECT_EQ(Generate(settings), one);
  at::set_num_threads(3);
  EXPECT_EQ(Generate(settings), one);
  settings.batch = 1;
  EXPECT_EQ(Generate(settings), one);
  at::set_num_threads(threads);
}

TEST_P(QuantisedEvaluationTest, WhatIsKeptOfOtherWeightsIsRefused) {
  WritePrompts();
  GenerateSettings contexts = Settings(stored_, GetParam()), state = contexts, out = contexts;
  contexts.context_cache = folder_.path();
  state.state_in = folder_.path("state");
  out.input = "-";
  out.prompt = "x";
  out.state_out = folder_.path("state");
  EXPECT_EQ(test::CodeOf([&] { Generate(contexts); }), ErrorCode::kUsage);
  EXPECT_THAT(test::MessageOf([&] { Generate(contexts); }),
              AllOf(HasSubstr("--context-cache"), HasSubstr("--quant " + GetParam())));
  EXPECT_THAT(test::MessageOf([&] { Generate(state); }), HasSubstr("--state-in"));
  EXPECT_THAT(test::MessageOf([&] { Generate(out); }), HasSubstr("--state-out"));
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantisedEvaluationTest, testing::Values("nf4", "int8"),
                         [](const auto& info) { return info.param; });

TEST(QuantTest, AnUnknownFormatIsRefusedByName) {
  const test::TemporaryFolder folder;
  test::WriteModel(folder.path());
  MemorySink sink;
  const auto run = [&] {
    RunGenerate(test::Families(), {.checkpoint = folder.path(), .prompt = "x", .quant = "int3"},
                ProcessSetup(), &sink);
  };
  EXPECT_EQ(test::CodeOf(run), ErrorCode::kUsage);
  EXPECT_THAT(test::MessageOf(run), AllOf(HasSubstr("--quant"), HasSubstr("int3"), HasSubstr("int8")));
}

}  // namespace
}  // namespace trainwright

// What the formulas come to, in float64 and with automatic derivatives, of one step on the fixtures of
// scripts/make_grit_fixtures.py, and what we compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/formats/json_text.h"
#include "lib/model/hf_folder.h"
#include "lib/model/weights_io.h"
#include "tests/model/families.h"
#include "tests/model/inputs.h"
#include "tests/model/tensor_file.h"
#include "tests/objective/grit_texts.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

const std::string& Folder() {
  static const std::string folder = test::Fixture("objective/fixtures/grit");
  return folder;
}

struct ParityCase {
  std::string name;  ///< of the fixture
  OwnOptions own;
};

void PrintTo(const ParityCase& one, std::ostream* out) {
  *out << one.name;
}

std::vector<ParityCase> AllCases() {
  std::vector<ParityCase> cases;
  for (const char* pooling : {"mean", "weightedmean", "cls", "lasttoken"}) {
    const std::string name = std::string("embedding.") + pooling;
    cases.push_back({name + ".bidirectional", {{"mode", "embedding"}, {"pooling", pooling}, {"attn", "bb"}}});
    cases.push_back({name + ".causal", {{"mode", "embedding"}, {"pooling", pooling}, {"attn", "cc"}}});
  }
  cases.push_back({"embedding.projection", {{"mode", "embedding"}, {"projection", 10}}});
  for (const char* loss : {"mixed", "token", "sample"}) {
    cases.push_back({std::string("generative.") + loss, {{"mode", "generative"}, {"gen_loss", loss}}});
  }
  cases.push_back({"generative.prefixlm", {{"mode", "generative"}, {"prefixlm", "on"}}});
  return cases;
}

/// The last run of predicted tokens alone.
std::vector<uint8_t> LastRunOf(std::vector<uint8_t> predicted) {
  size_t end = predicted.size();
  while (end > 0 && predicted[end - 1] == 0) --end;
  size_t begin = end;
  while (begin > 0 && predicted[begin - 1] != 0) --begin;
  std::fill(predicted.begin(), predicted.begin() + static_cast<ptrdiff_t>(begin), uint8_t{0});
  return predicted;
}

class GritParityTest : public testing::TestWithParam<ParityCase> {
 protected:
  bool embeds() const { return GetParam().name.starts_with("embedding"); }

  void AppendText(TextUse use, uint32_t record, const nlohmann::json& text, PackedBatch* batch) const {
    const auto ids = text.at("ids").get<std::vector<uint32_t>>();
    const std::vector<uint8_t> no_labels(ids.size(), 0);
    batch->AppendSpan(std::span<const uint32_t>(ids), kNoId, no_labels);
    batch->notes.push_back(
        {.use = use, .first_pooled = text.at("first_pooled").get<uint32_t>(), .record = record});
  }

  void AppendRow(uint32_t record, const nlohmann::json& row, PackedBatch* batch) const {
    const auto ids = row.at("ids").get<std::vector<uint32_t>>();
    std::vector<uint8_t> predicted;
    for (const bool is_predicted : row.at("predicted").get<std::vector<bool>>()) {
      predicted.push_back(is_predicted ? 1 : 0);
    }
    if (GetParam().name == "generative.prefixlm") predicted = LastRunOf(predicted);
    batch->AppendSpan(std::span<const uint32_t>(ids), kNoId, predicted);
    batch->notes.push_back({.use = TextUse::kGenerative, .record = record});
  }

  PackedBatch BatchOf(size_t begin, size_t end) const {
    PackedBatch batch;
    for (size_t i = begin; i < end; ++i) {
      const auto number = static_cast<uint32_t>(i - begin);
      if (!embeds()) {
        AppendRow(number, records_.at("generative").at(i), &batch);
        continue;
      }
      const nlohmann::json& record = records_.at("contrastive").at(i);
      AppendText(TextUse::kQuery, number, record.at("query"), &batch);
      for (const nlohmann::json& text : record.at("pos")) {
        AppendText(TextUse::kPositive, number, text, &batch);
      }
      for (const nlohmann::json& text : record.at("neg")) {
        AppendText(TextUse::kNegative, number, text, &batch);
      }
      ++batch.num_labels;
    }
    return batch;
  }

  StepBatches StepOf(const GritObjective& objective, size_t chunk) const {
    const size_t samples = records_.at(embeds() ? "contrastive" : "generative").size();
    StepBatches step;
    step.denominators.assign(objective.terms().size(), 0);
    for (size_t begin = 0; begin < samples; begin += chunk) {
      step.micro_batches.push_back(BatchOf(begin, std::min(begin + chunk, samples)));
      step.places.push_back({{.index = static_cast<int64_t>(begin)}});
      const std::vector<int64_t> counts = objective.Count(step.micro_batches.back());
      for (size_t i = 0; i < counts.size(); ++i) step.denominators[i] += counts[i];
    }
    return step;
  }

  std::unique_ptr<LanguageModel> Model() const {
    FineTuning tuning;
    const bool projects = GetParam().own.contains("projection");
    tuning.embedding = EmbeddingTuning{.projection = projects ? 10 : 0, .train_head = !embeds()};
    auto model = MakeModel(test::Families(), ReadHfConfig(test::Families().descriptions(), Folder()),
                           Precision::kFp32, test::kCpu, std::nullopt, AttentionBackend::kAuto, tuning);
    LoadWeights(Folder(), &model->parameters());
    if (projects) {
      const test::TensorFile projection(Folder() + "/projection.safetensors");
      const size_t matrix = *model->body().projection();
      model->parameters().Assign(matrix, projection["linear.weight"]);
      model->parameters().Assign(matrix + 1, projection["linear.bias"]);
      model->parameters().RefreshCompute();
    }
    return model;
  }

  const nlohmann::json records_ =
      ParseJson(test::ReadFile(Folder() + "/records.json"), Folder() + "/records.json");
  const test::TensorFile expected_{Folder() + "/expected.safetensors"};
};

INSTANTIATE_TEST_SUITE_P(Fixtures, GritParityTest, testing::ValuesIn(AllCases()), [](const auto& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST_P(GritParityTest, LossAndGradientsAgreeWhateverTheChunk) {
  OwnOptions own = GetParam().own;
  own.emplace("temperature", records_.at("temperature").get<double>());
  const auto objective = test::GritOf(own);
  const auto model = Model();
  for (const size_t chunk : {size_t{6}, size_t{2}}) {
    const StepBatches step = StepOf(*objective, chunk);
    const test::StepMade made = test::TakePasses(*objective, model.get(), step);
    const double loss = made.sums[0] / static_cast<double>(step.denominators[0]);
    EXPECT_NEAR(loss, expected_[GetParam().name + "/loss"].item<double>(), 1e-5 * loss) << chunk;
    for (size_t i = 0; i < model->parameters().all().size(); ++i) {
      const Parameter& parameter = model->parameters().all()[i];
      if (!parameter.trainable) continue;
      const at::Tensor found = AsInFiles(parameter, model->parameters().Gradient(i));
      const at::Tensor expected = expected_[GetParam().name + "/gradient." + parameter.name];
      if (expected.count_nonzero().item<int64_t>() == 0) {
        // A token that attends to itself alone: cls of a causal model.
        EXPECT_EQ(found.count_nonzero().item<int64_t>(), 0) << parameter.name << ", chunk " << chunk;
        continue;
      }
      EXPECT_LT(test::RelativeDifference(found, expected), 1e-5) << parameter.name << ", chunk " << chunk;
    }
  }
}

}  // namespace
}  // namespace trainwright

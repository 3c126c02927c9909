// What a run directory says of its run before the first step.
#include "lib/run/run_record.h"

#include <gtest/gtest.h>

#include "lib/run/plan_codec.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::TemporaryFolder;

RunRecord SomeRecord() {
  RunRecord record;
  record.plan.batch = 3;
  record.plan.seed = 99;
  record.plan.schedule.total_steps = 400;
  record.plan.length_rule = "steps 400";
  record.model_name = "tiny.json";
  record.model = {{"model_type", "llama"}, {"hidden_size", 16}};
  record.init = "base";
  record.data_sha256 = "abc";
  record.order_fingerprint = "def";
  record.working_directory = "/somewhere";
  record.parent = {.run = "runs/a",
                   .step = 7,
                   .checkpoint = "/runs/a/checkpoints/step-7",
                   .weights_sha256 = "012",
                   .state_sha256 = "345"};
  record.choices = {.head_slice_logits = int64_t{1} << 32,
                    .attention = "cudnn",
                    .attention_times = {{"cudnn", 0.00125}, {"flash", 0.0015}},
                    .products = {{"linear_with_gelu bf16 64x32x16", 2}}};
  return record;
}

TEST(RunRecordTest, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  const RunRecord written = SomeRecord();
  WriteRunRecord(folder.path("run.json"), written);
  const std::optional<RunRecord> read = ReadRunRecord(folder.path("run.json"));
  ASSERT_TRUE(read);
  EXPECT_EQ(EncodePlan(read->plan), EncodePlan(written.plan));
  EXPECT_EQ(read->model_name, written.model_name);
  EXPECT_EQ(read->model, written.model);
  EXPECT_EQ(read->init, written.init);
  EXPECT_EQ(read->data_sha256, written.data_sha256);
  EXPECT_EQ(read->order_fingerprint, written.order_fingerprint);
  EXPECT_EQ(read->working_directory, written.working_directory);
  EXPECT_EQ(read->parent, written.parent);
  EXPECT_EQ(read->choices, written.choices);
}

TEST(RunRecordTest, HasTheGemmKernelsThatARunOfBeforeHadInAFileOfTheirOwn) {
  const TemporaryFolder folder;
  RunRecord record = SomeRecord();
  record.choices.products.clear();
  WriteRunRecord(folder.path("run.json"), record);
  test::WriteFile(
      folder.path("product_choices.json"),
      R"({"schema": "trainwright.product_choices/1", "candidates": {"linear_gradients bf16 8x8x8": 3}})");
  record.choices.products = {{"linear_gradients bf16 8x8x8", 3}};
  EXPECT_EQ(ReadRunRecord(folder.path("run.json"))->choices, record.choices);
  record.choices.products = {{"linear_gradients bf16 8x8x8", 1}};
  StoreDeviceChoices(folder.path("run.json"), record.choices);
  EXPECT_EQ(ReadRunRecord(folder.path("run.json"))->choices, record.choices) << "its own take precedence";
  record.choices.products.clear();
  StoreDeviceChoices(folder.path("run.json"), record.choices);
  test::WriteFile(folder.path("product_choices.json"), "{}");
  EXPECT_EQ(test::CodeOf([&] { ReadRunRecord(folder.path("run.json")); }), ErrorCode::kBadInput);
}

TEST(RunRecordTest, HasThePlanThatIsStoredAndTheRestAsItWas) {
  const TemporaryFolder folder;
  RunRecord record = SomeRecord();
  WriteRunRecord(folder.path("run.json"), record);
  record.plan.accum = 2 * record.plan.accum;
  StorePlan(folder.path("run.json"), record.plan);
  EXPECT_EQ(EncodeRunRecord(*ReadRunRecord(folder.path("run.json"))), EncodeRunRecord(record));
}

TEST(RunRecordTest, IsAbsentInARunOfBeforeThereWasOne) {
  EXPECT_FALSE(ReadRunRecord(TemporaryFolder().path("run.json")));
}

TEST(RunRecordTest, RefusesEveryTruncationAndAnotherSchema) {
  const TemporaryFolder folder;
  const std::string path = folder.path("run.json");
  WriteRunRecord(path, SomeRecord());
  const std::string text = test::ReadFile(path);
  // All are written before any is read: a reader waits while a file is younger than a tick of the clock.
  const auto cut_path = [&](size_t size) { return path + std::to_string(size); };
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    test::WriteFile(cut_path(size), text.substr(0, size));
  }
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    ASSERT_EQ(test::CodeOf([&] { ReadRunRecord(cut_path(size)); }), ErrorCode::kBadInput) << size;
  }
  std::string other = text;
  other.replace(other.find("run/1"), 5, "run/2");
  test::WriteFile(path, other);
  EXPECT_EQ(test::CodeOf([&] { ReadRunRecord(path); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright

#include "lib/run/deepspeed_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;
using ::testing::HasSubstr;

constexpr OptionOrigin kNobody = OptionOrigin::kDefault, kFile = OptionOrigin::kSettingsFile,
                       kUser = OptionOrigin::kCommandLine;

/// A step's division before and after train_batch_size was looked at.
struct Division {
  std::optional<int64_t> batch = {}, accum = {};
  OptionOrigin batch_by = kFile, accum_by = kFile;
  std::vector<OptionValue> options = {};
  std::string notice = "";
};

Division Taken(int64_t samples, int64_t ranks, Division asked) {
  TrainSettings settings;
  settings.batch = asked.batch;
  settings.accum = asked.accum;
  asked.options = {{.key = "batch", .origin = asked.batch ? asked.batch_by : kNobody},
                   {.key = "accum", .origin = asked.accum ? asked.accum_by : kNobody}};
  asked.notice = TakeTrainBatchSize({.key = "train_batch_size",
                                     .value = std::to_string(samples),
                                     .source = "ds.json line 2, train_batch_size"},
                                    ranks, &asked.options, &settings);
  asked.batch = settings.batch;
  asked.accum = settings.accum;
  return asked;
}

std::string RefusalOf(int64_t samples, int64_t ranks, const Division& asked) {
  const auto take = [&] { Taken(samples, ranks, asked); };
  EXPECT_EQ(CodeOf(take), ErrorCode::kUsage);
  return MessageOf(take);
}

TEST(DeepSpeedBatchTest, WhatIsNotSaidFollowsAsInDeepSpeed) {
  const Division accum = Taken(64, 2, {.batch = 4});
  EXPECT_EQ(accum.accum, 8);
  EXPECT_EQ(accum.batch, 4);
  const Division batch = Taken(64, 4, {.accum = 2});
  EXPECT_EQ(batch.batch, 8);
  const Division both = Taken(64, 4, {});
  EXPECT_EQ(both.batch, 16);
  EXPECT_EQ(both.accum, 1);
  EXPECT_EQ(Taken(3, 1, {}).batch, 3);
}

TEST(DeepSpeedBatchTest, WhatFollowsIsToldAmongTheOptions) {
  const Division division = Taken(64, 2, {.batch = 4});
  EXPECT_EQ(division.options[1].value, "8");
  EXPECT_EQ(division.options[1].origin, OptionOrigin::kSettingsFile);
  EXPECT_EQ(division.options[1].source, "ds.json line 2, train_batch_size 64 on 2 ranks");
  EXPECT_EQ(division.options[0].value, "");
}

TEST(DeepSpeedBatchTest, AProductThatIsRightChangesNothing) {
  const Division division = Taken(64, 2, {.batch = 4, .accum = 8});
  EXPECT_EQ(division.batch, 4);
  EXPECT_EQ(division.accum, 8);
  EXPECT_EQ(division.notice, "");
}

TEST(DeepSpeedBatchTest, AFileThatContradictsItselfIsRefused) {
  EXPECT_THAT(
      RefusalOf(64, 4, {.batch = 4, .accum = 8}),
      HasSubstr("ds.json line 2, train_batch_size: is 64, which is not --batch 4 x --accum 8 x 4 ranks"));
  EXPECT_THAT(RefusalOf(64, 1, {.batch = 4, .accum = 8}), HasSubstr("which is not --batch 4 x --accum 8 |"));
  EXPECT_THAT(RefusalOf(2, 1, {.batch = 4, .accum = 8}), HasSubstr("is 2"));
}

TEST(DeepSpeedBatchTest, AStepThatDoesNotComeOutEvenIsRefused) {
  EXPECT_THAT(RefusalOf(10, 4, {}), HasSubstr("is 10, which is not a multiple of 4 ranks"));
  EXPECT_THAT(RefusalOf(20, 4, {.batch = 3}), HasSubstr("not a multiple of --batch 3 x 4 ranks"));
  EXPECT_THAT(RefusalOf(2, 1, {.accum = 4}), HasSubstr("not a multiple of --accum 4"));
}

TEST(DeepSpeedBatchTest, TheUserGoesBeforeTheFileAndIsTold) {
  const Division division = Taken(64, 2, {.batch = 2, .accum = 8, .batch_by = kUser});
  EXPECT_EQ(division.batch, 2);
  EXPECT_EQ(division.accum, 8);
  EXPECT_THAT(division.notice, HasSubstr("it is ignored beside"));
  // With one of the two from the user alone the step is still the file's.
  EXPECT_EQ(Taken(64, 2, {.batch = 2, .batch_by = kUser}).accum, 16);
}

TEST(DeepSpeedBatchTest, APresetGivesWay) {
  const Division division = Taken(
      64, 2, {.batch = 16, .accum = 4, .batch_by = OptionOrigin::kPreset, .accum_by = OptionOrigin::kPreset});
  EXPECT_EQ(division.batch, 32);
  EXPECT_EQ(division.accum, 1);
}

}  // namespace
}  // namespace trainwright

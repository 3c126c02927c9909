// What --tokenizer takes, and what messages say of what it does not.
#include "lib/tok/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LoadTokenizerTest, AFolderThatTransformersAloneReadsIsRefusedWithTheWayOut) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("vocab.json"), "{}");
  test::WriteFile(folder.path("merges.txt"), "");
  const auto load = [&] { LoadTokenizer(folder.path()); };
  EXPECT_EQ(test::CodeOf(load), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf(load),
              AllOf(HasSubstr("but vocab.json and merges.txt"),
                    HasSubstr("AutoTokenizer.from_pretrained('" + folder.path() + "').save_pretrained")));
}

TEST(LoadTokenizerTest, AModelThatFairseqNumbersOtherwiseIsLoadedWithAWarning) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("sentencepiece.bpe.model");
  test::WriteFile(path, test::ReadFile(test::Fixture("tok/testdata/unigram-1k.model")));
  testing::internal::CaptureStderr();
  const auto tokenizer = LoadTokenizer(path);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("number its pieces otherwise"));
  EXPECT_EQ(tokenizer->identity().vocab_size, 1000u);
}

}  // namespace
}  // namespace trainwright

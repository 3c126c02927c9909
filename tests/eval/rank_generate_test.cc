// Generation by several ranks, which are threads of this process, against that of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/eval/generate_job.h"
#include "lib/io/byte_sink.h"
#include "tests/eval/bytes_model.h"
#include "tests/model/families.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

/// A disk that is full.
class FullSink : public ByteSink {
 public:
  void Write(ByteSpan /*bytes*/) override { throw Error(ErrorCode::kIo, name_, "no space left"); }
  void Commit() override {}
  const std::string& name() const override { return name_; }

 private:
  std::string name_ = "samples.jsonl";
};

/// What a rank wrote, and its counts.
struct RankResult {
  std::string lines;
  nlohmann::ordered_json summary;
};

class RankGenerateTest : public testing::Test {
 protected:
  RankGenerateTest() {
    test::WriteModel(folder_.path());
    settings_.checkpoint = folder_.path();
    settings_.max_tokens = 12;
    settings_.sampling = {.temperature = 1.3, .top_p = 0.98};
    settings_.batch = 3;
    settings_.batch_invariant = true;
    settings_.seed = 4;
  }

  /// Prompts of a file.
  void Ask(int64_t prompts) {
    std::string lines;
    for (int64_t number = 0; number < prompts; ++number) {
      lines += R"({"id":)" + std::to_string(number) + R"(,"prompt":"To be )" + std::to_string(number % 7) +
               "\"}\n";
    }
    test::WriteFile(folder_.path("prompts.jsonl"), lines);
    settings_.input = folder_.path("prompts.jsonl");
  }

  RankResult Generate(const GenerateSettings& settings, World* world) const {
    MemorySink sink;
    RankResult result;
    result.summary = RunGenerate(test::Families(), settings, ProcessSetup(), &sink, world);
    result.lines = AsText(sink.bytes());
    return result;
  }
  /// Expects that ranks of these numbers write what one does.
  void ExpectSame(const std::vector<int64_t>& numbers_of_ranks) const {
    const auto generate = [&](World* world) { return Generate(settings_, world); };
    const RankResult one = test::OnOneRank(generate);
    ASSERT_FALSE(one.lines.empty());
    for (const int64_t ranks : numbers_of_ranks) {
      const std::vector<RankResult> results = test::OnRanks(ranks, generate);
      EXPECT_EQ(results[0].lines, one.lines) << ranks;
      for (const char* count : {"prompts", "samples", "tokens", "prompt_tokens", "data"}) {
        EXPECT_EQ(results[0].summary[count], one.summary[count]) << count << ", " << ranks;
      }
      for (size_t rank = 1; rank < results.size(); ++rank) EXPECT_EQ(results[rank].lines, "");
    }
  }
  /// What each of two ranks says of why it ended.
  std::vector<std::string> Messages() const {
    return test::OnRanks(2,
                         [&](World* world) { return test::MessageOf([&] { Generate(settings_, world); }); });
  }

  test::TemporaryFolder folder_;
  GenerateSettings settings_;
};

TEST_F(RankGenerateTest, PromptsAreDividedAndWrittenAsByOneRank) {
  Ask(8);
  settings_.samples = 2;
  ExpectSame({2, 3});
}

TEST_F(RankGenerateTest, MoreRanksThanPromptsWriteTheSame) {
  Ask(2);
  ExpectSame({5});
}

TEST_F(RankGenerateTest, SamplesOfManyRoundsAreWrittenAsByOneRank) {
  Ask(9);
  settings_.samples = 150;  // a round is of one prompt of each rank
  settings_.max_tokens = 2;
  settings_.batch = 64;
  ExpectSame({2, 4});
}

TEST_F(RankGenerateTest, SamplesOfTheOnlyPromptAreDivided) {
  settings_.prompt = "To be";
  settings_.samples = 7;
  ExpectSame({2, 3});
}

TEST_F(RankGenerateTest, MoreRanksThanSamplesWriteTheSame) {
  settings_.prompt = "To be";
  settings_.samples = 2;
  ExpectSame({3});
}

TEST_F(RankGenerateTest, TheWriterRejectsWhatOneRankRejects) {
  Ask(4);
  settings_.samples = 30;
  settings_.sampling = {.temperature = 3};
  settings_.keep_if = "answered";
  settings_.keep = "distinct";
  const auto generate = [&](World* world) { return Generate(settings_, world); };
  const RankResult one = test::OnOneRank(generate);
  const RankResult writer = test::OnRanks(2, generate)[0];
  EXPECT_EQ(writer.lines, one.lines);
  for (const char* count : {"samples_passed", "samples_kept", "prompts_with_kept", "prompts_by_passed"}) {
    EXPECT_EQ(writer.summary[count], one.summary[count]) << count;
  }
}

TEST_F(RankGenerateTest, NoPromptAtAllIsNoSample) {
  Ask(0);
  for (const RankResult& result :
       test::OnRanks(2, [&](World* world) { return Generate(settings_, world); })) {
    EXPECT_EQ(result.lines, "");
  }
}

TEST_F(RankGenerateTest, SamplesThatDependOnTheirCompanyAreRefused) {
  Ask(2);
  settings_.batch_invariant = false;
  for (const std::string& message : Messages()) EXPECT_THAT(message, HasSubstr("--batch-invariant"));
}

TEST_F(RankGenerateTest, PromptsOfStandardInputAreRefused) {
  for (const std::string& message : Messages()) EXPECT_THAT(message, HasSubstr("--input: standard input"));
}

TEST_F(RankGenerateTest, ALineThatIsNoPromptEndsAllRanks) {
  Ask(3);
  test::WriteFile(settings_.input, test::ReadFile(settings_.input) + "junk\n");
  for (const std::string& message : Messages()) EXPECT_THAT(message, HasSubstr("line 4"));
}

TEST_F(RankGenerateTest, ARankWithOtherPromptsEndsAll) {
  Ask(3);
  test::WriteFile(folder_.path("other.jsonl"), "{\"prompt\": \"x\"}\n");
  const auto messages = test::OnRanks(2, [&](World* world) {
    GenerateSettings settings = settings_;
    if (world->rank() == 1) settings.input = folder_.path("other.jsonl");
    return test::MessageOf([&] { Generate(settings, world); });
  });
  EXPECT_THAT(messages[1], HasSubstr("sha256 of the prompts"));
  EXPECT_THAT(messages[0], HasSubstr("rank 1"));
}

TEST_F(RankGenerateTest, AWriterThatCannotWriteEndsAll) {
  for (const int64_t prompts : {2, 600}) {  // in the only round, and in the first of several
    Ask(prompts);
    settings_.max_tokens = 1;
    const auto messages = test::OnRanks(2, [&](World* world) {
      FullSink sink;
      return test::MessageOf([&] { RunGenerate(test::Families(), settings_, ProcessSetup(), &sink, world); });
    });
    EXPECT_THAT(messages[0], HasSubstr("no space left")) << prompts;
    EXPECT_THAT(messages[1], testing::AllOf(HasSubstr("rank 0"), HasSubstr("no space left"))) << prompts;
  }
}

}  // namespace
}  // namespace trainwright

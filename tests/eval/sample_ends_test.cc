#include "lib/eval/sample_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::ElementsAre;

std::unique_ptr<Tokenizer> LoadFixture(const std::string& name) {
  return LoadTokenizer(test::Fixture("tok/testdata/" + name));
}

/// How many ids of a sample remain where an end is found in it, and after how many ids it is found.
struct Found {
  size_t after = 0, remain = 0;
  FinishReason reason = FinishReason::kLength;
};

Found FindIn(const Tokenizer& tokenizer, const SampleEnds& ends, const std::vector<uint32_t>& ids) {
  const std::vector<int64_t> prompt = {5};
  EndFinder finder(&tokenizer, &ends, prompt);
  std::vector<uint32_t> seen;
  for (const uint32_t id : ids) {
    seen.push_back(id);
    if (const auto end = finder.Find(seen)) return {seen.size(), end->ids, end->reason};
  }
  return {};
}

std::vector<uint32_t> EncodedOf(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<uint32_t> ids;
  tokenizer.EncodeContinued(text, &ids);
  return ids;
}

/// The ids of bytes in the vocabulary of llama2.json.
std::vector<uint32_t> SpeltInBytes(const std::string& bytes) {
  std::vector<uint32_t> ids;
  for (const char c : bytes) ids.push_back(3 + static_cast<uint8_t>(c));
  return ids;
}

std::vector<uint32_t> Chained(std::vector<uint32_t> ids, const std::vector<uint32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

TEST(EndFinderTest, ASequenceOfIdsEndsASampleBeforeIt) {
  const auto tokenizer = LoadFixture("text_tokenizers/llama2.json");
  const std::vector<uint32_t> words = EncodedOf(*tokenizer, " so it is");
  const uint32_t mark = 2;  // </s>, which has no text
  const std::vector<uint32_t> end = Chained({mark}, SpeltInBytes("\n"));
  const SampleEnds ends = SampleEndsOf(*tokenizer, {}, end, {});
  EXPECT_THAT(ends.sequences, ElementsAre(end));
  EXPECT_THAT(ends.answer_ends, ElementsAre()) << "a line feed alone ends nothing";
  const auto with_line_feed = Chained(words, SpeltInBytes("\n"));
  const Found found = FindIn(*tokenizer, ends, Chained(Chained(with_line_feed, end), words));
  EXPECT_EQ(found.remain, with_line_feed.size());
  EXPECT_EQ(found.after, with_line_feed.size() + end.size());
  EXPECT_EQ(found.reason, FinishReason::kEos);
}

TEST(EndFinderTest, TheTextOfAnAnswersEndEndsItHoweverItIsCut) {
  const auto tokenizer = LoadFixture("text_tokenizers/llama2.json");
  const std::vector<uint32_t> end = EncodedOf(*tokenizer, "<|it|>");
  ASSERT_GT(end.size(), 1u);
  const SampleEnds ends = SampleEndsOf(*tokenizer, {}, end, {});
  const std::vector<uint32_t> words = EncodedOf(*tokenizer, " so it is"), spelt = SpeltInBytes("<|it|>");
  ASSERT_NE(spelt, end);
  Generation sample = {.ids = Chained(words, spelt), .finish = FinishReason::kStop};
  const Found found = FindIn(*tokenizer, ends, sample.ids);
  EXPECT_EQ(found.after, sample.ids.size());
  EXPECT_EQ(found.reason, FinishReason::kStop);
  std::string text = " so it is<|it|>";
  RemoveEnd(*tokenizer, ends, std::vector<uint32_t>{5}, &sample, &text);
  EXPECT_EQ(text, " so it is");
  EXPECT_EQ(sample.ids, words);
  EXPECT_EQ(sample.finish, FinishReason::kEos);
}

TEST(EndFinderTest, AStopIsFoundInAnyRunOfByteTokens) {
  const auto tokenizer = LoadFixture("text_tokenizers/llama2.json");
  for (const size_t characters : {1u, 9u, 100u}) {
    for (const std::string letter : {"\xE0\xBD\x80", "\xC3\xA9", "\xF0\x9F\x99\x82"}) {
      std::string run;
      for (size_t i = 0; i < characters; ++i) run += letter;
      const SampleEnds ends = SampleEndsOf(*tokenizer, {}, {}, {"never", "\xE0\xBC\x8D"});
      const Found found = FindIn(*tokenizer, ends, SpeltInBytes(run + "\xE0\xBC\x8D" + run));
      EXPECT_EQ(found.after, run.size() + 3);
      EXPECT_EQ(found.remain, run.size() + 3);
      EXPECT_EQ(found.reason, FinishReason::kStop);
    }
  }
}

TEST(EndFinderTest, AStopThatIsASpecialTokenIsItsId) {
  const auto tokenizer = LoadFixture("text_tokenizers/llama2.json");
  EXPECT_THAT(SampleEndsOf(*tokenizer, {7, 1, 7}, {}, {"</s>"}).ids, ElementsAre(1, 2, 7));
  const SampleEnds held = SampleEndsOf(*tokenizer, {}, {}, {"</s>\n"});
  EXPECT_EQ(FindIn(*tokenizer, held, Chained({4, 2}, EncodedOf(*tokenizer, "</s>\n"))).remain, 2u);
  EXPECT_THAT(SampleEndsOf(*tokenizer, {}, {}, {"it"}).ids, ElementsAre());
}

}  // namespace
}  // namespace trainwright

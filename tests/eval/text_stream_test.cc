#include "lib/eval/text_stream.h"

#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

std::vector<uint32_t> BytesOf(const std::string& text) {
  std::vector<uint32_t> ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

/// What is shown after each token of a text.
std::vector<std::string> ShownOf(const std::string& text, std::vector<std::string> stops = {}) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadTokenizer("bytes");
  TextStream stream(tokenizer.get(), BytesOf("a prompt: "), std::move(stops));
  std::vector<std::string> shown;
  for (const uint32_t id : BytesOf(text)) shown.push_back(stream.Take(id));
  return shown;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

TEST(TextStreamTest, CharactersAreShownWhole) {
  const std::vector<std::string> shown = ShownOf("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x99\x82z");
  const std::vector<std::string> expected = {"a", "", "\xC3\xA9",         "", "", "\xE2\x82\xAC", "",
                                             "",  "", "\xF0\x9F\x99\x82", "z"};
  EXPECT_EQ(shown, expected);
}

TEST(TextStreamTest, CharactersOfByteTokensAreShownWhole) {
  const std::unique_ptr<Tokenizer> tokenizer =
      LoadTokenizer(test::Fixture("tok/testdata/text_tokenizers/llama2.json"));
  // Two of them in a row are one run of bytes.
  const std::string text = "so \xF0\x9F\x99\x82\xF0\x9F\x8E\x89 it \xE2\x99\x9E\xE2\x99\x9E is";
  std::vector<uint32_t> ids;
  tokenizer->Encode(text, &ids);
  ASSERT_GT(ids.size(), 16u) << "the characters are no bytes in this vocabulary";
  TextStream stream(tokenizer.get(), {}, {});
  std::string shown;
  for (const uint32_t id : ids) {
    const std::string more = stream.Take(id);
    EXPECT_EQ(more.find("\xEF\xBF\xBD"), std::string::npos);
    shown += more;
  }
  EXPECT_EQ(shown + stream.Finish(text), text);
}

TEST(TextStreamTest, NothingOfAStopIsShown) {
  const std::string text = "one\n\nUsual. \n\nUser: two";
  const std::vector<std::string> shown = ShownOf(text, {"\n\nUser:", "never"});
  EXPECT_EQ(Joined(shown), "one\n\nUsual. ");
  EXPECT_EQ(shown[1] + shown[2], "");  // they may begin a stop
  EXPECT_EQ(shown[3], "ne");           // they did not
  EXPECT_EQ(shown[7], "\n\nUsu");      // it did not
}

TEST(TextStreamTest, AllThatIsShownIsTheText) {
  constexpr uint64_t kSeed = 11;
  std::cout << "seed " << kSeed << "\n";
  const std::unique_ptr<Tokenizer> tokenizer = LoadTokenizer("bytes");
  const std::string pieces[] = {"a",  " b", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x99\x82",
                                "\n", "ab", "\xFF"};
  const Rng rng(kSeed, "pieces");
  uint64_t drawn = 0;
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) text += pieces[static_cast<size_t>(rng.Uniform(drawn++) * 8)];
    TextStream stream(tokenizer.get(), BytesOf("x"), {"ab\n"});
    std::string shown;
    for (const uint32_t id : BytesOf(text)) shown += stream.Take(id);
    const std::string whole = text.substr(0, text.find("ab\n"));
    EXPECT_TRUE(whole.starts_with(shown)) << round;
    EXPECT_EQ(shown + stream.Finish(whole), whole) << round;
  }
}

}  // namespace
}  // namespace trainwright

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

/// The ids of bytes in the vocabulary of llama2.json.
std::vector<uint32_t> ByteTokensOf(const std::string& bytes) {
  std::vector<uint32_t> ids;
  for (const char c : bytes) ids.push_back(3 + static_cast<uint8_t>(c));
  return ids;
}

std::unique_ptr<Tokenizer> Llama2() {
  return LoadTokenizer(test::Fixture("tok/testdata/text_tokenizers/llama2.json"));
}

TEST(TextStreamTest, WhatIsShownOfByteTokensIsAPrefixOfTheText) {
  constexpr uint64_t kSeed = 12;
  std::cout << "seed " << kSeed << "\n";
  const auto tokenizer = Llama2();
  std::vector<uint32_t> prompt, word;
  tokenizer->Encode("so", &prompt);
  tokenizer->EncodeContinued(" it", &word);
  ASSERT_EQ(tokenizer->Decode(ByteTokensOf("\xE2\x82\xAC")), "\xE2\x82\xAC");
  const std::vector<uint32_t> pieces[] = {ByteTokensOf("\xF0\x9F\x99\x82"), ByteTokensOf("\xC3\xA9"), word,
                                          ByteTokensOf("\x80"), ByteTokensOf("\xE2")};
  const Rng rng(kSeed, "pieces");
  uint64_t drawn = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> all = prompt;
    TextStream stream(tokenizer.get(), prompt, {});
    std::string shown;
    for (int i = 0; i < 20; ++i) {
      for (const uint32_t id : pieces[static_cast<size_t>(rng.Uniform(drawn++) * 5)]) {
        all.push_back(id);
        shown += stream.Take(id);
        const std::string text = tokenizer->Decode(all).substr(2);
        ASSERT_TRUE(text.starts_with(shown)) << round << ": " << text << "\n" << shown;
        ASSERT_EQ(shown + stream.Finish(text), text) << round;
      }
    }
  }
}

TEST(TextStreamTest, TextBehindInvalidBytesIsShownAsItComes) {
  for (const char* name : {"text_tokenizers/llama2.json", "unigram/byte-fallback.model"}) {
    const auto tokenizer = LoadTokenizer(test::Fixture(std::string("tok/testdata/") + name));
    std::vector<uint32_t> prompt, word, euro;
    tokenizer->Encode("so", &prompt);
    tokenizer->EncodeContinued(" it", &word);
    tokenizer->EncodeContinued("\xE2\x99\x9E", &euro);
    ASSERT_GE(euro.size(), 3u) << name;
    const uint32_t within = euro.back();  // a byte that begins no character
    std::vector<uint32_t> ids(8, within);
    ids.insert(ids.end(), euro.end() - 3, euro.end());
    ids.insert(ids.end(), word.begin(), word.end());
    TextStream stream(tokenizer.get(), prompt, {});
    std::string shown;
    for (const uint32_t id : ids) shown += stream.Take(id);
    std::vector<uint32_t> all = prompt;
    all.insert(all.end(), ids.begin(), ids.end());
    EXPECT_EQ(shown, tokenizer->Decode(all).substr(tokenizer->Decode(prompt).size())) << name;
  }
}

TEST(TextStreamTest, NoMoreThanTheBoundOfARunIsHeldBack) {
  const auto tokenizer = Llama2();
  std::string text;
  while (text.size() < 4 * TextStream::kMostHeldIds) text += "\xE0\xBD\x80";
  const std::vector<uint32_t> ids = ByteTokensOf(text);
  TextStream stream(tokenizer.get(), {}, {});
  std::string shown;
  for (size_t i = 0; i < ids.size(); ++i) {
    shown += stream.Take(ids[i]);
    EXPECT_LE(i + 1, shown.size() + TextStream::kMostHeldIds + 3);
    EXPECT_TRUE(text.starts_with(shown));
  }
  EXPECT_EQ(shown + stream.Finish(text), text);
}

TEST(TextStreamTest, ARunThatIsSpoiltBeyondTheBoundGoesOnWhereItWas) {
  const auto tokenizer = Llama2();
  std::string text;
  for (size_t i = 0; i < TextStream::kMostHeldIds; ++i) text += "\xC3\xA9";
  std::vector<uint32_t> ids = ByteTokensOf(text + "\xFF"), word;
  tokenizer->EncodeContinued(" it", &word);
  ids.insert(ids.end(), word.begin(), word.end());
  TextStream stream(tokenizer.get(), {}, {});
  std::string shown;
  for (const uint32_t id : ids) shown += stream.Take(id);
  EXPECT_EQ(shown + stream.Finish(tokenizer->Decode(ids)), text + "\xEF\xBF\xBD it");
}

TEST(TextStreamTest, NothingOfAnEndOfSeveralIdsIsShown) {
  const auto tokenizer = LoadTokenizer("bytes");
  TextStream stream(tokenizer.get(), BytesOf("x"), {}, {BytesOf("<end>"), {256, '\n'}});
  std::string shown;
  for (const uint32_t id : BytesOf("a <en b")) shown += stream.Take(id);
  EXPECT_EQ(shown, "a <en b");
  for (const uint32_t id : BytesOf("<end>")) EXPECT_EQ(stream.Take(id), "");
  EXPECT_EQ(stream.Take('c'), "<end>c");
  for (const uint32_t id : {256u, 10u}) EXPECT_EQ(stream.Take(id), "");  // a mark and a line feed
  EXPECT_EQ(stream.Finish("a <en b<end>c"), "");
}

}  // namespace
}  // namespace trainwright

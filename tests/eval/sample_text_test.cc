#include "lib/eval/sample_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr uint64_t kIdsSeed = 5;

/// As generate's samples are: what all ids add to the text of the prompt.
std::string AddedTextOf(const Tokenizer& tokenizer, const std::vector<uint32_t>& prompt,
                        const std::vector<uint32_t>& ids) {
  std::vector<uint32_t> all = prompt;
  all.insert(all.end(), ids.begin(), ids.end());
  const std::string before = tokenizer.Decode(prompt), whole = tokenizer.Decode(all);
  return whole.starts_with(before) ? whole.substr(before.size()) : tokenizer.Decode(ids);
}

/// Draws ids of which many are bytes, marks, or words.
class DrawnIds {
 public:
  DrawnIds(const Tokenizer& tokenizer, uint64_t round) : rng_(Rng(kIdsSeed, "ids", round)) {
    tokenizer.Encode("so it is, \xF0\x9F\x99\x82 \xE0\xBD\x80\xE0\xBC\x8D a  b\n\xC3\xA9", &words_);
    first_ids_ = std::min<uint32_t>(tokenizer.identity().vocab_size, 300);
  }
  std::vector<uint32_t> Draw(size_t count) {
    std::vector<uint32_t> ids;
    while (ids.size() < count) {
      if (Uniform() < 0.3) {
        ids.push_back(static_cast<uint32_t>(Uniform() * first_ids_));
      } else {
        const auto begin = static_cast<size_t>(Uniform() * static_cast<double>(words_.size()));
        const size_t end = std::min(words_.size(), begin + static_cast<size_t>(1 + Uniform() * 6));
        ids.insert(ids.end(), words_.begin() + static_cast<ptrdiff_t>(begin),
                   words_.begin() + static_cast<ptrdiff_t>(end));
      }
    }
    return ids;
  }

 private:
  double Uniform() { return rng_.Uniform(drawn_++); }

  Rng rng_;
  uint64_t drawn_ = 0;
  std::vector<uint32_t> words_;
  uint32_t first_ids_ = 0;
};

class SampleTextTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Tokenizer> Load() const {
    const std::string name = GetParam();
    return LoadTokenizer(name == "bytes" ? name : test::Fixture("tok/testdata/" + name));
  }
};

TEST_P(SampleTextTest, WhatIsSettledIsAPrefixOfWhateverComes) {
  std::cout << "seed " << kIdsSeed << "\n";
  const auto tokenizer = Load();
  for (uint64_t round = 0; round < 100; ++round) {
    DrawnIds source(*tokenizer, round);
    const std::vector<uint32_t> prompt = source.Draw(1 + round % 20), ids = source.Draw(40);
    SampleText text(tokenizer.get(), prompt);
    std::vector<std::string> settled;
    for (size_t count = 1; count <= ids.size(); ++count) {
      text.Add(ids[count - 1]);
      settled.push_back(text.settled());
      const std::string expected =
          AddedTextOf(*tokenizer, prompt, {ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count)});
      for (const std::string& earlier : settled) {
        ASSERT_TRUE(expected.starts_with(earlier)) << round << ", " << count << ": " << expected << "\n"
                                                   << earlier;
      }
      if (text.open_ids() > 0) continue;
      ASSERT_EQ(text.settled(), expected) << round << ", " << count;
    }
  }
}

TEST_P(SampleTextTest, WholeCharactersAreKnownAsTheyCome) {
  const auto tokenizer = Load();
  std::vector<uint32_t> prompt, ids;
  tokenizer->Encode("so", &prompt);
  tokenizer->EncodeContinued("\xE0\xBD\x80\xE0\xBD\x81\xE0\xBC\x8D it", &ids);
  SampleText text(tokenizer.get(), prompt);
  std::vector<uint32_t> taken;
  for (const uint32_t id : ids) {
    text.Add(id);
    taken.push_back(id);
    const std::string expected = AddedTextOf(*tokenizer, prompt, taken),
                      known = text.settled() + std::string(text.open());
    EXPECT_TRUE(known == expected || expected.find("\xEF\xBF\xBD") != std::string::npos) << expected;
    EXPECT_EQ(text.IdsWithin(known.size()) == taken.size(), known == expected) << expected;
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, SampleTextTest,
                         testing::Values("bytes", "text_tokenizers/llama2.json", "text_tokenizers/gemma.json",
                                         "text_tokenizers/phi3.json", "text_tokenizers/bert.json",
                                         "text_tokenizers/xlmr.json", "text_tokenizers/unigram_bytes.json",
                                         "unigram/byte-fallback.model", "unigram/suffix.model",
                                         "unigram/no-prefix.model", "mistral-v3.model"));

/// Counts the ids that are decoded.
class DecodingCounter final : public Tokenizer {
 public:
  explicit DecodingCounter(std::unique_ptr<Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override {
    tokenizer_->Encode(text, ids);
  }
  std::string Decode(std::span<const uint32_t> ids) const override {
    decoded_ += ids.size();
    return tokenizer_->Decode(ids);
  }
  DecodedId DecodedIdOf(uint32_t id) const override { return tokenizer_->DecodedIdOf(id); }
  const TokenizerIdentity& identity() const override { return tokenizer_->identity(); }
  size_t decoded() const { return decoded_; }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  mutable size_t decoded_ = 0;
};

TEST(SampleTextCostTest, AnIdIsDecodedAFewTimesHoweverLongTheSampleOrItsRuns) {
  const DecodingCounter tokenizer(LoadTokenizer(test::Fixture("tok/testdata/text_tokenizers/llama2.json")));
  std::string run, words;
  for (int i = 0; i < 2000; ++i) run += "\xE0\xBD\x80", words += " it is";
  for (const std::string& written :
       {run + words, words, run + "\xFF" + run, std::string(3000, '\xFF') + words}) {
    std::vector<uint32_t> ids;
    tokenizer.Encode(written, &ids);
    const size_t before = tokenizer.decoded();
    SampleText text(&tokenizer, std::vector<uint32_t>{1});
    for (const uint32_t id : ids) text.Add(id);
    EXPECT_LE(tokenizer.decoded() - before, 6 * ids.size());
  }
}

}  // namespace
}  // namespace trainwright

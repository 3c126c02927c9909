#include "lib/tok/tiktoken.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lib/tok/byte_level_bpe_tokenizer.h"
#include "tests/support/support.h"
#include "tests/tok/encode.h"
#include "tests/tok/random_documents.h"

namespace trainwright {
namespace {

using nlohmann::json;
using test::Encode;
using test::Fixture;
using test::ReadFile;
using ::testing::HasSubstr;

/// What tiktoken gives; see make_tiktoken_fixtures.py.
const json& Goldens() {
  static const json goldens = json::parse(ReadFile(Fixture("tok/testdata/tiktoken/goldens.json")));
  return goldens;
}

class TiktokenRuleTest : public ::testing::TestWithParam<const char*> {
 protected:
  static ByteLevelBpeTokenizer Make() {
    const std::string content = ReadFile(Fixture("tok/testdata/tiktoken/small.tiktoken"));
    const std::string name = GetParam();
    const CutRule rule = name == "r50k_base"     ? CutRule::kGpt2
                         : name == "cl100k_base" ? CutRule::kCl100k
                                                 : CutRule::kO200k;
    const TiktokenVocabulary vocabulary = {"small", rule, {{"<|endoftext|>", 1300}}};
    return {"tiktoken", content, ParseTiktoken(content, vocabulary, "small")};
  }
  const ByteLevelBpeTokenizer tokenizer_ = Make();
  const json& golden_ = Goldens()["rules"][GetParam()];
};

INSTANTIATE_TEST_SUITE_P(Rules, TiktokenRuleTest, ::testing::Values("r50k_base", "cl100k_base", "o200k_base"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(TiktokenRuleTest, GivesThePythonPackagesIdsForWrittenDocuments) {
  const auto written = Goldens()["written"].get<std::vector<std::string>>();
  ASSERT_GT(written.size(), 40u);
  for (size_t i = 0; i < written.size(); ++i) {
    const auto ids = golden_["ids"][i].get<std::vector<uint32_t>>();
    EXPECT_EQ(Encode(tokenizer_, written[i]), ids) << json(written[i]);
    EXPECT_EQ(Encode(*tokenizer_.MakeReference(), written[i]), ids) << json(written[i]);
    EXPECT_EQ(tokenizer_.Decode(ids), written[i]);
  }
}

TEST_P(TiktokenRuleTest, GivesThePythonPackagesIdsForRandomDocuments) {
  const auto texts = json::parse(ReadFile(Fixture("tok/testdata/tokenizer_json/goldens.json")))["texts"]
                         .get<std::vector<std::string>>();
  const size_t stride = Goldens()["documents_per_hash"];
  const auto reference = tokenizer_.MakeReference();
  ASSERT_EQ(golden_["hashes"].size() * stride, Goldens()["documents"]);
  for (size_t block = 0; block < golden_["hashes"].size(); ++block) {
    test::Fnv hash;
    for (size_t i = block * stride; i < (block + 1) * stride; ++i) {
      const std::string text = test::RandomDocument(Goldens()["seed"], i, texts);
      const auto ids = Encode(tokenizer_, text);
      if (i % 8 == 0) {
        ASSERT_EQ(Encode(*reference, text), ids) << json(text);
      }
      hash.AddDocument(ids);
    }
    EXPECT_EQ(hash.hex(), golden_["hashes"][block]) << "documents from " << block * stride;
  }
}

TEST_P(TiktokenRuleTest, ItsSpecialTokensAreTextInADocumentAndNothingWhenDecoded) {
  EXPECT_EQ(tokenizer_.identity().eos_id, 1300u);
  EXPECT_EQ(tokenizer_.identity().vocab_size, 1301u);
  EXPECT_THAT(Encode(tokenizer_, "a<|endoftext|>"), testing::Not(testing::Contains(1300u)));
  EXPECT_EQ(tokenizer_.Decode(std::vector<uint32_t>{1300}), "");
}

TEST(TiktokenTest, RefusesVocabulariesThatItDoesNotKnowByTheirHash) {
  const auto load = [] { LoadTokenizer(Fixture("tok/testdata/tiktoken/small.tiktoken")); };
  EXPECT_EQ(test::CodeOf(load), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf(load), HasSubstr("SHA-256"));
  EXPECT_THAT(test::MessageOf(load), HasSubstr("cl100k_base"));
}

TEST(TiktokenTest, RefusesMalformedFilesByLine) {
  const struct {
    const char *content, *expected;
  } cases[] = {{"QQ== 0\nQg==\n", "line 2"},
               {"QQ== 0\n\nQ*== 1\n", "line 3"},
               {"QQ== 0\nQg== 0\n", "rank 0 twice"},
               {"QQ== 0\nQQ== 1\n", "token twice"},
               {"QQ== -1\n", "line 1"},
               {"QQ== 99999999\n", "line 1"},
               {"QQ== 0\n", "no token for the byte 0"},
               {"", "no token for the byte"},
               {"QR== 0\n", "line 1"}};
  for (const auto& test_case : cases) {
    const auto parse = [&] { ParseTiktoken(test_case.content, {"x", CutRule::kGpt2, {}}, "x.tiktoken"); };
    EXPECT_EQ(test::CodeOf(parse), ErrorCode::kBadInput) << test_case.content;
    EXPECT_THAT(test::MessageOf(parse), HasSubstr(test_case.expected));
  }
}

}  // namespace
}  // namespace trainwright

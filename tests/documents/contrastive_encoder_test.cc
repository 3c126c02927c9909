// Texts of contrastive records: cut where they must be, copied nowhere, and tokenised no oftener than needed.
#include "lib/documents/contrastive_encoder.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/chat_template.h"
#include "lib/documents/contrastive_example.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(ContrastiveExampleReaderTest, OfMembersWithTheSameNameTheLastCounts) {
  ContrastiveExampleReader reader;
  ContrastiveExample example;
  ASSERT_FALSE(reader.Read(
      R"({"query": 1, "pos": ["a"], "neg": ["n"], "query": "q", "pos": ["b"], "neg": null})", &example));
  ASSERT_EQ(example.texts.size(), 2u);
  EXPECT_EQ(example.texts[0].text, "q");
  EXPECT_EQ(example.texts[1].text, "b");
}

/// A tokenizer whose ids are Unicode characters' bytes added up, one id a character, and which remembers what
/// it was given.
class RememberingTokenizer final : public Tokenizer {
 public:
  RememberingTokenizer() {
    identity_.kind = "bytes";
    identity_.vocab_size = 2000;
    identity_.bos_id = 1999;
    identity_.eos_id = 1998;
  }
  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override {
    given.push_back(text);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if ((byte & 0xC0) != 0x80) ids->push_back(0);
      ids->back() += byte;
    }
  }
  std::string Decode(std::span<const uint32_t>) const override { return ""; }
  const TokenizerIdentity& identity() const override { return identity_; }

  mutable std::vector<std::string_view> given;

 private:
  TokenizerIdentity identity_;
};

ContrastiveExample ExampleOf(std::vector<InstructedText> texts) {
  ContrastiveExample example;
  example.texts = std::move(texts);
  return example;
}

EncodedRecord RecordOf(const ContrastiveEncoder& encoder, const ContrastiveExample& example) {
  EncodedRecord record;
  ContrastiveEncoder::Fit fit = ContrastiveEncoder::Fit::kFits;
  EXPECT_FALSE(encoder.Encode(example, &record, &fit).has_value());
  EXPECT_EQ(fit, ContrastiveEncoder::Fit::kFits);
  return record;
}

class ContrastiveEncoderTest : public testing::Test {
 protected:
  ContrastiveEncoder With(ContrastiveLimits limits) const { return ContrastiveEncoder(&texts_, limits); }
  /// Whether the tokenizer was given this very memory.
  bool WasGiven(const std::string& text, size_t size) const {
    for (const std::string_view given : tokenizer_.given) {
      if (given.data() == text.data() && given.size() == size) return true;
    }
    return false;
  }

  const RememberingTokenizer tokenizer_;
  const ChatEncoder texts_{LoadChatTemplate("grit"), &tokenizer_};
};

TEST_F(ContrastiveEncoderTest, ATextIsTokenisedWhereItLiesWhetherItIsCutOrNot) {
  const ContrastiveEncoder encoder = With({.query_tokens = 30, .passage_tokens = 40});
  const ContrastiveExample example =
      ExampleOf({{.instruction = "Say", .text = "short", .role = TextRole::kQuery},
                 {.text = std::string(1000, 'x'), .role = TextRole::kPositive}});
  const EncodedRecord record = RecordOf(encoder, example);
  EXPECT_TRUE(WasGiven(example.texts[0].text, 5));
  EXPECT_TRUE(WasGiven(example.texts[1].text, 400)) << "ten characters for each token of the larger limit";
  EXPECT_EQ(record.texts_cut, 1u);
}

TEST_F(ContrastiveEncoderTest, ACutTextIsTheBeginningOfTheWholeOne) {
  std::mt19937_64 random(test::TestSeed());
  const std::string characters[] = {"a", "é", "漢", "𝄞", " "};
  const ContrastiveLimits limits = {.query_tokens = 25, .passage_tokens = 31};
  const ContrastiveEncoder limited = With(limits), whole = With({});
  for (int i = 0; i < 300; ++i) {
    std::string text = "t";
    for (uint64_t left = random() % (i % 10 == 0 ? 500 : 60); left > 0; --left) {
      text += characters[random() % std::size(characters)];
    }
    const bool is_query = random() % 2 == 0;
    const ContrastiveExample example =
        ExampleOf({{.instruction = random() % 2 == 0 ? "" : "Say",
                    .text = text,
                    .role = is_query ? TextRole::kQuery : TextRole::kNegative}});
    std::vector<uint32_t> expected = RecordOf(whole, example).ids;
    const uint64_t limit = is_query ? limits.query_tokens : limits.passage_tokens;
    const bool is_cut = expected.size() > limit;
    if (is_cut) expected.resize(limit);
    const EncodedRecord record = RecordOf(limited, example);
    ASSERT_EQ(record.ids, expected) << text;
    ASSERT_EQ(record.texts_cut, is_cut ? 1u : 0u) << text;
  }
}

/// The template of a tokenizer that puts BOS and EOS around texts.
constexpr char kMarkedTexts[] =
    "user {content}\nassistant [ {content} ]\nbegin {bos}\ninstruction {content} \"\\n\"\n"
    "text [ {content} {eos} ]\n";

TEST_F(ContrastiveEncoderTest, ATextCutAsTokenizersCutKeepsWhatTheTemplateWritesAfterIt) {
  const ChatEncoder marked(ParseChatTemplate(kMarkedTexts, "marked"), &tokenizer_);
  const ContrastiveEncoder encoder(&marked, {.query_tokens = 8, .passage_tokens = 8}, TextCut::kAsTokenizers);
  const uint32_t bos = tokenizer_.identity().bos_id, eos = tokenizer_.identity().eos_id;
  const auto encoded = [&](const std::string& instruction, const std::string& text) {
    return RecordOf(encoder,
                    ExampleOf({{.instruction = instruction, .text = text, .role = TextRole::kPositive}}));
  };
  // As the library: 8 tokens less BOS and EOS are left to the text.
  EXPECT_EQ(encoded("", "abcdef").ids, (std::vector<uint32_t>{bos, 'a', 'b', 'c', 'd', 'e', 'f', eos}));
  EXPECT_EQ(encoded("", "abcdef").texts_cut, 0u);
  const EncodedRecord cut = encoded("", "abcdefg");
  EXPECT_EQ(cut.ids, (std::vector<uint32_t>{bos, 'a', 'b', 'c', 'd', 'e', 'f', eos}));
  EXPECT_EQ(cut.texts_cut, 1u);
  EXPECT_EQ(cut.runs.back().tokens, 7u) << "EOS is pooled with the text";
  EXPECT_EQ(encoded("ii", "abcdefg").ids, (std::vector<uint32_t>{bos, 'i', 'i', '\n', 'a', 'b', 'c', eos}));
}

TEST_F(ContrastiveEncoderTest, ATextOfTheGritRecipeLosesWhatLiesBeyondItsLimitWithItsMarks) {
  const ChatEncoder marked(ParseChatTemplate(kMarkedTexts, "marked"), &tokenizer_);
  const ContrastiveEncoder encoder(&marked, {.query_tokens = 4, .passage_tokens = 4});
  const EncodedRecord cut = RecordOf(encoder, ExampleOf({{.text = "abcdefg", .role = TextRole::kPositive}}));
  EXPECT_EQ(cut.ids, (std::vector<uint32_t>{tokenizer_.identity().bos_id, 'a', 'b', 'c'}));
}

TEST_F(ContrastiveEncoderTest, ATextCutAsTokenizersCutIsLookedAtWholeWhateverItsCharacters) {
  const ContrastiveEncoder encoder(&texts_, {.query_tokens = 30, .passage_tokens = 40},
                                   TextCut::kAsTokenizers);
  const ContrastiveExample example = ExampleOf({{.text = std::string(1000, 'x'), .role = TextRole::kQuery}});
  EXPECT_EQ(RecordOf(encoder, example).texts_cut, 1u);
  EXPECT_TRUE(WasGiven(example.texts[0].text, 1000));
}

TEST_F(ContrastiveEncoderTest, MarksAroundATextThatLeaveItNoTokenAreToldOnlyWhereItIsCut) {
  const ChatEncoder marked(ParseChatTemplate(kMarkedTexts, "marked"), &tokenizer_);
  const ContrastiveEncoder encoder(&marked, {.query_tokens = 2, .passage_tokens = 2}, TextCut::kAsTokenizers);
  const auto fit_of = [&](const std::string& text) {
    EncodedRecord record;
    ContrastiveEncoder::Fit fit = ContrastiveEncoder::Fit::kFits;
    EXPECT_FALSE(encoder.Encode(ExampleOf({{.text = text, .role = TextRole::kQuery}}), &record, &fit));
    return fit;
  };
  EXPECT_EQ(fit_of(""), ContrastiveEncoder::Fit::kFits);
  EXPECT_EQ(fit_of("a"), ContrastiveEncoder::Fit::kInstructionHasTooManyTokens);
}

TEST_F(ContrastiveEncoderTest, LiteralsAreTokenisedOnceHoweverManyTextsAreEmbedded) {
  const size_t for_literals = tokenizer_.given.size();
  const ContrastiveEncoder encoder = With({.query_tokens = 30, .passage_tokens = 40});
  const ContrastiveExample example =
      ExampleOf({{.instruction = "Say", .text = "one", .role = TextRole::kQuery},
                 {.text = "two", .role = TextRole::kPositive}});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(RecordOf(encoder, example).tokenizer_calls, 3u);
  EXPECT_EQ(tokenizer_.given.size() - for_literals, 300u) << "an instruction and two texts";
}

TEST_F(ContrastiveEncoderTest, AnInstructionOfTooManyCharactersIsFoundWithoutTheTokenizer) {
  const ContrastiveEncoder encoder = With({.query_tokens = 30, .passage_tokens = 40});
  const auto fit_of = [&](size_t characters) {
    EncodedRecord record;
    ContrastiveEncoder::Fit fit = ContrastiveEncoder::Fit::kFits;
    const ContrastiveExample example =
        ExampleOf({{.instruction = std::string(characters, 'i'), .text = "text", .role = TextRole::kQuery}});
    EXPECT_FALSE(encoder.Encode(example, &record, &fit).has_value());
    return fit;
  };
  const size_t before = tokenizer_.given.size();
  EXPECT_EQ(fit_of(301), ContrastiveEncoder::Fit::kInstructionHasTooManyCharacters);
  EXPECT_EQ(tokenizer_.given.size(), before);
  // One less is for the tokenizer to say: an id a character, so that both rules leave out the same records.
  EXPECT_EQ(fit_of(300), ContrastiveEncoder::Fit::kInstructionHasTooManyTokens);
  EXPECT_GT(tokenizer_.given.size(), before);
}

}  // namespace
}  // namespace trainwright

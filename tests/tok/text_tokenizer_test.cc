#include "lib/tok/text_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>
#include <utility>

#include "lib/tok/utf8.h"
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

std::string FamilyPath(const std::string& family) {
  return Fixture("tok/testdata/text_tokenizers/" + family + ".json");
}

/// What Hugging Face tokenizers gives; see make_text_tokenizer_fixtures.py.
const json& Goldens() {
  static const json goldens = json::parse(ReadFile(FamilyPath("goldens")));
  return goldens;
}

const std::vector<std::string>& RandomDocuments() {
  static const std::vector<std::string> documents = [] {
    const json byte_level = json::parse(ReadFile(Fixture("tok/testdata/tokenizer_json/goldens.json")));
    return test::RandomDocuments(Goldens(), byte_level["texts"].get<std::vector<std::string>>());
  }();
  return documents;
}

std::vector<uint32_t> EncodeContinued(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<uint32_t> ids;
  tokenizer.EncodeContinued(text, &ids);
  return ids;
}

std::unique_ptr<JsonTokenizer> Family(const std::string& family) {
  return MakeJsonTokenizer(ReadFile(FamilyPath(family)), family);
}

/// A tokenizer of the same model that knows no added tokens.
std::unique_ptr<JsonTokenizer> WithoutAddedTokens(const std::string& family) {
  json file = json::parse(ReadFile(FamilyPath(family)));
  file["added_tokens"] = json::array();
  return MakeJsonTokenizer(file.dump(), family);
}

class TextTokenizerFamilyTest : public ::testing::TestWithParam<const char*> {
 protected:
  const std::unique_ptr<JsonTokenizer> tokenizer_ = Family(GetParam());
  const json& golden_ = Goldens()["families"][GetParam()];
};

INSTANTIATE_TEST_SUITE_P(Families, TextTokenizerFamilyTest,
                         ::testing::Values("llama2", "llama_legacy", "llama_first", "phi3", "gemma",
                                           "metaspace", "metaspace_fused", "unmarked", "converted", "t5",
                                           "xlmr", "albert", "unigram_bytes", "unigram_plain", "bert",
                                           "bert_cased", "bert_short"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(TextTokenizerFamilyTest, GivesTheLibrarysIdsForWrittenDocuments) {
  const auto written = Goldens()["written"].get<std::vector<std::string>>();
  ASSERT_GT(written.size(), 70u);
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(Encode(*tokenizer_, written[i]), golden_["ids"][i].get<std::vector<uint32_t>>())
        << json(written[i]);
  }
}

TEST_P(TextTokenizerFamilyTest, GivesTheLibrarysTextForItsIds) {
  ASSERT_GT(golden_["ids"].size(), 70u);
  for (size_t i = 0; i < golden_["ids"].size(); ++i) {
    const auto ids = golden_["ids"][i].get<std::vector<uint32_t>>();
    EXPECT_EQ(tokenizer_->Decode(ids), golden_["decoded"][i].get<std::string>()) << "document " << i;
  }
}

TEST_P(TextTokenizerFamilyTest, GivesTheLibrarysIdsForEightThousandRandomDocuments) {
  const size_t stride = Goldens()["documents_per_hash"];
  ASSERT_EQ(golden_["hashes"].size() * stride, RandomDocuments().size());
  ASSERT_GE(RandomDocuments().size(), 8000u);
  for (size_t block = 0; block < golden_["hashes"].size(); ++block) {
    test::Fnv hash;
    for (size_t i = block * stride; i < (block + 1) * stride; ++i) {
      hash.AddDocument(Encode(*tokenizer_, RandomDocuments()[i]));
    }
    EXPECT_EQ(hash.hex(), golden_["hashes"][block]) << "documents from " << block * stride;
  }
}

// What --verify compares with is right itself, and agrees where the library takes no bytes.
TEST_P(TextTokenizerFamilyTest, ItsSlowReferenceGivesTheLibrarysIdsToo) {
  const auto reference = tokenizer_->MakeReference();
  const auto written = Goldens()["written"].get<std::vector<std::string>>();
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(Encode(*reference, written[i]), golden_["ids"][i].get<std::vector<uint32_t>>())
        << json(written[i]);
  }
  SCOPED_TRACE(test::TestSeed());
  test::DocumentRandom random(test::TestSeed(), 3);
  for (size_t i = 0; i < 400; ++i) {
    std::string text = RandomDocuments()[random.Below(8000)];
    if (!text.empty() && i % 2 == 0) {
      text[random.Below(static_cast<uint32_t>(text.size()))] = static_cast<char>(random.Below(256));
    }
    ASSERT_EQ(Encode(*reference, text), Encode(*tokenizer_, text)) << "document " << i;
    ASSERT_EQ(EncodeContinued(*reference, text), EncodeContinued(*tokenizer_, text)) << "document " << i;
  }
}

TEST_P(TextTokenizerFamilyTest, UnmatchedTextIsEncodedAsWithoutAddedTokens) {
  const auto without = WithoutAddedTokens(GetParam());
  const auto reference = tokenizer_->MakeReference();
  std::vector<std::string> texts = Goldens()["written"].get<std::vector<std::string>>();
  for (const SpecialToken& special : tokenizer_->special_tokens())
    texts.push_back(" a" + special.text + " b");
  for (const std::string& text : texts) {
    for (const Tokenizer* tokenizer :
         std::initializer_list<const Tokenizer*>{tokenizer_.get(), reference.get()}) {
      std::vector<uint32_t> at_start, continued;
      tokenizer->EncodeUnmatched(text, /*continued=*/false, &at_start);
      tokenizer->EncodeUnmatched(text, /*continued=*/true, &continued);
      EXPECT_EQ(at_start, Encode(*without, text)) << text;
      EXPECT_EQ(continued, EncodeContinued(*without, text)) << text;
    }
  }
}

TEST_P(TextTokenizerFamilyTest, EachByteThatIsNotUtf8IsOneReplacementCharacter) {
  EXPECT_EQ(Encode(*tokenizer_, "a\xFF\xFE b\xC3"),
            Encode(*tokenizer_, "a\xEF\xBF\xBD\xEF\xBF\xBD b\xEF\xBF\xBD"));
}

// The same bytes in an allocation of their own, for sanitizers, and with others behind them.
TEST_P(TextTokenizerFamilyTest, TheIdsOfAnyBytesDependOnThoseBytesAlone) {
  SCOPED_TRACE(test::TestSeed());
  test::DocumentRandom random(test::TestSeed(), 1);
  for (int round = 0; round < 200; ++round) {
    const size_t size = random.Below(70);
    std::vector<char> exact(size);
    for (char& byte : exact) byte = static_cast<char>(random.Below(256));
    const std::string roomy = std::string(exact.begin(), exact.end()) + "abcdefgh 12345678";
    EXPECT_EQ(Encode(*tokenizer_, {exact.data(), size}),
              Encode(*tokenizer_, std::string_view(roomy).substr(0, size)));
  }
}

TEST_P(TextTokenizerFamilyTest, SurvivesItsIdentity) {
  const auto again = TokenizerFromIdentity(tokenizer_->identity());
  EXPECT_EQ(again->identity(), tokenizer_->identity());
  EXPECT_EQ(Encode(*again, "Hello there 12"), Encode(*tokenizer_, "Hello there 12"));
}

TEST_P(TextTokenizerFamilyTest, RefusesIdsOutsideTheVocabulary) {
  const std::vector<uint32_t> ids = {tokenizer_->identity().vocab_size};
  EXPECT_EQ(test::CodeOf([&] { tokenizer_->Decode(ids); }), ErrorCode::kBadInput);
}

TEST_P(TextTokenizerFamilyTest, GivesTheSameIdsFromManyThreadsAtOnce) {
  const size_t documents = 200;
  std::vector<std::vector<uint32_t>> alone, together[3];
  for (size_t i = 0; i < documents; ++i) alone.push_back(Encode(*tokenizer_, RandomDocuments()[i]));
  std::vector<std::thread> threads;
  for (auto& result : together) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < documents; ++i) result.push_back(Encode(*tokenizer_, RandomDocuments()[i]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : together) EXPECT_EQ(result, alone);
}

TEST(TextTokenizerTest, TextThatGoesOnGetsNoMark) {
  for (const char* family : {"llama2", "llama_first", "gemma", "t5", "xlmr", "unigram_bytes"}) {
    SCOPED_TRACE(family);
    const auto tokenizer = Family(family);
    const bool marks = std::string(family) != "gemma";
    EXPECT_EQ(tokenizer->marks_start(), marks);
    EXPECT_EQ(EncodeContinued(*tokenizer, "the") != Encode(*tokenizer, "the"), marks);
    if (marks) {
      EXPECT_EQ(EncodeContinued(*tokenizer, " the"), Encode(*tokenizer, "the"));
    }
  }
  EXPECT_FALSE(Family("bert")->marks_start());
}

// Read as JSON should be, -18.86... and -12.97... have the sum that the whole has, and the whole comes first;
// the library reads them off by their last bits.
TEST(TextTokenizerTest, ScoresAreReadWithTheLibrarysTwoRoundings) {
  const std::string file =
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,)"
      R"("pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{"type":"Unigram","unk_id":0,)"
      R"("vocab":[["<unk>",-40.0],["a",-18.867134339966274],["b",-12.979491062738484],["ab",-31.84662540270476]],)"
      R"("byte_fallback":false}})";
  EXPECT_EQ(Encode(*MakeJsonTokenizer(file, "x"), "ab"), (std::vector<uint32_t>{1, 2}));
}

// To WhitespaceSplit the U+2581 that Replace makes of a space is none.
TEST(TextTokenizerTest, SpacesThatAreReplacedBeforeWhiteSpaceIsCutAtStay) {
  json file = json::parse(ReadFile(FamilyPath("llama2")));
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  const auto cut = MakeJsonTokenizer(file.dump(), "x"), whole = Family("llama2");
  EXPECT_EQ(Encode(*cut, "all of the king "), Encode(*whole, "all of the king "));
  EXPECT_NE(Encode(*cut, "a\nb"), Encode(*whole, "a\nb"));
  EXPECT_EQ(Encode(*cut->MakeReference(), " a b"), Encode(*cut, " a b"));
}

// A space in the prefix of continuing tokens is of the vocabulary alone: none is folded there.
TEST(TextTokenizerTest, WordPiecesWithASpaceInTheirPrefixAreTheLibrarysWhereSpacesAreFolded) {
  const std::vector<std::string> texts = {"ab", "a b", "ba", "b a b", "abab", "a  b", "#b", " a"};
  const std::string mark = "\xE2\x96\x81";
  const struct {
    std::string prefix;
    std::vector<std::string> tokens;
    std::vector<std::vector<uint32_t>> ids;  // of Hugging Face tokenizers 0.23.3
  } cases[] = {{" ",
                {"[UNK]", "a", " b", mark + "b", " " + mark, "b", " ", " a"},
                {{1, 2}, {1, 4, 2}, {5, 7}, {5, 4, 7, 4, 2}, {1, 2, 7, 2}, {1, 4, 4, 2}, {0}, {0}}},
               {" #",
                {"[UNK]", "a", " #b", mark + "b", " #" + mark, "b", " #a", " b"},
                {{1, 2}, {1, 4, 2}, {5, 6}, {5, 4, 6, 4, 2}, {1, 2, 6, 2}, {1, 4, 4, 2}, {0}, {0}}},
               {mark,
                {"[UNK]", "a", mark + "b", " b", "b", mark + mark, " " + mark, "b" + mark},
                {{1, 2}, {1, 5, 2}, {0}, {0}, {0}, {1, 5, 5, 2}, {0}, {0}}}};
  const std::pair<const char*, json> folds[] = {
      {"pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", mark}, {"prepend_scheme", "never"}, {"split", false}}},
      {"normalizer", {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", mark}}}};
  for (const auto& [prefix, tokens, ids] : cases) {
    json file = {
        {"version", "1.0"},
        {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"continuing_subword_prefix", prefix}}}};
    for (size_t i = 0; i < tokens.size(); ++i) file["model"]["vocab"][tokens[i]] = i;
    for (const auto& [key, step] : folds) {
      SCOPED_TRACE("prefix \"" + prefix + "\", " + key);
      json folding = file;
      folding[key] = step;
      const auto tokenizer = MakeJsonTokenizer(folding.dump(), "x");
      for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(Encode(*tokenizer, texts[i]), ids[i]) << texts[i];
    }
  }
}

TEST(TextTokenizerTest, PostProcessorsSayWhichTokensBeginAndEndATextAndNamesDoElse) {
  const struct {
    const char* family;
    uint32_t bos_id, eos_id, pad_id, unk_id;
  } cases[] = {{"llama2", 1, 2, kNoId, 0}, {"gemma", 2, 1, 0, 3},  {"t5", kNoId, 1, 0, 2},
               {"xlmr", 0, 2, 1, 3},       {"albert", 2, 3, 0, 1}, {"bert", 2, 3, 0, 1},
               {"bert_cased", 2, 3, 0, 1}};
  for (const auto& test_case : cases) {
    SCOPED_TRACE(test_case.family);
    const auto tokenizer = Family(test_case.family);
    const TokenizerIdentity& identity = tokenizer->identity();
    EXPECT_EQ(identity.kind, "tokenizer_json");
    EXPECT_EQ(identity.bos_id, test_case.bos_id);
    EXPECT_EQ(identity.eos_id, test_case.eos_id);
    EXPECT_EQ(identity.pad_id, test_case.pad_id);
    EXPECT_EQ(identity.unk_id, test_case.unk_id);
  }
}

// The library puts these ids around a text whether or not a token of the model is an added one, too.
TEST(TextTokenizerTest, PostProcessorsMayNameTokensThatTheModelAloneHas) {
  for (const auto& [family, bos_id, eos_id] : {std::tuple("bert", 2u, 3u), std::tuple("t5", kNoId, 1u)}) {
    SCOPED_TRACE(family);
    json file = json::parse(ReadFile(FamilyPath(family)));
    file["added_tokens"] = json::array();
    const auto tokenizer = MakeJsonTokenizer(file.dump(), "x");
    EXPECT_EQ(tokenizer->identity().bos_id, bos_id);
    EXPECT_EQ(tokenizer->identity().eos_id, eos_id);
  }
}

TEST(TextTokenizerTest, SpecialTokensAreFoundInTextAndStandForNone) {
  const auto tokenizer = Family("llama2");
  std::vector<uint32_t> ids = Encode(*tokenizer, "</s>");
  EXPECT_EQ(ids, std::vector<uint32_t>{2});
  EXPECT_EQ(tokenizer->Decode(ids), "");
  EXPECT_EQ(tokenizer->special_tokens().size(), 3u);
}

void SetStep(json* file, const char* key, json step) {
  (*file)[key] = std::move(step);
}

TEST(TextTokenizerTest, RefusesWhatItDoesNotDoExactlyByName) {
  const struct {
    const char* family;
    std::function<void(json*)> change;
    const char* named;
  } cases[] = {
      {"llama2", [](json* j) { (*j)["model"]["type"] = "WordLevel"; }, "WordLevel"},
      {"llama2", [](json* j) { (*j)["model"]["dropout"] = 0.1; }, "dropout"},
      {"llama2", [](json* j) { (*j)["model"]["continuing_subword_prefix"] = "##"; },
       "continuing_subword_prefix"},
      {"llama2", [](json* j) { (*j)["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix"},
      {"llama2", [](json* j) { (*j)["model"]["vocab"].erase("<0x41>"); }, "byte_fallback"},
      {"llama2", [](json* j) { (*j)["model"]["unk_token"] = "<nothing>"; }, "<nothing>"},
      {"llama2",
       [](json* j) {
         (*j)["model"]["merges"][0] = json::array({"<unk>", "a"});
       },
       "unk_token"},
      {"llama_legacy", [](json* j) { (*j)["model"]["unk_token"] = nullptr; }, "unk_token"},
      {"llama_legacy", [](json* j) { (*j)["added_tokens"][3]["lstrip"] = true; }, "strips"},
      {"llama2",
       [](json* j) {
         SetStep(j, "normalizer", {{"type", "ByteLevel"}});
       },
       "ByteLevel"},
      {"llama2",
       [](json* j) {
         SetStep(j, "normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "a|b"}}}, {"content", ""}});
       },
       "a|b"},
      {"llama2",
       [](json* j) {
         SetStep(j, "pre_tokenizer", {{"type", "Whitespace"}});
       },
       "Whitespace"},
      {"llama_first",
       [](json* j) {
         SetStep(j, "pre_tokenizer",
                 {{"type", "Split"},
                  {"pattern", {{"String", " "}}},
                  {"behavior", "MergedWithPrevious"},
                  {"invert", false}});
       },
       "Split"},
      {"llama_first", [](json* j) { (*j)["pre_tokenizer"]["replacement"] = "_"; }, "replacement"},
      {"llama_first", [](json* j) { (*j)["pre_tokenizer"]["prepend_scheme"] = "last"; }, "prepend_scheme"},
      {"llama_first", [](json* j) { (*j)["pre_tokenizer"]["add_prefix_space"] = false; }, "add_prefix_space"},
      {"xlmr", [](json* j) { (*j)["pre_tokenizer"]["pretokenizers"][1]["prepend_scheme"] = "first"; },
       "first"},
      {"metaspace",
       [](json* j) {
         (*j)["pre_tokenizer"] = {{"type", "Digits"}};
       },
       "Digits"},
      {"unigram_bytes",
       [](json* j) {
         (*j)["normalizer"]["normalizers"].push_back({{"type", "StripAccents"}});
       },
       "part of what one character became"},
      {"llama2",
       [](json* j) {
         SetStep(j, "decoder", {{"type", "BPEDecoder"}});
       },
       "BPEDecoder"},
      {"t5", [](json* j) { (*j)["normalizer"]["normalizers"][0]["precompiled_charsmap"] = "AAAA"; },
       "character map"},
      {"t5", [](json* j) { (*j)["normalizer"]["normalizers"][0]["precompiled_charsmap"] = "!"; }, "base64"},
      {"t5", [](json* j) { (*j)["model"]["unk_id"] = nullptr; }, "unk_id"},
      {"t5", [](json* j) { (*j)["model"]["unk_id"] = 100000; }, "unk_id"},
      {"t5", [](json* j) { (*j)["model"]["vocab"][3][1] = "x"; }, "model.vocab"},
      {"bert", [](json* j) { (*j)["model"]["unk_token"] = "[NOTHING]"; }, "[NOTHING]"},
      {"bert", [](json* j) { (*j)["model"]["vocab"]["a"] = 4; }, "the id 4 twice"},
      {"bert",
       [](json* j) {
         SetStep(j, "post_processor", {{"type", "Unheard"}});
       },
       "Unheard"},
      {"bert",
       [](json* j) {
         (*j)["truncation"] = {{"max_length", 5}};
       },
       "truncation"},
  };
  for (const auto& test_case : cases) {
    SCOPED_TRACE(test_case.named);
    json file = json::parse(ReadFile(FamilyPath(test_case.family)));
    test_case.change(&file);
    const std::string content = file.dump();
    const auto load = [&] { MakeJsonTokenizer(content, "x/tokenizer.json"); };
    EXPECT_EQ(test::CodeOf(load), ErrorCode::kBadInput);
    EXPECT_THAT(test::MessageOf(load), HasSubstr(test_case.named));
    EXPECT_THAT(test::MessageOf(load), HasSubstr("x/tokenizer.json"));
  }
}

TEST(TextTokenizerTest, RefusesEveryFileThatIsCutShort) {
  for (const char* family : {"llama2", "xlmr", "bert"}) {
    const std::string content = ReadFile(FamilyPath(family));
    for (size_t size = 1; size + 2 < content.size(); size += 197) {
      const auto load = [&] { MakeJsonTokenizer(content.substr(0, size), "cut"); };
      EXPECT_EQ(test::CodeOf(load), ErrorCode::kBadInput) << size;
    }
  }
}

TEST(NormalizeTest, AgreesWithComposingAlone) {
  for (const std::string& document : RandomDocuments()) {
    std::string composed, expected;
    Normalize(NormalForm::kNfc, document, &composed);
    if (!NormalizeNfc(document, &expected)) expected = document;
    ASSERT_EQ(composed, expected) << json(document);
  }
}

}  // namespace
}  // namespace trainwright

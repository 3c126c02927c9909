#include "lib/tok/byte_level_bpe_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/tok/unicode.h"
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
  return Fixture("tok/testdata/tokenizer_json/" + family + ".json");
}

/// What Hugging Face tokenizers gives; see make_tokenizer_json_fixtures.py.
const json& Goldens() {
  static const json goldens = json::parse(ReadFile(FamilyPath("goldens")));
  return goldens;
}

const std::vector<std::string>& RandomDocuments() {
  static const std::vector<std::string> documents =
      test::RandomDocuments(Goldens(), Goldens()["texts"].get<std::vector<std::string>>());
  return documents;
}

/// A family's file with one change.
std::string Changed(const std::string& family, const std::function<void(json*)>& change) {
  json object = json::parse(ReadFile(FamilyPath(family)));
  change(&object);
  return object.dump();
}

class ByteLevelBpeFamilyTest : public ::testing::TestWithParam<const char*> {
 protected:
  const ByteLevelBpeTokenizer tokenizer_{ReadFile(FamilyPath(GetParam())), GetParam()};
  const json& golden_ = Goldens()["families"][GetParam()];
};

INSTANTIATE_TEST_SUITE_P(Families, ByteLevelBpeFamilyTest,
                         ::testing::Values("gpt2", "neox", "llama3", "qwen2", "gpt_oss", "smollm2",
                                           "prefixed", "unknown", "uncut"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ByteLevelBpeFamilyTest, GivesTheLibrarysIdsForWrittenDocuments) {
  const auto written = Goldens()["written"].get<std::vector<std::string>>();
  ASSERT_GT(written.size(), 40u);
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(Encode(tokenizer_, written[i]), golden_["ids"][i].get<std::vector<uint32_t>>())
        << json(written[i]);
  }
}

// The library puts U+FFFD where bytes are not UTF-8, one for the longest beginning of a character.
TEST_P(ByteLevelBpeFamilyTest, GivesTheLibrarysTextForItsIds) {
  for (size_t i = 0; i < golden_["ids"].size(); ++i) {
    const auto ids = golden_["ids"][i].get<std::vector<uint32_t>>();
    const std::string expected = golden_["decoded"][i];
    if (expected.find("\xEF\xBF\xBD") != std::string::npos) continue;
    EXPECT_EQ(tokenizer_.Decode(ids), expected) << "document " << i;
  }
}

TEST_P(ByteLevelBpeFamilyTest, GivesTheLibrarysIdsForTwentyThousandRandomDocuments) {
  const size_t stride = Goldens()["documents_per_hash"];
  ASSERT_EQ(golden_["hashes"].size() * stride, RandomDocuments().size());
  ASSERT_GE(RandomDocuments().size(), 20000u);
  for (size_t block = 0; block < golden_["hashes"].size(); ++block) {
    test::Fnv hash;
    for (size_t i = block * stride; i < (block + 1) * stride; ++i) {
      hash.AddDocument(Encode(tokenizer_, RandomDocuments()[i]));
    }
    EXPECT_EQ(hash.hex(), golden_["hashes"][block]) << "documents from " << block * stride;
  }
}

// What --verify compares with is right itself, and agrees where the library takes no bytes.
TEST_P(ByteLevelBpeFamilyTest, ItsSlowReferenceGivesTheLibrarysIdsToo) {
  const auto reference = tokenizer_.MakeReference();
  const auto written = Goldens()["written"].get<std::vector<std::string>>();
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(Encode(*reference, written[i]), golden_["ids"][i].get<std::vector<uint32_t>>())
        << json(written[i]);
  }
  SCOPED_TRACE(test::TestSeed());
  test::DocumentRandom random(test::TestSeed(), 3);
  for (size_t i = 0; i < 500; ++i) {
    std::string text = RandomDocuments()[random.Below(20000)];
    if (!text.empty() && i % 2 == 0) {
      text[random.Below(static_cast<uint32_t>(text.size()))] = static_cast<char>(random.Below(256));
    }
    ASSERT_EQ(Encode(*reference, text), Encode(tokenizer_, text)) << "document " << i;
  }
}

TEST_P(ByteLevelBpeFamilyTest, UnmatchedTextIsEncodedAsWithoutAddedTokens) {
  json plain = json::parse(ReadFile(FamilyPath(GetParam())));
  plain["added_tokens"] = json::array();
  const ByteLevelBpeTokenizer without(plain.dump(), GetParam());
  const auto reference = tokenizer_.MakeReference();
  std::vector<std::string> texts = Goldens()["texts"].get<std::vector<std::string>>();
  for (const SpecialToken& special : tokenizer_.special_tokens()) texts.push_back(" a" + special.text + " b");
  for (const std::string& text : texts) {
    for (const Tokenizer* tokenizer : std::initializer_list<const Tokenizer*>{&tokenizer_, reference.get()}) {
      std::vector<uint32_t> at_start, continued, expected;
      tokenizer->EncodeUnmatched(text, /*continued=*/false, &at_start);
      tokenizer->EncodeUnmatched(text, /*continued=*/true, &continued);
      without.EncodeContinued(text, &expected);
      EXPECT_EQ(at_start, Encode(without, text)) << text;
      EXPECT_EQ(continued, expected) << text;
    }
  }
}

// The same bytes in an allocation of their own, for sanitizers, and with others behind them.
TEST_P(ByteLevelBpeFamilyTest, TheIdsOfAnyBytesDependOnThoseBytesAlone) {
  SCOPED_TRACE(test::TestSeed());
  test::DocumentRandom random(test::TestSeed(), 1);
  for (int round = 0; round < 300; ++round) {
    const size_t size = random.Below(70);
    std::vector<char> exact(size);
    for (char& byte : exact) byte = static_cast<char>(random.Below(256));
    const std::string roomy = std::string(exact.begin(), exact.end()) + "abcdefgh 12345678";
    EXPECT_EQ(Encode(tokenizer_, {exact.data(), size}),
              Encode(tokenizer_, std::string_view(roomy).substr(0, size)));
  }
}

TEST_P(ByteLevelBpeFamilyTest, SurvivesItsIdentity) {
  const auto again = TokenizerFromIdentity(tokenizer_.identity());
  EXPECT_EQ(again->identity(), tokenizer_.identity());
  EXPECT_EQ(Encode(*again, "Hello there 12"), Encode(tokenizer_, "Hello there 12"));
}

TEST_P(ByteLevelBpeFamilyTest, RefusesIdsOutsideTheVocabulary) {
  const std::vector<uint32_t> ids = {tokenizer_.identity().vocab_size};
  EXPECT_EQ(test::CodeOf([&] { tokenizer_.Decode(ids); }), ErrorCode::kBadInput);
}

TEST_P(ByteLevelBpeFamilyTest, GivesTheSameIdsFromManyThreadsAtOnce) {
  const size_t documents = 400;
  std::vector<std::vector<uint32_t>> alone, together[3];
  for (size_t i = 0; i < documents; ++i) alone.push_back(Encode(tokenizer_, RandomDocuments()[i]));
  std::vector<std::thread> threads;
  for (auto& result : together) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < documents; ++i) result.push_back(Encode(tokenizer_, RandomDocuments()[i]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : together) EXPECT_EQ(result, alone);
}

TEST(ByteLevelBpeTokenizerTest, BytesThatAreNotUtf8ComeBack) {
  SCOPED_TRACE(test::TestSeed());
  for (const char* family : {"gpt2", "neox", "llama3", "qwen2", "gpt_oss", "smollm2", "uncut"}) {
    const auto tokenizer = LoadTokenizer(FamilyPath(family));
    test::DocumentRandom random(test::TestSeed(), 0);
    for (int round = 0; round < 500; ++round) {
      std::string text(1 + random.Below(200), ' ');
      // No valid character above U+007F, so that NFC has nothing to change.
      for (char& byte : text) {
        byte = static_cast<char>(random.Below(3) == 0 ? 0x80 + random.Below(0x40) : random.Below(0x80));
      }
      ASSERT_EQ(tokenizer->Decode(Encode(*tokenizer, text)), text) << family << ", round " << round;
    }
  }
}

TEST(RandomDocumentsTest, AreThoseThatTheLibraryWasAsked) {
  test::Fnv hash;
  for (const std::string& document : RandomDocuments()) {
    for (const char byte : document) hash.Add(static_cast<uint8_t>(byte));
    hash.Add(0xFF);
  }
  EXPECT_EQ(hash.hex(), Goldens()["document_hash"]);
}

TEST(TokenizerJsonTest, ReadsHashSizeAndSpecialIds) {
  const auto tokenizer = LoadTokenizer(FamilyPath("llama3"));
  const std::string content = ReadFile(FamilyPath("llama3"));
  const json object = json::parse(content);
  EXPECT_EQ(tokenizer->identity().kind, "tokenizer_json");
  EXPECT_EQ(tokenizer->identity().sha256, Sha256Of(AsBytes(content)));
  EXPECT_EQ(tokenizer->identity().model, content);
  EXPECT_EQ(tokenizer->identity().vocab_size,
            object["model"]["vocab"].size() + object["added_tokens"].size());
  EXPECT_EQ(tokenizer->identity().bos_id, object["added_tokens"][0]["id"]);
  EXPECT_EQ(tokenizer->identity().eos_id, object["added_tokens"][1]["id"]);
}

TEST(TokenizerJsonTest, OneTokenBeginsAndEndsTextsOfGpt2AndNeox) {
  for (const char* family : {"gpt2", "neox"}) {
    const TokenizerIdentity identity = LoadTokenizer(FamilyPath(family))->identity();
    EXPECT_NE(identity.eos_id, kNoId);
    EXPECT_EQ(identity.bos_id, identity.eos_id);
  }
}

TEST(TokenizerJsonTest, TheConfigBesideItSaysWhichTokensBeginAndEndATextAndTheStreamKeepsIt) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("tokenizer.json"), ReadFile(FamilyPath("qwen2")));
  test::WriteFile(folder.path("tokenizer_config.json"),
                  R"({"bos_token": null, "eos_token": {"content": "<|im_end|>"}, "pad_token": "<|endoftext|>",
                      "unk_token": "<not a token>"})");
  const auto tokenizer = LoadTokenizer(folder.path());
  const auto id_of = [&](const std::string& text) { return Encode(*tokenizer, text).at(0); };
  const TokenizerIdentity& identity = tokenizer->identity();
  EXPECT_EQ(identity.bos_id, kNoId);
  EXPECT_EQ(identity.eos_id, id_of("<|im_end|>"));
  EXPECT_EQ(identity.pad_id, id_of("<|endoftext|>"));
  EXPECT_EQ(identity.unk_id, kNoId);
  EXPECT_EQ(TokenizerFromIdentity(identity)->identity(), identity);
  TokenizerIdentity impossible = identity;
  impossible.eos_id = identity.vocab_size;
  EXPECT_EQ(test::CodeOf([&] { TokenizerFromIdentity(impossible); }), ErrorCode::kBadInput);
}

// transformers makes what its configuration names special, though no added token repeats it.
TEST(TokenizerJsonTest, TheConfigMayNameTokensThatTheModelAloneHas) {
  const test::TemporaryFolder folder;
  json file = json::parse(ReadFile(FamilyPath("neox")));
  file["added_tokens"] = json::array();
  test::WriteFile(folder.path("tokenizer.json"), file.dump());
  const json& vocabulary = file["model"]["vocab"];
  // The last is the text of the token that the vocabulary writes with "\u0120" for the space.
  test::WriteFile(folder.path("tokenizer_config.json"),
                  R"({"bos_token": "\u0120the", "eos_token": "<|endoftext|>", "pad_token": " the"})");
  const auto tokenizer = LoadTokenizer(folder.path());
  const TokenizerIdentity& identity = tokenizer->identity();
  EXPECT_EQ(identity.bos_id, vocabulary["\u0120the"]);
  EXPECT_EQ(identity.eos_id, vocabulary["<|endoftext|>"]);
  EXPECT_EQ(identity.pad_id, kNoId);
  const auto of_stream = TokenizerFromIdentity(identity);
  for (const Tokenizer* each : std::initializer_list<const Tokenizer*>{tokenizer.get(), of_stream.get()}) {
    const std::vector<uint32_t> ids = {vocabulary["a"], identity.eos_id};
    EXPECT_EQ(each->Decode(ids), "a");
  }
}

TEST(TokenizerJsonTest, AFoldersSentencePieceModelComesFirst) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("tokenizer.json"), ReadFile(FamilyPath("gpt2")));
  test::WriteFile(folder.path("tokenizer.model"), ReadFile(Fixture("tok/testdata/unigram-1k.model")));
  EXPECT_EQ(LoadTokenizer(folder.path())->identity().kind, "sentencepiece");
}

TEST(TokenizerJsonTest, SpecialTokensAreFoundInTextAndStandForNone) {
  const auto tokenizer = LoadTokenizer(FamilyPath("qwen2"));
  const auto& specials = tokenizer->special_tokens();
  const auto found = std::find_if(specials.begin(), specials.end(),
                                  [](const SpecialToken& token) { return token.text == "<|im_end|>"; });
  ASSERT_NE(found, specials.end());
  EXPECT_TRUE(found->matched_in_text);
  EXPECT_EQ(Encode(*tokenizer, "<|im_end|>"), std::vector<uint32_t>{found->id});
  EXPECT_EQ(tokenizer->Decode(Encode(*tokenizer, "a<|im_end|>b<tool_call>")), "ab<tool_call>");
}

// The library takes white space that one token has stripped for the next token again, unless that one's own
// stripping leaves nothing of it. The ids are those of tokenizers 0.23.3.
TEST(TokenizerJsonTest, WhiteSpaceThatATokenHasStrippedIsTheLibrarysTokenAgainOrNone) {
  const auto added = [](uint32_t id, const char* content, bool left, bool right) {
    return json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", left},
                {"rstrip", right}, {"normalized", false}, {"special", false}};
  };
  const auto expect = [&](bool left, bool right, const std::vector<uint32_t>& behind_token,
                          const std::vector<uint32_t>& alone) {
    const ByteLevelBpeTokenizer tokenizer(
        Changed("gpt2",
                [&](json* object) {
                  (*object)["added_tokens"] = {added(900, "<b>", false, true), added(901, "\n", left, right)};
                }),
        "gpt2");
    const auto reference = tokenizer.MakeReference();
    EXPECT_EQ(Encode(tokenizer, "<b> \n\n!"), behind_token);
    EXPECT_EQ(Encode(tokenizer, "\n \n!"), alone);
    EXPECT_EQ(Encode(*reference, "<b> \n\n!"), behind_token);
    EXPECT_EQ(Encode(*reference, "\n \n!"), alone);
  };
  expect(false, false, {900, 901, 901, 0}, {901, 220, 901, 0});
  expect(false, true, {900, 901, 901, 0}, {901, 901, 0});
  expect(true, true, {900, 0}, {901, 0});
}

TEST(TokenizerJsonTest, TextThatGoesOnGetsNoPrefix) {
  const auto tokenizer = LoadTokenizer(FamilyPath("prefixed"));
  ASSERT_TRUE(tokenizer->marks_start());
  std::vector<uint32_t> ids;
  tokenizer->EncodeContinued("the", &ids);
  EXPECT_EQ(tokenizer->Decode(ids), "the");
  EXPECT_EQ(tokenizer->Decode(Encode(*tokenizer, "the")), " the");
}

// Files that are saved after a call which asked for them have them, and transformers sets both anew in each.
TEST(TokenizerJsonTest, TruncationAndPaddingOfTheLastCallLeaveTextsWhole) {
  const std::string text = "Texts of more than two tokens.";
  const auto tokenizer = LoadTokenizer(FamilyPath("gpt2"));
  for (const char* strategy : {R"("BatchLongest")", R"({"Fixed": 128})"}) {
    const auto save = [&](json* object) {
      (*object)["truncation"] = {
          {"direction", "Right"}, {"max_length", 2}, {"strategy", "LongestFirst"}, {"stride", 0}};
      (*object)["padding"] = {{"strategy", json::parse(strategy)},
                              {"direction", "Left"},
                              {"pad_to_multiple_of", nullptr},
                              {"pad_id", 900},
                              {"pad_type_id", 0},
                              {"pad_token", "<|endoftext|>"}};
    };
    const ByteLevelBpeTokenizer saved(Changed("gpt2", save), "saved");
    EXPECT_EQ(Encode(saved, text), Encode(*tokenizer, text)) << strategy;
  }
}

TEST(TokenizerJsonTest, RefusesWhatItDoesNotDoExactlyByName) {
  const struct {
    const char* family;
    std::function<void(json*)> change;
    const char* named;
  } cases[] = {
      {"gpt2", [](json* j) { (*j)["version"] = "2.0"; }, "version 1.0"},
      {"gpt2", [](json* j) { (*j)["model"]["type"] = "Unigram"; }, "the pre-tokenizer ByteLevel"},
      {"gpt2", [](json* j) { (*j)["model"]["dropout"] = 0.1; }, "dropout"},
      {"gpt2", [](json* j) { (*j)["model"]["byte_fallback"] = true; }, "byte_fallback"},
      {"gpt2", [](json* j) { (*j)["model"]["fuse_unk"] = true; }, "fuse_unk"},
      {"gpt2", [](json* j) { (*j)["model"]["continuing_subword_prefix"] = "##"; },
       "continuing_subword_prefix"},
      {"gpt2", [](json* j) { (*j)["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix"},
      {"gpt2", [](json* j) { (*j)["model"]["unk_token"] = "<nothing>"; }, "<nothing>"},
      {"gpt2",
       [](json* j) {
         (*j)["normalizer"] = {{"type", "NFKC"}};
       },
       "NFKC"},
      {"gpt2", [](json* j) { (*j)["pre_tokenizer"] = nullptr; }, "the decoder ByteLevel"},
      {"qwen2", [](json* j) { (*j)["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\w+|\\W+"; },
       "\\w+|\\W+"},
      {"qwen2", [](json* j) { (*j)["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "MergedWithNext"; },
       "MergedWithNext"},
      {"qwen2", [](json* j) { (*j)["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true; }, "use_regex"},
      {"smollm2", [](json* j) { (*j)["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = false; },
       "individual_digits"},
      {"smollm2", [](json* j) { (*j)["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; },
       "add_prefix_space"},
      {"gpt2",
       [](json* j) {
         (*j)["decoder"] = {{"type", "Metaspace"}};
       },
       "Metaspace"},
      {"gpt2", [](json* j) { (*j)["decoder"] = nullptr; }, "no decoder"},
      {"gpt2",
       [](json* j) {
         (*j)["post_processor"] = {{"type", "BertProcessing"}};
       },
       "post_processor.cls"},
      {"gpt2",
       [](json* j) {
         (*j)["truncation"] = {{"max_length", 5}};
       },
       "truncation"},
      {"gpt2",
       [](json* j) {
         (*j)["padding"] = {{"strategy", "BatchLongest"}};
       },
       "padding"},
      {"gpt2", [](json* j) { (*j)["added_tokens"][0]["id"] = 5; }, "<|endoftext|>"},
      {"gpt2", [](json* j) { (*j)["added_tokens"].push_back((*j)["added_tokens"][0]); }, "twice"},
      {"gpt2", [](json* j) { (*j)["model"]["merges"][0] = "a b c"; }, "model.merges[0]"},
      {"gpt2", [](json* j) { (*j)["model"]["merges"][3] = "a nonsense"; }, "model.merges[3]"},
      {"gpt2", [](json* j) { (*j)["model"]["vocab"]["!"] = 1; }, "the id 1 twice"},
      {"gpt2", [](json* j) { (*j)["model"]["vocab"]["!"] = 9000000; }, "9000000"},
      {"gpt2", [](json* j) { (*j)["model"]["vocab"]["!"] = -1; }, "model.vocab"},
      {"gpt2", [](json* j) { (*j)["model"]["vocab"] = json::object(); }, "no tokens"},
      {"gpt2", [](json* j) { j->erase("model"); }, "model"},
      {"gpt2", [](json* j) { *j = json::array({1}); }, ""},
  };
  for (const auto& test_case : cases) {
    SCOPED_TRACE(test_case.named);
    const std::string content = Changed(test_case.family, test_case.change);
    const auto load = [&] { ByteLevelBpeTokenizer(content, "x/tokenizer.json"); };
    EXPECT_EQ(test::CodeOf(load), ErrorCode::kBadInput);
    EXPECT_THAT(test::MessageOf(load), HasSubstr(test_case.named));
    EXPECT_THAT(test::MessageOf(load), HasSubstr("x/tokenizer.json"));
  }
}

TEST(TokenizerJsonTest, RefusesEveryFileThatIsCutShort) {
  const std::string content = ReadFile(FamilyPath("gpt2"));
  for (size_t size = 1; size + 2 < content.size(); size += 97) {
    const auto load = [&] { ByteLevelBpeTokenizer(content.substr(0, size), "cut"); };
    EXPECT_EQ(test::CodeOf(load), ErrorCode::kBadInput) << size;
  }
}

// Long words are merged by another algorithm than short ones, remembered ones not at all.
TEST(BytePairMergesTest, MergesWordsOfAnyLengthAsTheSlowWayDoes) {
  // The slow way: of all neighbouring pairs the one of the lowest rank, the leftmost of those, again and
  // again.
  std::array<uint32_t, 256> byte_ids;
  for (uint32_t i = 0; i < 256; ++i) byte_ids[i] = i;
  SCOPED_TRACE(test::TestSeed());
  test::DocumentRandom random(test::TestSeed(), 2);
  for (const size_t merges_of_a_rank : {1, 3}) {
    std::vector<BytePairMerge> merges;
    uint32_t next = 256;
    for (int i = 0; i < 60; ++i) {
      const auto token = [&] {
        return i < 6 || random.Below(2) == 0 ? 'a' + random.Below(3) : 256 + random.Below(next - 256);
      };
      const uint32_t left = token(), right = token();
      if (std::none_of(merges.begin(), merges.end(),
                       [&](const BytePairMerge& m) { return m.left == left && m.right == right; })) {
        merges.push_back({left, right, next++, static_cast<uint32_t>(merges.size() / merges_of_a_rank)});
      }
    }
    const BytePairMerges fast(byte_ids, merges);
    BytePairMerges::Scratch scratch;
    for (int round = 0; round < 300; ++round) {
      std::string word(random.Below(120), 'a');
      for (char& letter : word) letter = static_cast<char>('a' + random.Below(3));
      std::vector<uint32_t> slow(word.begin(), word.end());
      for (;;) {
        const BytePairMerge* best = nullptr;
        size_t place = 0;
        for (size_t i = 0; i + 1 < slow.size(); ++i) {
          for (const BytePairMerge& merge : merges) {
            if (merge.left != slow[i] || merge.right != slow[i + 1]) continue;
            if (best != nullptr && best->rank <= merge.rank) continue;
            best = &merge;
            place = i;
          }
        }
        if (best == nullptr) break;
        slow[place] = best->merged;
        slow.erase(slow.begin() + static_cast<ptrdiff_t>(place) + 1);
      }
      fast.Encode(word, &scratch);
      ASSERT_EQ(scratch.ids, slow) << word;
    }
  }
}

TEST(PieceMemoTest, ForgetsRatherThanGrowBeyondItsBudget) {
  PieceMemo memo(1 << 20);
  std::vector<uint32_t> ids;
  uint64_t wrong = 0, remembered = 0;
  for (uint32_t i = 0; i < 200000; ++i) {
    const std::string piece = "piece " + std::to_string(i) + std::string(i % 3 * 9, 'x');
    ids.assign(1 + i % 5, i);
    memo.Remember(PieceMemo::KeyOf(piece), piece, ids);
    const auto found = memo.Find(PieceMemo::KeyOf(piece), piece);
    remembered += found.empty() ? 0 : 1;
    wrong += !found.empty() && !std::equal(found.begin(), found.end(), ids.begin(), ids.end()) ? 1 : 0;
    ASSERT_LE(memo.memory_bytes(), 1u << 20);
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(remembered, 200000u) << "what was put in last is there";
}

// The Unicode Standard, section 3.12, and annex 15: examples.
TEST(NfcTest, ComposesAsAnnex15Says) {
  const struct {
    const char *text, *composed;
  } cases[] = {{"e\u0301", "\u00E9"},
               {"a\u0323\u0302", "\u1EAD"},
               {"a\u0302\u0323", "\u1EAD"},
               {"\u1E0B\u0323", "\u1E0D\u0307"},
               {"\u212B", "\u00C5"},
               {"\u2126", "\u03A9"},
               {"\u0958", "\u0915\u093C"},
               {"\u1111\u1171\u11B6", "\uD4DB"},
               {"\u1111\u1171", "\uD4CC"},
               {"\uD4CC\u11B6", "\uD4DB"},
               {"q\u0307\u0323", "q\u0323\u0307"},
               {"x e\u0301 y o\u0308 z", "x \u00E9 y \u00F6 z"}};
  for (const auto& test_case : cases) {
    std::string normalized;
    ASSERT_TRUE(NormalizeNfc(test_case.text, &normalized)) << test_case.text;
    EXPECT_EQ(normalized, test_case.composed);
    EXPECT_FALSE(NormalizeNfc(test_case.composed, &normalized)) << "a composed text stays";
  }
  std::string untouched = "untouched";
  EXPECT_FALSE(NormalizeNfc("plain \u00E9\u65E5", &untouched));
  EXPECT_EQ(untouched, "untouched");
}

TEST(NfcTest, NothingComposesAcrossBadBytes) {
  std::string normalized;
  EXPECT_FALSE(NormalizeNfc("e\xFF\u0301", &normalized));
  EXPECT_FALSE(NormalizeNfc("e\x80\u0301", &normalized));
  ASSERT_TRUE(NormalizeNfc("\xC3 e\u0301\xCC", &normalized));
  EXPECT_EQ(normalized, "\xC3 \u00E9\xCC");
}

}  // namespace
}  // namespace trainwright

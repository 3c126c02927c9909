// Random documents, encoded by SentencePieceTokenizer and by library_oracle.h.
//
// 20,000 documents over all models; TRAINWRIGHT_NIGHTLY_DOCUMENTS sets another number.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lib/tok/sentencepiece_tokenizer.h"
#include "tests/support/support.h"
#include "tests/tok/library_oracle.h"
#include "tests/tok/random_documents.h"

namespace trainwright {
namespace {

using test::Fixture;
using test::ReadFile;

constexpr const char* kModels[] = {"mistral-v1",      "mistral-v3",       "unigram-1k",
                                   "user-defined",    "no-byte-fallback", "suffix",
                                   "no-dummy-prefix", "normalizing",      "unigram"};

std::string ModelPath(const std::string& name) {
  if (name == "mistral-v1") return Fixture("../examples/data/mistral-v1.model");
  const std::string trained = Fixture("tok/testdata/sentencepiece/" + name + ".model");
  return std::filesystem::exists(trained) ? trained : Fixture("tok/testdata/" + name + ".model");
}

uint64_t DocumentsOfAModel() {
  const char* nightly = std::getenv("TRAINWRIGHT_NIGHTLY_DOCUMENTS");
  const uint64_t documents = nightly != nullptr ? std::strtoull(nightly, nullptr, 10) : 20000;
  return (documents + std::size(kModels) - 1) / std::size(kModels);
}

const std::vector<std::string>& Texts() {
  static const std::vector<std::string> texts = [] {
    const auto goldens = nlohmann::json::parse(ReadFile(Fixture("tok/testdata/tokenizer_json/goldens.json")));
    auto made = goldens["texts"].get<std::vector<std::string>>();
    for (const char* more :
         {"\xE2\x96\x81", "\xE2\x96\x81\xE2\x96\x81the", " \xE2\x96\x81 ", "[REFERENCE_DOC_3]", "[INST]",
          "<s>", "</s>", "<0x0A>", "<unk>", "\xEF\xBC\xA1\xEF\xBC\xA2", "A\xCC\x81", "\xE2\x96", "\xFF\xFE",
          "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
      made.push_back(more);
    }
    return made;
  }();
  return texts;
}

std::string Document(uint64_t seed, uint64_t index) {
  std::string text = test::RandomDocument(seed, index, Texts());
  test::DocumentRandom random(seed + 1, index);
  if (random.Below(200) == 0) {  // a word without end
    const uint32_t first = random.Below(2) == 0 ? 'a' : ' ', kinds = 1 + random.Below(26);
    for (uint32_t size = random.Below(20000); size > 0; --size) {
      text.push_back(static_cast<char>(first + random.Below(kinds)));
    }
  }
  if (!text.empty() && random.Below(4) == 0) {
    for (uint32_t count = 1 + random.Below(4); count > 0; --count) {
      text[random.Below(static_cast<uint32_t>(text.size()))] = static_cast<char>(random.Below(256));
    }
  }
  return text;
}

class SentencePiecePropertyTest : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Models, SentencePiecePropertyTest, ::testing::ValuesIn(kModels),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(SentencePiecePropertyTest, GivesTheLibrarysIdsForRandomDocuments) {
  const std::string serialized = ReadFile(ModelPath(GetParam()));
  const SentencePieceTokenizer tokenizer(serialized, GetParam());
  const test::LibraryOracle library(serialized);
  const uint64_t count = DocumentsOfAModel();
  uint64_t bytes = 0, tokens = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string text = Document(test::TestSeed(), i);
    std::vector<uint32_t> ids;
    tokenizer.Encode(text, &ids);
    ASSERT_EQ(ids, library.Encode(text)) << "seed " << test::TestSeed() << ", document " << i << ": "
                                         << nlohmann::json::binary({text.begin(), text.end()});
    bytes += text.size();
    tokens += ids.size();
  }
  std::cout << GetParam() << ": seed " << test::TestSeed() << ", " << count << " documents, " << bytes
            << " bytes, " << tokens << " tokens, 0 differ; " << tokenizer.method() << "\n";
}

TEST(SentencePieceFixturesTest, AreEncodedByTheSuiteUnlessTheyNormaliseOrAreUnigram) {
  for (const std::string name : kModels) {
    const SentencePieceTokenizer tokenizer(ReadFile(ModelPath(name)), name);
    const bool may_differ = name == "unigram-1k" || name == "unigram" || name == "normalizing";
    EXPECT_TRUE(may_differ || tokenizer.method() == "encoded by the suite itself") << name;
  }
}

TEST(SentencePieceFixturesTest, AreAllEncodedByTheSuite) {
  for (const std::string name : kModels) {
    const SentencePieceTokenizer tokenizer(ReadFile(ModelPath(name)), name);
    EXPECT_EQ(tokenizer.method(), "encoded by the suite itself") << name;
  }
}

}  // namespace
}  // namespace trainwright

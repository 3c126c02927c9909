#include "lib/formats/token_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;

struct Document {
  std::vector<uint32_t> tokens;
  uint64_t source_bytes = 0;
  bool operator==(const Document&) const = default;
};

TokenStreamHeader SmallHeader(uint32_t vocab_size = 300) {
  TokenStreamHeader header;
  header.tokenizer.kind = "sentencepiece";
  header.tokenizer.model = "a model";
  header.tokenizer.sha256 = Sha256Of(AsBytes("a model"));
  header.tokenizer.vocab_size = vocab_size;
  header.tokenizer.bos_id = 1;
  header.tokenizer.eos_id = 2;
  header.provenance_json = R"({"tool":"test"})";
  return header;
}

std::vector<uint8_t> Encode(const TokenStreamHeader& header, const std::vector<Document>& documents) {
  MemorySink sink;
  TokenStreamWriter writer(&sink, header);
  for (const Document& document : documents) {
    writer.Write({.tokens = document.tokens, .source_bytes = document.source_bytes});
  }
  writer.Finish();
  return sink.bytes();
}

std::vector<Document> ReadAll(TokenStreamReader* reader) {
  std::vector<Document> documents;
  DocumentPiece piece;
  while (reader->Next(&piece)) {
    if (piece.begins) documents.emplace_back();
    documents.back().tokens.insert(documents.back().tokens.end(), piece.tokens.begin(), piece.tokens.end());
    documents.back().source_bytes += piece.source_bytes;
  }
  return documents;
}

std::vector<Document> Decode(ByteSpan bytes) {
  TokenStreamReader reader(MemorySource(bytes, "the stream"));
  return ReadAll(&reader);
}

std::vector<Document> SomeDocuments() {
  return {{{1, 5, 299, 2}, 7}, {{}, 3}, {{4}, 0}, {{0, 0, 0}, 1'000'000'000'000}};
}

/// Gives one byte a read, as a slow pipe may.
class TricklingSource final : public ByteSource {
 public:
  explicit TricklingSource(ByteSpan bytes) : bytes_(bytes) {}
  size_t Read(uint8_t* out, size_t) override {
    if (bytes_.empty()) return 0;
    *out = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return 1;
  }
  const std::string& name() const override { return name_; }

 private:
  ByteSpan bytes_;
  std::string name_ = "trickle";
};

TEST(TokenStreamTest, DocumentsComeBackAsWritten) {
  for (const uint32_t vocab_size : {300u, 65536u, 65537u, 1u << 20}) {
    SCOPED_TRACE(vocab_size);
    std::vector<Document> documents = SomeDocuments();
    documents.push_back({{vocab_size - 1, 0, vocab_size / 2}, 17});
    EXPECT_EQ(Decode(Encode(SmallHeader(vocab_size), documents)), documents);
  }
}

TEST(TokenStreamTest, AnEmptyStreamIsWhole) {
  EXPECT_TRUE(Decode(Encode(SmallHeader(), {})).empty());
}

TEST(TokenStreamTest, HeaderComesBackAsWritten) {
  const std::vector<uint8_t> bytes = Encode(SmallHeader(), {});
  const TokenStreamReader reader(MemorySource(bytes));
  EXPECT_EQ(reader.header().tokenizer, SmallHeader().tokenizer);
  EXPECT_EQ(reader.header().provenance_json, SmallHeader().provenance_json);
}

TEST(TokenStreamTest, TotalsCountDocumentsTokensAndSourceBytes) {
  const std::vector<uint8_t> bytes = Encode(SmallHeader(), SomeDocuments());
  TokenStreamReader reader(MemorySource(bytes));
  ReadAll(&reader);
  EXPECT_EQ(reader.totals(), (TokenStreamTotals{4, 8, 1'000'000'000'010}));
}

TEST(TokenStreamTest, SlowPipesGiveTheSameDocuments) {
  const std::vector<uint8_t> bytes = Encode(SmallHeader(), SomeDocuments());
  TokenStreamReader reader(std::make_unique<TricklingSource>(bytes));
  EXPECT_EQ(ReadAll(&reader), SomeDocuments());
}

TEST(TokenStreamTest, DocumentsLongerThanABlockKeepTokensAndSourceBytesExactly) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::vector<Document> documents;
  for (const size_t size :
       {size_t{1'000'003}, size_t{7}, size_t{131'072}, size_t{131'073}, size_t{300'000}}) {
    Document document;
    for (size_t i = 0; i < size; ++i) document.tokens.push_back(static_cast<uint32_t>(random() % 300));
    document.source_bytes = size * 3 + 1;
    documents.push_back(document);
  }
  EXPECT_EQ(Decode(Encode(SmallHeader(), documents)), documents);
}

TEST(TokenStreamTest, DocumentsThatFitIntoABlockAreOnePiece) {
  MemorySink sink;
  TokenStreamWriter writer(&sink, SmallHeader());
  const std::vector<uint32_t> tokens(50'000, 7);
  for (int i = 0; i < 9; ++i) writer.Write({.tokens = tokens, .source_bytes = 1});
  writer.Finish();
  TokenStreamReader reader(MemorySource(sink.bytes()));
  DocumentPiece piece;
  while (reader.Next(&piece)) {
    EXPECT_TRUE(piece.begins && piece.ends);
    EXPECT_EQ(piece.tokens.size(), tokens.size());
  }
}

TEST(TokenStreamTest, PiecesOfADocumentAreJoined) {
  MemorySink sink;
  TokenStreamWriter writer(&sink, SmallHeader());
  const std::vector<uint32_t> tokens = {1, 2, 3, 4, 5};
  const std::span<const uint32_t> all(tokens);
  writer.Write({.tokens = all.first(2), .begins = true, .ends = false, .source_bytes = 4});
  writer.Write({.tokens = all.subspan(2, 0), .begins = false, .ends = false, .source_bytes = 0});
  writer.Write({.tokens = all.subspan(2), .begins = false, .ends = true, .source_bytes = 5});
  writer.Finish();
  EXPECT_EQ(Decode(sink.bytes()), (std::vector<Document>{{tokens, 9}}));
}

TEST(TokenStreamTest, MillionsOfEmptyDocumentsStayWithinBlockLimits) {
  const std::vector<Document> documents(1'000'000);
  EXPECT_EQ(Decode(Encode(SmallHeader(), documents)).size(), documents.size());
}

TEST(TokenStreamTest, EveryProperPrefixIsRejected) {
  const std::vector<uint8_t> bytes = Encode(SmallHeader(), SomeDocuments());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_EQ(CodeOf([&] { Decode(ByteSpan(bytes).first(cut)); }), ErrorCode::kBadInput) << "cut at " << cut;
  }
}

TEST(TokenStreamTest, EveryProperPrefixOfTwoStreamsExceptTheFirstIsRejected) {
  const std::vector<uint8_t> one = Encode(SmallHeader(), SomeDocuments());
  std::vector<uint8_t> both = one;
  AppendBytes(&both, one);
  for (size_t cut = one.size() + 1; cut < both.size(); ++cut) {
    EXPECT_EQ(CodeOf([&] { Decode(ByteSpan(both).first(cut)); }), ErrorCode::kBadInput) << "cut at " << cut;
  }
}

TEST(TokenStreamTest, EverySingleBitFlipIsRejected) {
  std::vector<uint8_t> bytes = Encode(SmallHeader(), SomeDocuments());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_EQ(CodeOf([&] { Decode(bytes); }), ErrorCode::kBadInput) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
  }
}

TEST(TokenStreamTest, ADeadProducerIsNamedAsSuch) {
  MemorySink sink;
  {
    TokenStreamWriter writer(&sink, SmallHeader());
    const std::vector<uint32_t> tokens(1000, 1);
    for (int i = 0; i < 1000; ++i) writer.Write({.tokens = tokens, .source_bytes = 1});
  }  // never finished
  const std::string message = MessageOf([&] { Decode(sink.bytes()); });
  EXPECT_THAT(message, testing::HasSubstr("the stream: "));
  EXPECT_THAT(message, testing::HasSubstr("producer died"));
  EXPECT_THAT(message, testing::HasSubstr("byte " + std::to_string(sink.bytes().size())));
}

TEST(TokenStreamTest, NothingIsReadAfterAnError) {
  const std::vector<uint8_t> bytes = Encode(SmallHeader(), SomeDocuments());
  TokenStreamReader reader(MemorySource(ByteSpan(bytes).first(bytes.size() - 1)));
  EXPECT_EQ(CodeOf([&] { ReadAll(&reader); }), ErrorCode::kBadInput);
  DocumentPiece piece;
  EXPECT_EQ(CodeOf([&] { (void)reader.Next(&piece); }), ErrorCode::kInternal);
}

TEST(TokenStreamTest, TheEndStaysTheEnd) {
  const std::vector<uint8_t> bytes = Encode(SmallHeader(), {});
  TokenStreamReader reader(MemorySource(bytes));
  DocumentPiece piece;
  EXPECT_FALSE(reader.Next(&piece));
  EXPECT_FALSE(reader.Next(&piece));
}

TEST(TokenStreamTest, ConcatenatedStreamsReadAsOne) {
  std::vector<uint8_t> bytes = Encode(SmallHeader(), SomeDocuments());
  TokenStreamHeader other = SmallHeader();
  other.provenance_json = R"({"tool":"another"})";
  AppendBytes(&bytes, Encode(other, {}));
  AppendBytes(&bytes, Encode(other, {{{9, 9}, 2}}));
  std::vector<Document> expected = SomeDocuments();
  expected.push_back({{9, 9}, 2});
  TokenStreamReader reader(MemorySource(bytes));
  EXPECT_EQ(ReadAll(&reader), expected);
  EXPECT_EQ(reader.totals().documents, 5u);
}

TEST(TokenStreamTest, StreamsOfDifferentTokenizersDoNotMix) {
  std::vector<uint8_t> bytes = Encode(SmallHeader(300), SomeDocuments());
  AppendBytes(&bytes, Encode(SmallHeader(301), SomeDocuments()));
  EXPECT_THAT(MessageOf([&] { Decode(bytes); }), testing::HasSubstr("another tokenizer"));
}

TEST(TokenStreamTest, ContentHashTellsStreamsApart) {
  const auto hash_of = [](const std::vector<uint8_t>& bytes) {
    TokenStreamReader reader(MemorySource(bytes));
    ReadAll(&reader);
    return reader.content_hash();
  };
  const std::vector<uint8_t> one = Encode(SmallHeader(), SomeDocuments());
  const std::vector<uint8_t> other = Encode(SmallHeader(), {{{1}, 7}});
  std::vector<uint8_t> both = one;
  AppendBytes(&both, other);
  EXPECT_EQ(hash_of(one), hash_of(one));
  EXPECT_NE(hash_of(one), hash_of(other));
  EXPECT_NE(hash_of(one), hash_of(both));
}

/// A header's bytes after `edit`, with its hash made right again.
std::vector<uint8_t> EditedHeader(const std::function<void(std::vector<uint8_t>*)>& edit) {
  std::vector<uint8_t> bytes = Encode(SmallHeader(), {});
  uint32_t header_bytes;
  std::memcpy(&header_bytes, &bytes[12], 4);
  edit(&bytes);
  const uint64_t hash = Xxh3(ByteSpan(bytes).first(header_bytes - 8));
  std::memcpy(&bytes[header_bytes - 8], &hash, 8);
  return bytes;
}

TEST(TokenStreamTest, AnotherMajorVersionIsRefusedByName) {
  const auto bytes = EditedHeader([](std::vector<uint8_t>* header) { (*header)[8] = 2; });
  EXPECT_THAT(MessageOf([&] { Decode(bytes); }), testing::HasSubstr("version 2.0"));
}

TEST(TokenStreamTest, AnUnknownRequiredFlagIsRefused) {
  const auto bytes = EditedHeader([](std::vector<uint8_t>* header) { (*header)[23] = 0x80; });
  EXPECT_THAT(MessageOf([&] { Decode(bytes); }), testing::HasSubstr("needs a feature"));
}

TEST(TokenStreamTest, AnUnknownMinorVersionAndOptionalFlagAreRead) {
  const auto bytes = EditedHeader([](std::vector<uint8_t>* header) {
    (*header)[10] = 9;
    (*header)[24] = 1;
  });
  EXPECT_NO_THROW(TokenStreamReader(MemorySource(bytes)));
}

TEST(TokenStreamTest, AModelThatIsNotWhatItsHashSaysIsRefused) {
  const auto bytes = EditedHeader([](std::vector<uint8_t>* header) { (*header)[56] ^= 1; });
  EXPECT_THAT(MessageOf([&] { Decode(bytes); }), testing::HasSubstr("not what its hash says"));
}

TEST(TokenStreamTest, RecordKindsThatNobodyKnowsAreRefused) {
  const auto bytes = EditedHeader([](std::vector<uint8_t>* header) { (*header)[52] = 3; });
  EXPECT_THAT(MessageOf([&] { Decode(bytes); }), testing::HasSubstr("kind 3"));
  EXPECT_NE(
      MessageOf([] { Decode(EditedHeader([](std::vector<uint8_t>* header) { (*header)[52] = 127; })); }), "");
}

TEST(TokenStreamTest, MemoryGrowsWithWhatArrivesNotWithWhatAHeaderClaims) {
  std::vector<uint8_t> bytes = Encode(SmallHeader(), {});
  const uint32_t claimed = 270 << 20;
  std::memcpy(&bytes[12], &claimed, 4);
  const auto peak_kib = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak_kib();
  EXPECT_EQ(CodeOf([&] { Decode(bytes); }), ErrorCode::kBadInput);
  EXPECT_LT(peak_kib() - before, 64 << 10);
}

TEST(TokenStreamTest, AnotherFileIsNamedAsSuch) {
  EXPECT_THAT(MessageOf([&] { Decode(AsBytes("{\"text\": \"hello\"}\n")); }),
              testing::HasSubstr("is not a token stream"));
}

TEST(TokenStreamTest, IdsOutsideTheVocabularyAreRefused) {
  MemorySink sink;
  TokenStreamWriter writer(&sink, SmallHeader(300));
  const std::vector<uint32_t> tokens = {300};
  EXPECT_EQ(CodeOf([&] { writer.Write({.tokens = tokens}); }), ErrorCode::kInternal);

  // A stream of a writer that did not care: vocabulary lowered behind its back.
  std::vector<uint8_t> bytes = Encode(SmallHeader(), SomeDocuments());
  uint32_t header_bytes;
  std::memcpy(&header_bytes, &bytes[12], 4);
  bytes[32] = 100;
  bytes[33] = 0;
  const uint64_t hash = Xxh3(ByteSpan(bytes).first(header_bytes - 8));
  std::memcpy(&bytes[header_bytes - 8], &hash, 8);
  EXPECT_THAT(MessageOf([&] { Decode(bytes); }), testing::HasSubstr("token id 299"));
}

TEST(TokenStreamTest, PiecesOutOfOrderAreABug) {
  const std::vector<uint32_t> tokens = {1};
  MemorySink sink;
  TokenStreamWriter writer(&sink, SmallHeader());
  EXPECT_EQ(CodeOf([&] { writer.Write({.tokens = tokens, .begins = false}); }), ErrorCode::kInternal);
  writer.Write({.tokens = tokens, .ends = false});
  EXPECT_EQ(CodeOf([&] { writer.Write({.tokens = tokens}); }), ErrorCode::kInternal);
  EXPECT_EQ(CodeOf([&] { writer.Finish(); }), ErrorCode::kInternal);
}

}  // namespace
}  // namespace trainwright

// The hex dumps of the man pages: what they document is what readers see and writers write, byte for byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <tuple>

#include "lib/formats/token_stream.h"
#include "lib/io/byte_source.h"
#include "tests/formats/reference_decoder.h"
#include "tests/formats/shard_fixture.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

TokenizerIdentity DemoTokenizer() {
  TokenizerIdentity tokenizer;
  tokenizer.kind = "demo";
  tokenizer.model = "M";
  tokenizer.sha256 = Sha256Of(AsBytes("M"));
  tokenizer.vocab_size = 300;
  tokenizer.bos_id = 1;
  tokenizer.eos_id = 2;
  return tokenizer;
}

ShardSetHeader DemoSet() {
  ShardSetHeader header;
  header.tokenizer = DemoTokenizer();
  header.mode = PackMode::kBestFit;
  header.chunk_tokens = 4;
  header.chunks_per_frame = 2;
  header.provenance_json = "{}";
  return header;
}

std::vector<Chunk> DemoChunks() {
  return {{{{3, 0, kNoId, 4}, {1, kSegmentEndsMidDocument, 299, 2}}, {1, 7, 2, 1}},
          {{{2, kSegmentStartsMidDocument, kNoId, 6}, {2, kSegmentPadding, kNoId, 0}}, {299, 2, 0, 0}}};
}

TEST(TokenStreamVectorTest, TheReaderSeesWhatTheManPageSays) {
  const std::vector<uint8_t> bytes = test::HexDumpOf("trainwright-token-stream.5");
  TokenStreamReader reader(MemorySource(bytes));
  EXPECT_EQ(reader.header().tokenizer, DemoTokenizer());
  EXPECT_EQ(reader.header().provenance_json, "{}");
  DocumentPiece piece;
  ASSERT_TRUE(reader.Next(&piece));
  EXPECT_THAT(piece.tokens, testing::ElementsAre(1, 7, 299, 2));
  EXPECT_EQ(piece.source_bytes, 5u);
  ASSERT_TRUE(reader.Next(&piece));
  EXPECT_TRUE(piece.tokens.empty() && piece.begins && piece.ends);
  EXPECT_EQ(piece.source_bytes, 1u);
  EXPECT_FALSE(reader.Next(&piece));
}

TEST(TokenStreamVectorTest, TheWriterWritesTheBytesOfTheManPage) {
  MemorySink sink;
  TokenStreamWriter writer(&sink, {DemoTokenizer(), RecordKind::kLm, "{}"});
  const std::vector<uint32_t> tokens = {1, 7, 299, 2};
  writer.Write({.tokens = tokens, .source_bytes = 5});
  writer.Write({.tokens = {}, .source_bytes = 1});
  writer.Finish();
  EXPECT_EQ(HexEncode(sink.bytes()), HexEncode(test::HexDumpOf("trainwright-token-stream.5")));
}

TEST(OwnKindVectorTest, TheStreamWriterWritesTheBytesOfTheManPage) {
  MemorySink sink;
  TokenStreamWriter writer(&sink, {DemoTokenizer(), RecordKind{200}, "{}"});
  const std::vector<uint32_t> tokens = {1, 7, 299, 2};
  writer.Write({.tokens = tokens, .source_bytes = 5});
  writer.Write({.tokens = {}, .source_bytes = 1});
  writer.Finish();
  EXPECT_EQ(HexEncode(sink.bytes()), HexEncode(test::HexDumpOf("trainwright-token-stream.5", 3)));
}

TEST(OwnKindVectorTest, TheStreamReaderSeesWhatTheManPageSays) {
  TokenStreamReader reader(MemorySource(test::HexDumpOf("trainwright-token-stream.5", 3)));
  EXPECT_EQ(reader.header().record_kind, RecordKind{200});
  DocumentPiece piece;
  ASSERT_TRUE(reader.Next(&piece));
  EXPECT_THAT(piece.tokens, testing::ElementsAre(1, 7, 299, 2));
}

TEST(OwnKindVectorTest, ShardsAreLaidOutAsThoseOfText) {
  for (const int kind : {128, 255}) {
    ShardSetHeader own = DemoSet();
    own.record_kind = static_cast<RecordKind>(kind);
    const std::vector<uint8_t> bytes = test::EncodeShard(own, DemoChunks());
    EXPECT_EQ(test::ReadShardStream(bytes), DemoChunks());
    const auto shards = test::DecodeShardsByReference(std::string(AsText(bytes)));
    ASSERT_EQ(shards.size(), 1u);
    EXPECT_EQ(shards[0].header.record_kind, kind);
    EXPECT_EQ(EncodeFrame(own, DemoChunks(), 0, 3).bytes, EncodeFrame(DemoSet(), DemoChunks(), 0, 3).bytes);
  }
}

TEST(ShardVectorTest, TheReadersSeeWhatTheManPageSays) {
  const std::vector<uint8_t> bytes = test::HexDumpOf("trainwright-shard.5");
  EXPECT_EQ(test::ReadShardStream(bytes), DemoChunks());
  EXPECT_EQ(test::ReadShardView(bytes), DemoChunks());
  const ShardInfo info = ShardView(bytes, "the vector").info();
  EXPECT_EQ(info.header.tokenizer, DemoTokenizer());
  EXPECT_TRUE(info.last);
  EXPECT_EQ(info.totals, (ShardTotals{2, 2, 6, 2, 1, 0, 12, 0}));
}

TEST(ShardVectorTest, TheWriterWritesTheBytesOfTheManPage) {
  const std::vector<uint8_t> bytes = test::HexDumpOf("trainwright-shard.5");
  const std::vector<Chunk> chunks = DemoChunks();
  EncodedFrame frame = EncodeFrame(DemoSet(), chunks, 0, 3);
  // Releases of zstd may compress differently: take the frame as it is in the man page, when it has the same
  // content.
  const FrameEntry entry = ShardView(bytes, "the vector").info().frames.at(0);
  EXPECT_EQ(frame.content_hash, entry.content_hash);
  const auto start = bytes.begin() + static_cast<ptrdiff_t>(entry.offset);
  frame.bytes.assign(start, start + entry.size_bytes);
  frame.hash = Xxh3(frame.bytes);
  MemorySink sink;
  ShardWriter writer(&sink, DemoSet(), 0, 0);
  writer.AddFrame(frame);
  writer.Finish(true, 0);
  EXPECT_EQ(HexEncode(sink.bytes()), HexEncode(bytes));
}

// Of sft records: a conversation whose first two ids are read and whose last two are predicted, and another
// that is cut between ids that are read.
const std::vector<uint32_t> kFirstPrompt = {1, 7}, kFirstAnswer = {299, 2}, kSecondPrompt = {1, 8},
                            kSecondAnswer = {9};

ShardSetHeader SftDemoSet() {
  ShardSetHeader header = DemoSet();
  header.record_kind = RecordKind::kSft;
  header.chunk_tokens = 5;
  return header;
}

std::vector<Chunk> SftDemoChunks() {
  return {{{{2, kSegmentNoLoss, kNoId, 5},
            {2, kSegmentContinuesPrevious, kNoId, 4},
            {1, kSegmentNoLoss | kSegmentEndsMidDocument | kSegmentNextNoLoss, 8, 1}},
           {1, 7, 299, 2, 1}},
          {{{1, kSegmentNoLoss | kSegmentStartsMidDocument, kNoId, 1},
            {1, kSegmentContinuesPrevious, kNoId, 3},
            {3, kSegmentPadding, kNoId, 0}},
           {8, 9, 0, 0, 0}}};
}

TEST(SftVectorTest, TheStreamReaderSeesWhatTheManPageSays) {
  const std::vector<uint8_t> bytes = test::HexDumpOf("trainwright-token-stream.5", 1);
  TokenStreamReader reader(MemorySource(bytes));
  EXPECT_EQ(reader.header().record_kind, RecordKind::kSft);
  struct Expected {
    std::vector<uint32_t> tokens;
    bool begins, ends, loss;
    uint64_t source_bytes;
  };
  for (const Expected& expected : {Expected{kFirstPrompt, true, false, false, 5},
                                   {kFirstAnswer, false, true, true, 4},
                                   {kSecondPrompt, true, false, false, 2},
                                   {kSecondAnswer, false, true, true, 3}}) {
    DocumentPiece piece;
    ASSERT_TRUE(reader.Next(&piece));
    EXPECT_THAT(piece.tokens, testing::ElementsAreArray(expected.tokens));
    EXPECT_EQ(piece.begins, expected.begins);
    EXPECT_EQ(piece.ends, expected.ends);
    EXPECT_EQ(piece.loss, expected.loss);
    EXPECT_EQ(piece.source_bytes, expected.source_bytes);
  }
  DocumentPiece piece;
  EXPECT_FALSE(reader.Next(&piece));
}

TEST(SftVectorTest, TheStreamWriterWritesTheBytesOfTheManPage) {
  MemorySink sink;
  TokenStreamWriter writer(&sink, {DemoTokenizer(), RecordKind::kSft, "{}"});
  writer.Write({.tokens = kFirstPrompt, .ends = false, .source_bytes = 5, .loss = false});
  writer.Write({.tokens = kFirstAnswer, .begins = false, .source_bytes = 4});
  writer.Write({.tokens = kSecondPrompt, .ends = false, .source_bytes = 2, .loss = false});
  writer.Write({.tokens = kSecondAnswer, .begins = false, .source_bytes = 3});
  writer.Finish();
  EXPECT_EQ(HexEncode(sink.bytes()), HexEncode(test::HexDumpOf("trainwright-token-stream.5", 1)));
}

TEST(SftVectorTest, TheShardReadersSeeWhatTheManPageSays) {
  const std::vector<uint8_t> bytes = test::HexDumpOf("trainwright-shard.5", 1);
  EXPECT_EQ(test::ReadShardStream(bytes), SftDemoChunks());
  EXPECT_EQ(test::ReadShardView(bytes), SftDemoChunks());
  const ShardInfo info = ShardView(bytes, "the vector").info();
  EXPECT_EQ(info.header.record_kind, RecordKind::kSft);
  EXPECT_EQ(info.totals, (ShardTotals{2, 2, 7, 3, 1, 0, 14, 3}));
}

TEST(SftVectorTest, TheReferenceDecoderSeesWhatTheShardWriterWrites) {
  const std::vector<uint8_t> bytes = test::EncodeShard(SftDemoSet(), SftDemoChunks());
  const auto shards = test::DecodeShardsByReference(std::string(AsText(bytes)));
  ASSERT_EQ(shards.size(), 1u);
  EXPECT_EQ(shards[0].header.record_kind, 1);
  EXPECT_EQ(shards[0].loss_tokens, 3u);
  EXPECT_THAT(shards[0].totals, testing::ElementsAre(2, 2, 7, 3, 1, 0, 14));
  ASSERT_EQ(shards[0].chunks.size(), 2u);
  std::vector<int> flags;
  for (const test::ReferenceChunk& chunk : shards[0].chunks) {
    for (const test::ReferenceSegment& segment : chunk.segments) flags.push_back(segment.flags);
  }
  EXPECT_THAT(flags, testing::ElementsAre(8, 16, 8 | 2 | 32, 8 | 1, 16, 4));
}

bool StreamIsRead(ByteSpan bytes) {
  try {
    TokenStreamReader reader(MemorySource(bytes));
    for (DocumentPiece piece; reader.Next(&piece);) {
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool ShardsAreRead(ByteSpan bytes) {
  try {
    test::ReadShardStream(bytes);
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool ViewIsRead(ByteSpan bytes) {
  try {
    test::ReadShardView(bytes);
  } catch (const Error&) {
    return false;
  }
  return true;
}

void ExpectSealed(std::vector<uint8_t> bytes, bool (*is_read)(ByteSpan)) {
  ASSERT_TRUE(is_read(bytes));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(is_read(ByteSpan(bytes).first(size))) << size;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto flip = static_cast<uint8_t>(1u << (bit % 8));
    bytes[bit / 8] ^= flip;
    EXPECT_FALSE(is_read(bytes)) << "bit " << bit;
    bytes[bit / 8] ^= flip;
  }
}

TEST(SftVectorTest, EveryFlippedBitAndEveryPrefixIsRefused) {
  ExpectSealed(test::HexDumpOf("trainwright-token-stream.5", 1), &StreamIsRead);
  ExpectSealed(test::HexDumpOf("trainwright-shard.5", 1), &ShardsAreRead);
  ExpectSealed(test::HexDumpOf("trainwright-shard.5", 1), &ViewIsRead);
}

TEST(SftVectorTest, SegmentsThatDoNotFitTogetherAreRefused) {
  const auto refused = [](std::vector<Segment> segments) {
    size_t tokens = 0;
    for (const Segment& segment : segments) tokens += segment.tokens;
    const Chunk chunk = {std::move(segments), std::vector<uint32_t>(tokens, 3)};
    try {
      EncodeFrame(SftDemoSet(), std::vector<Chunk>{chunk}, 0, 3);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused({{2, kSegmentNoLoss, kNoId, 0}, {3, kSegmentContinuesPrevious, kNoId, 0}}));
  EXPECT_TRUE(refused({{5, kSegmentContinuesPrevious, kNoId, 0}})) << "nothing to continue";
  EXPECT_TRUE(refused({{2, 0, kNoId, 0}, {3, kSegmentContinuesPrevious, kNoId, 0}}))
      << "two runs that are one";
  EXPECT_TRUE(refused(
      {{2, kSegmentEndsMidDocument, 3, 0}, {3, kSegmentContinuesPrevious | kSegmentNoLoss, kNoId, 0}}))
      << "it ended elsewhere";
  EXPECT_TRUE(refused({{5, kSegmentNextNoLoss, kNoId, 0}})) << "no next token";
  EXPECT_TRUE(refused({{5, 64, kNoId, 0}})) << "unknown flag";
}

// Of contrastive records: a query with an instruction, a positive with one and two negatives of which the
// second has one; then a query and a positive without.
std::vector<DocumentPiece> ContrastiveDemoPieces() {
  static const std::vector<uint32_t> kInstruction = {1, 7}, kQuery = {8, 9}, kPositive = {299},
                                     kFirst = {1, 10}, kSecond = {11, 12, 13}, kPlainQuery = {1, 14},
                                     kPlainPositive = {15};
  const auto piece = [](const std::vector<uint32_t>& tokens, uint64_t source_bytes, TextRole role,
                        bool begins_text, bool pooled) {
    DocumentPiece made = {.tokens = tokens, .begins = false, .ends = false, .source_bytes = source_bytes};
    made.role = role;
    made.begins_text = begins_text;
    made.loss = pooled;
    return made;
  };
  std::vector<DocumentPiece> pieces = {piece(kInstruction, 4, TextRole::kQuery, true, false),
                                       piece(kQuery, 6, TextRole::kQuery, false, true),
                                       piece(kInstruction, 4, TextRole::kPositive, true, false),
                                       piece(kPositive, 3, TextRole::kPositive, false, true),
                                       piece(kFirst, 5, TextRole::kNegative, true, true),
                                       piece(kInstruction, 4, TextRole::kNegative, true, false),
                                       piece(kSecond, 9, TextRole::kNegative, false, true),
                                       piece(kPlainQuery, 2, TextRole::kQuery, true, true),
                                       piece(kPlainPositive, 1, TextRole::kPositive, true, true)};
  pieces[0].begins = pieces[7].begins = true;
  pieces[6].ends = pieces[8].ends = true;
  return pieces;
}

ShardSetHeader ContrastiveDemoSet() {
  ShardSetHeader header = DemoSet();
  header.record_kind = RecordKind::kContrastive;
  header.overflow = OverflowPolicy::kError;
  header.chunk_tokens = 17;
  return header;
}

std::vector<Chunk> ContrastiveDemoChunks() {
  constexpr uint8_t kInstruction = kSegmentNoLoss, kText = kSegmentContinuesPrevious;
  return {{{{2, kInstruction, kNoId, 4},
            {2, kText, kNoId, 6},
            {2, kSegmentPositive | kInstruction, kNoId, 4},
            {1, kSegmentPositive | kText, kNoId, 3},
            {2, kSegmentNegative, kNoId, 5},
            {2, kSegmentNegative | kInstruction, kNoId, 4},
            {3, kSegmentNegative | kText, kNoId, 9},
            {2, 0, kNoId, 2},
            {1, kSegmentPositive, kNoId, 1}},
           {1, 7, 8, 9, 1, 7, 299, 1, 10, 1, 7, 11, 12, 13, 1, 14, 15}}};
}

TEST(ContrastiveVectorTest, TheStreamReaderSeesWhatTheManPageSays) {
  const std::vector<uint8_t> bytes = test::HexDumpOf("trainwright-token-stream.5", 2);
  TokenStreamReader reader(MemorySource(bytes));
  EXPECT_EQ(reader.header().record_kind, RecordKind::kContrastive);
  DocumentPiece piece;
  for (const DocumentPiece& expected : ContrastiveDemoPieces()) {
    ASSERT_TRUE(reader.Next(&piece));
    EXPECT_THAT(piece.tokens, testing::ElementsAreArray(expected.tokens));
    EXPECT_EQ(
        std::tie(piece.begins, piece.ends, piece.loss, piece.begins_text, piece.role, piece.source_bytes),
        std::tie(expected.begins, expected.ends, expected.loss, expected.begins_text, expected.role,
                 expected.source_bytes));
  }
  EXPECT_FALSE(reader.Next(&piece));
  EXPECT_EQ(reader.totals(), (TokenStreamTotals{2, 17, 38}));
}

TEST(ContrastiveVectorTest, TheStreamWriterWritesTheBytesOfTheManPage) {
  MemorySink sink;
  TokenStreamWriter writer(&sink, {DemoTokenizer(), RecordKind::kContrastive, "{}"});
  for (const DocumentPiece& piece : ContrastiveDemoPieces()) writer.Write(piece);
  writer.Finish();
  EXPECT_EQ(HexEncode(sink.bytes()), HexEncode(test::HexDumpOf("trainwright-token-stream.5", 2)));
}

TEST(ContrastiveVectorTest, TheShardReadersSeeWhatTheManPageSays) {
  const std::vector<uint8_t> bytes = test::HexDumpOf("trainwright-shard.5", 2);
  EXPECT_EQ(test::ReadShardStream(bytes), ContrastiveDemoChunks());
  EXPECT_EQ(test::ReadShardView(bytes), ContrastiveDemoChunks());
  const ShardInfo info = ShardView(bytes, "the vector").info();
  EXPECT_EQ(info.header.record_kind, RecordKind::kContrastive);
  EXPECT_EQ(info.totals, (ShardTotals{1, 2, 17, 0, 0, 0, 38, 0}));
}

TEST(ContrastiveVectorTest, TheReferenceDecoderSeesWhatTheShardWriterWrites) {
  const std::vector<uint8_t> bytes = test::EncodeShard(ContrastiveDemoSet(), ContrastiveDemoChunks());
  const auto shards = test::DecodeShardsByReference(std::string(AsText(bytes)));
  ASSERT_EQ(shards.size(), 1u);
  EXPECT_EQ(shards[0].header.record_kind, 2);
  EXPECT_THAT(shards[0].totals, testing::ElementsAre(1, 2, 17, 0, 0, 0, 38));
  std::vector<int> flags;
  for (const test::ReferenceSegment& segment : shards[0].chunks.at(0).segments)
    flags.push_back(segment.flags);
  EXPECT_THAT(flags, testing::ElementsAre(8, 16, 64 | 8, 64 | 16, 128, 128 | 8, 128 | 16, 0, 64));
}

TEST(ContrastiveVectorTest, EveryFlippedBitAndEveryPrefixIsRefused) {
  ExpectSealed(test::HexDumpOf("trainwright-token-stream.5", 2), &StreamIsRead);
  ExpectSealed(test::HexDumpOf("trainwright-shard.5", 2), &ShardsAreRead);
  ExpectSealed(test::HexDumpOf("trainwright-shard.5", 2), &ViewIsRead);
}

TEST(ContrastiveVectorTest, PiecesOutOfOrderAreRefused) {
  const auto refused = [](std::vector<DocumentPiece> pieces) {
    static const std::vector<uint32_t> kTokens = {3};
    MemorySink sink;
    TokenStreamWriter writer(&sink, {DemoTokenizer(), RecordKind::kContrastive, "{}"});
    try {
      for (size_t i = 0; i < pieces.size(); ++i) {
        pieces[i].tokens = kTokens;
        pieces[i].begins = i == 0;
        pieces[i].ends = i + 1 == pieces.size();
        writer.Write(pieces[i]);
      }
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  const DocumentPiece query = {.begins_text = true};
  const DocumentPiece positive = {.begins_text = true, .role = TextRole::kPositive};
  const DocumentPiece negative = {.begins_text = true, .role = TextRole::kNegative};
  const DocumentPiece instruction = {.loss = false, .begins_text = true};
  const DocumentPiece rest = {};
  EXPECT_FALSE(refused({instruction, rest, rest, positive, negative}));
  EXPECT_TRUE(refused({query})) << "no positive";
  EXPECT_TRUE(refused({query, negative})) << "no positive";
  EXPECT_TRUE(refused({positive, negative})) << "no query";
  EXPECT_TRUE(refused({query, query, positive})) << "two queries";
  EXPECT_TRUE(refused({query, negative, positive})) << "negatives first";
  EXPECT_TRUE(refused({instruction, positive})) << "nothing to pool";
  EXPECT_TRUE(refused({query, {.loss = false}, positive})) << "an instruction behind its text";
  EXPECT_TRUE(refused({query, {.role = TextRole::kPositive}, positive})) << "a role that changes";
}

TEST(ContrastiveVectorTest, SegmentsThatMakeNoRecordsAreRefused) {
  const auto refused = [](std::vector<Segment> segments) {
    size_t tokens = 0;
    for (const Segment& segment : segments) tokens += segment.tokens;
    const Chunk chunk = {std::move(segments), std::vector<uint32_t>(tokens, 3)};
    try {
      EncodeFrame(ContrastiveDemoSet(), std::vector<Chunk>{chunk}, 0, 3);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused({{8, 0, kNoId, 0}, {9, kSegmentPositive, kNoId, 0}}));
  EXPECT_TRUE(refused({{17, 0, kNoId, 0}})) << "no positive";
  EXPECT_TRUE(refused({{17, kSegmentPositive, kNoId, 0}})) << "no query";
  EXPECT_TRUE(refused({{8, 0, kNoId, 0}, {9, kSegmentPositive | kSegmentNegative, kNoId, 0}}));
  EXPECT_TRUE(refused({{8, kSegmentNoLoss, kNoId, 0}, {9, kSegmentPositive, kNoId, 0}})) << "nothing to pool";
  EXPECT_TRUE(refused({{8, 0, kNoId, 0}, {9, kSegmentPositive | kSegmentStartsMidDocument, kNoId, 0}}))
      << "half a record";
}

TEST(ReferenceDecoderTest, AgreesWithTheTokenStreamWriter) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const uint32_t vocab_size : {300u, 100'000u}) {
    TokenizerIdentity tokenizer = DemoTokenizer();
    tokenizer.vocab_size = vocab_size;
    MemorySink sink;
    TokenStreamWriter writer(&sink, {tokenizer, RecordKind::kLm, "{}"});
    std::vector<std::vector<uint32_t>> documents;
    for (const size_t size : {5, 0, 70'000, 1, 90'000, 300'000}) {
      std::vector<uint32_t>& tokens = documents.emplace_back();
      for (size_t i = 0; i < size; ++i) tokens.push_back(static_cast<uint32_t>(random() % vocab_size));
      writer.Write({.tokens = tokens, .source_bytes = size * 5});
    }
    writer.Finish();

    const test::ReferenceStream stream = test::DecodeStreamByReference(std::string(AsText(sink.bytes())));
    EXPECT_EQ(stream.header.magic, "\x89TWT\r\n\x1A\n");
    EXPECT_EQ(stream.header.vocab_size, vocab_size);
    EXPECT_EQ(stream.header.token_width, vocab_size == 300 ? 2 : 4);
    EXPECT_EQ(stream.header.model, "M");
    EXPECT_EQ(stream.documents, documents.size());
    EXPECT_EQ(stream.tokens, 460'006u);
    EXPECT_EQ(stream.source_bytes, 460'006u * 5);
    std::vector<std::vector<uint32_t>> found;
    uint64_t source_bytes = 0;
    for (const test::ReferencePiece& piece : stream.pieces) {
      if ((piece.flags & 1) != 0) found.emplace_back();
      found.back().insert(found.back().end(), piece.tokens.begin(), piece.tokens.end());
      source_bytes += piece.source_bytes;
      if ((piece.flags & 2) != 0) {
        EXPECT_EQ(source_bytes, found.back().size() * 5);
        source_bytes = 0;
      }
    }
    EXPECT_EQ(found, documents);
  }
}

TEST(ReferenceDecoderTest, AgreesWithTheShardWriter) {
  for (const uint32_t vocab_size : {300u, 65536u, 65537u, 131072u, 131073u, (1u << 24) + 1}) {
    SCOPED_TRACE(vocab_size);
    const ShardSetHeader header = test::SmallShardSet(vocab_size);
    const std::vector<Chunk> chunks = test::SmallChunks(vocab_size);
    std::vector<uint8_t> bytes = test::EncodeShard(header, {chunks[0], chunks[1], chunks[2]}, 0, 0, false);
    AppendBytes(&bytes, test::EncodeShard(header, {chunks[3], chunks[4]}, 1, 3, true));

    const auto shards = test::DecodeShardsByReference(std::string(AsText(bytes)));
    ASSERT_EQ(shards.size(), 2u);
    EXPECT_EQ(shards[0].header.magic, "\x89TWS\r\n\x1A\n");
    EXPECT_EQ(shards[0].header.model, "a model");
    EXPECT_EQ(shards[1].header.model, "");
    EXPECT_FALSE(shards[0].last);
    EXPECT_TRUE(shards[1].last);
    EXPECT_THAT(shards[0].totals, testing::ElementsAre(3, 3, 22, 2, 1, 0, 1'000'000'000'034));
    EXPECT_THAT(shards[1].totals, testing::ElementsAre(2, 2, 9, 7, 0, 0, 10));
    ASSERT_EQ(shards[0].seek_entries.size(), 4u);
    EXPECT_EQ(shards[0].seek_entries[0].second, 0u);
    EXPECT_EQ(shards[0].seek_entries[1].second, shards[0].contents[0].size());
    EXPECT_EQ(shards[0].seek_entries[3].second, 0u);
    size_t number = 0;
    for (const test::ReferenceShard& shard : shards) {
      for (const test::ReferenceChunk& chunk : shard.chunks) {
        const Chunk& expected = chunks.at(number++);
        EXPECT_EQ(chunk.tokens, expected.tokens);
        ASSERT_EQ(chunk.segments.size(), expected.segments.size());
        for (size_t i = 0; i < chunk.segments.size(); ++i) {
          const test::ReferenceSegment& found = chunk.segments[i];
          EXPECT_EQ((Segment{static_cast<uint32_t>(found.tokens), static_cast<uint8_t>(found.flags),
                             static_cast<uint32_t>(found.next_token), found.source_bytes}),
                    expected.segments[i]);
        }
      }
    }
    EXPECT_EQ(number, chunks.size());
  }
}

// Files that version 1.0 wrote. They are never written anew: every later release must read them.
class GoldenTest : public testing::TestWithParam<std::pair<std::string, uint32_t>> {
 protected:
  std::string Read(const std::string& extension) const {
    return test::ReadFile(test::Fixture("golden/v1/" + GetParam().first + extension));
  }
};

TEST_P(GoldenTest, ShardsOfVersion1StayReadable) {
  const std::string bytes = Read(".tws");
  EXPECT_EQ(test::ReadShardStream(AsBytes(bytes)), test::SmallChunks(GetParam().second));
  const std::vector<ByteSpan> shards = ShardView::Split(AsBytes(bytes), "golden");
  ASSERT_EQ(shards.size(), 2u);
  EXPECT_EQ(test::ReadShardView(shards[1]), std::vector<Chunk>{test::SmallChunks(GetParam().second)[4]});
}

TEST(CodedGoldenTest, ShardsOfVersion13StayReadable) {
  const std::string bytes = test::ReadFile(test::Fixture("golden/v1.3/coded.tws"));
  EXPECT_EQ(test::ReadShardStream(AsBytes(bytes)), test::SmallChunks());
  EXPECT_EQ(test::ReadShardView(AsBytes(bytes)), test::SmallChunks());
}

TEST_P(GoldenTest, TokenStreamsOfVersion1StayReadable) {
  const std::string bytes = Read(".twt");
  TokenStreamReader reader(MemorySource(AsBytes(bytes)));
  EXPECT_EQ(reader.header().tokenizer, test::SmallShardSet(GetParam().second).tokenizer);
  DocumentPiece piece;
  for (const Chunk& chunk : test::SmallChunks(GetParam().second)) {
    ASSERT_TRUE(reader.Next(&piece));
    EXPECT_THAT(piece.tokens, testing::ElementsAreArray(chunk.tokens));
    EXPECT_EQ(piece.source_bytes, chunk.segments[0].source_bytes);
  }
  ASSERT_TRUE(reader.Next(&piece));
  EXPECT_TRUE(piece.tokens.empty());
  EXPECT_EQ(piece.source_bytes, 3u);
  EXPECT_FALSE(reader.Next(&piece));
}

INSTANTIATE_TEST_SUITE_P(Version1, GoldenTest,
                         testing::Values(std::pair<std::string, uint32_t>{"narrow", 300u},
                                         std::pair<std::string, uint32_t>{"one-bit", 131072u},
                                         std::pair<std::string, uint32_t>{"byte", 131073u},
                                         std::pair<std::string, uint32_t>{"wide", (1u << 24) + 1}),
                         [](const auto& info) {
                           std::string name = info.param.first;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace trainwright

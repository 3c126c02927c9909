#include "lib/formats/token_stream.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/contrastive_order.h"
#include "lib/formats/file_header.h"

namespace trainwright {
namespace {

// "\x89TWT\r\n\x1A\n": like PNG's, it does not survive a transfer as text.
constexpr FileHeaderFormat kFormat = {{0x89, 'T', 'W', 'T', 0x0D, 0x0A, 0x1A, 0x0A},
                                      "token stream",
                                      8,
                                      0,
                                      "pretokenize makes them of text and records: pretokenize FILE | pack"};
constexpr uint32_t kBlockTag = 0x4B4C4254;    // "TBLK"
constexpr uint32_t kTrailerTag = 0x444E4554;  // "TEND"
constexpr size_t kBlockHeaderBytes = 16;
constexpr size_t kTrailerBytes = 48;
constexpr uint32_t kMaxTableBytes = 1 << 20;
constexpr uint32_t kMaxTokenBytes = 1 << 20;
// What the writer makes: blocks that stay in a cache, well below what readers accept.
constexpr size_t kWriterTokens = 1 << 17;
constexpr size_t kWriterTableBytes = 1 << 16;

constexpr uint8_t kPieceBegins = 1 << 0;
constexpr uint8_t kPieceEnds = 1 << 1;
constexpr uint8_t kPieceNoLoss = 1 << 2;
constexpr uint8_t kPieceBeginsText = 1 << 3;
constexpr int kPieceRoleShift = 4;
constexpr uint8_t kPieceRole = 3 << kPieceRoleShift;

/// The flags that pieces of such records may have.
uint8_t KnownPieceFlags(RecordKind kind) {
  constexpr uint8_t kOfAll = kPieceBegins | kPieceEnds;
  if (kind == RecordKind::kSft) return kOfAll | kPieceNoLoss;
  return kind == RecordKind::kContrastive ? kOfAll | kPieceNoLoss | kPieceBeginsText | kPieceRole : kOfAll;
}

uint8_t FlagsOf(const DocumentPiece& piece) {
  return static_cast<uint8_t>((piece.begins ? kPieceBegins : 0) | (piece.ends ? kPieceEnds : 0) |
                              (piece.loss ? 0 : kPieceNoLoss) | (piece.begins_text ? kPieceBeginsText : 0) |
                              static_cast<int>(piece.role) << kPieceRoleShift);
}

/// Why a piece of a contrastive record breaks their order; nullptr when it keeps it.
const char* FaultOfContrastive(const DocumentPiece& piece, ContrastiveOrder* order) {
  if (piece.begins != (piece.begins_text && piece.role == TextRole::kQuery)) {
    return "a record and its query do not begin together";
  }
  if (const char* fault = order->Add(piece.begins_text, piece.role, piece.loss, piece.tokens.size()))
    return fault;
  return piece.ends ? order->EndRecord() : nullptr;
}

void AppendTokens(std::span<const uint32_t> tokens, int width, std::vector<uint8_t>* out) {
  const size_t start = out->size();
  out->resize(start + tokens.size() * static_cast<size_t>(width));
  uint8_t* bytes = out->data() + start;
  if (width == 4) {
    if (!tokens.empty()) std::memcpy(bytes, tokens.data(), tokens.size_bytes());
    return;
  }
  for (const uint32_t token : tokens) {
    const auto narrow = static_cast<uint16_t>(token);
    std::memcpy(bytes, &narrow, sizeof(narrow));
    bytes += sizeof(narrow);
  }
}

void DecodeTokens(ByteSpan bytes, int width, std::vector<uint32_t>* out) {
  const size_t count = bytes.size() / static_cast<size_t>(width);
  out->resize(count);
  if (width == 4) {
    if (count > 0) std::memcpy(out->data(), bytes.data(), bytes.size());
    return;
  }
  const uint8_t* next = bytes.data();
  for (uint32_t& token : *out) {
    uint16_t narrow;
    std::memcpy(&narrow, next, sizeof(narrow));
    token = narrow;
    next += sizeof(narrow);
  }
}

uint32_t MaxOf(std::span<const uint32_t> tokens) {
  uint32_t max = 0;
  for (const uint32_t token : tokens) max = std::max(max, token);
  return max;
}

/// floor(bytes * part / whole) without overflow.
uint64_t ShareOf(uint64_t bytes, uint64_t part, uint64_t whole) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) * part / whole);
}

}  // namespace

struct TokenStreamWriter::Impl {
  Impl(ByteSink* destination, TokenStreamHeader header)
      : sink(destination),
        vocab_size(header.tokenizer.vocab_size),
        width(TokenWidth(vocab_size)),
        record_kind(header.record_kind) {
    const std::vector<uint8_t> settings(kFormat.settings_bytes);  // codec 0: raw; the rest is reserved
    Emit(EncodeFileHeader(kFormat, {std::move(header.tokenizer), header.record_kind,
                                    std::move(header.provenance_json), settings}));
  }

  void Emit(ByteSpan bytes) {
    hash.Update(bytes);
    sink->Write(bytes);
  }

  void AddPiece(const DocumentPiece& piece) {
    AppendVarint(&table, piece.tokens.size());
    table.push_back(FlagsOf(piece));
    AppendVarint(&table, piece.source_bytes);
    AppendTokens(piece.tokens, width, &tokens);
    ++pieces;
  }

  size_t room() const { return kWriterTokens - tokens.size() / static_cast<size_t>(width); }

  void FlushBlock() {
    if (pieces == 0) return;
    std::vector<uint8_t> block;
    block.reserve(kBlockHeaderBytes + table.size() + tokens.size() + sizeof(uint64_t));
    AppendInteger(&block, kBlockTag);
    AppendInteger(&block, pieces);
    AppendInteger(&block, static_cast<uint32_t>(table.size()));
    AppendInteger(&block, static_cast<uint32_t>(tokens.size() / static_cast<size_t>(width)));
    AppendBytes(&block, table);
    AppendBytes(&block, tokens);
    AppendInteger(&block, Xxh3(block));
    Emit(block);
    table.clear();
    tokens.clear();
    pieces = 0;
    ++blocks;
  }

  ByteSink* sink;
  uint32_t vocab_size;
  int width;
  RecordKind record_kind;
  ContrastiveOrder order;
  Xxh3Stream hash;
  TokenStreamTotals totals;
  bool in_document = false;
  bool finished = false;
  uint64_t blocks = 0;
  // The block being filled.
  uint32_t pieces = 0;
  std::vector<uint8_t> table, tokens;
};

TokenStreamWriter::TokenStreamWriter(ByteSink* sink, TokenStreamHeader header)
    : impl_(std::make_unique<Impl>(sink, std::move(header))) {}
TokenStreamWriter::~TokenStreamWriter() = default;

void TokenStreamWriter::Write(const DocumentPiece& piece) {
  TRAINWRIGHT_CHECK(!impl_->finished && piece.begins != impl_->in_document);
  TRAINWRIGHT_CHECK((FlagsOf(piece) & ~KnownPieceFlags(impl_->record_kind)) == 0);
  if (impl_->record_kind == RecordKind::kContrastive) {
    if (const char* fault = FaultOfContrastive(piece, &impl_->order))
      throw Error(ErrorCode::kInternal, "piece to write", fault);
  }
  TRAINWRIGHT_CHECK(piece.tokens.empty() || MaxOf(piece.tokens) < impl_->vocab_size);
  if (piece.tokens.size() > impl_->room() || impl_->table.size() >= kWriterTableBytes) impl_->FlushBlock();

  size_t done = 0;
  do {
    const size_t count = std::min(piece.tokens.size() - done, kWriterTokens);
    const size_t end = done + count;
    const uint64_t total = piece.tokens.size();
    DocumentPiece part;
    part.loss = piece.loss;
    part.role = piece.role;
    part.begins_text = piece.begins_text && done == 0;
    part.tokens = piece.tokens.subspan(done, count);
    part.begins = piece.begins && done == 0;
    part.ends = piece.ends && end == total;
    part.source_bytes = end == total ? piece.source_bytes : ShareOf(piece.source_bytes, end, total);
    if (done > 0) {
      part.source_bytes -= ShareOf(piece.source_bytes, done, total);
      impl_->FlushBlock();
    }
    impl_->AddPiece(part);
    done = end;
  } while (done < piece.tokens.size());

  impl_->in_document = !piece.ends;
  impl_->totals.documents += piece.begins ? 1 : 0;
  impl_->totals.tokens += piece.tokens.size();
  impl_->totals.source_bytes += piece.source_bytes;
}

void TokenStreamWriter::Finish() {
  TRAINWRIGHT_CHECK(!impl_->finished && !impl_->in_document);
  impl_->FlushBlock();
  std::vector<uint8_t> trailer;
  AppendInteger(&trailer, kTrailerTag);
  AppendInteger(&trailer, uint32_t{0});
  for (const uint64_t value :
       {impl_->totals.documents, impl_->totals.tokens, impl_->totals.source_bytes, impl_->blocks}) {
    AppendInteger(&trailer, value);
  }
  impl_->Emit(trailer);
  std::vector<uint8_t> digest;
  AppendInteger(&digest, impl_->hash.Digest());
  impl_->sink->Write(digest);
  impl_->finished = true;
}

const TokenStreamTotals& TokenStreamWriter::totals() const {
  return impl_->totals;
}

bool IsTokenStream(ByteSpan start) {
  static_assert(kFormat.magic.size() == kTokenStreamStartBytes);
  return start.size() >= kFormat.magic.size() &&
         std::equal(kFormat.magic.begin(), kFormat.magic.end(), start.begin());
}

struct TokenStreamReader::Impl {
  explicit Impl(std::unique_ptr<ByteSource> source) : reader(std::move(source)) { header = ReadHeader(); }

  Error Corrupt(uint64_t offset, const std::string& why) const {
    return BadInputAt(offset, reader.name(), why);
  }

  /// Replaces `out` by exactly `size` bytes of this stream.
  void Read(size_t size, std::vector<uint8_t>* out) {
    out->clear();
    Append(size, out);
  }
  void Append(size_t size, std::vector<uint8_t>* out) {
    const size_t start = out->size();
    if (AppendFrom(&reader, size, out) < size)
      throw CutShortAt(reader.position(), reader.name(), kFormat.name);
    stream_hash.Update(ByteSpan(*out).subspan(start));
  }

  TokenStreamHeader ReadHeader() {
    const uint64_t offset = reader.position();
    const uint64_t size = FileHeaderSize(kFormat, reader.Peek(kFileHeaderPrefixBytes), reader.name(), offset);
    std::vector<uint8_t> bytes;
    Append(size, &bytes);
    FileHeader file_header = DecodeFileHeader(kFormat, bytes, reader.name(), offset);
    if (file_header.settings[0] != 0)
      throw Corrupt(offset, "blocks are coded in a way that this program lacks");
    return {std::move(file_header.tokenizer), file_header.record_kind,
            std::move(file_header.provenance_json)};
  }

  /// Reads a block, or the trailer and what may follow it.
  /// \returns false at the end of the last stream
  bool ReadBlock() {
    const uint64_t offset = reader.position();
    Read(kBlockHeaderBytes, &block);
    ByteParser parser(block);
    const auto tag = parser.Read<uint32_t>();
    if (tag == kTrailerTag) return ReadTrailer(offset);
    if (tag != kBlockTag)
      throw Corrupt(offset, "the token stream is corrupt: neither a block nor a trailer is here");
    pieces_left = parser.Read<uint32_t>();
    const auto table_bytes = parser.Read<uint32_t>();
    const auto token_count = parser.Read<uint32_t>();
    const int width = TokenWidth(header.tokenizer.vocab_size);
    if (table_bytes > kMaxTableBytes || token_count > kMaxTokenBytes / static_cast<uint32_t>(width)) {
      throw Corrupt(offset, "the token stream is corrupt: a block is larger than its limit");
    }
    if (pieces_left == 0) throw Corrupt(offset, "the token stream is corrupt: a block without pieces");
    const size_t token_bytes = token_count * static_cast<size_t>(width);
    Append(table_bytes + token_bytes + sizeof(uint64_t), &block);
    const ByteSpan hashed = ByteSpan(block).first(block.size() - sizeof(uint64_t));
    if (ByteParser(ByteSpan(block).last(sizeof(uint64_t))).Read<uint64_t>() != Xxh3(hashed)) {
      throw Corrupt(offset, "the token stream is corrupt: a block's hash does not match");
    }
    DecodeTokens(hashed.last(token_bytes), width, &tokens);
    if (!tokens.empty() && MaxOf(tokens) >= header.tokenizer.vocab_size) {
      throw Corrupt(offset, "token id " + std::to_string(MaxOf(tokens)) + " lies outside the vocabulary of " +
                                std::to_string(header.tokenizer.vocab_size));
    }
    table = ByteParser(hashed.subspan(kBlockHeaderBytes, table_bytes));
    block_offset = offset;
    tokens_done = 0;
    ++blocks;
    return true;
  }

  bool ReadTrailer(uint64_t offset) {
    const size_t hashed_bytes = kTrailerBytes - sizeof(uint64_t);
    Append(hashed_bytes - block.size(), &block);
    const uint64_t expected = stream_hash.Digest();
    Append(sizeof(uint64_t), &block);
    ByteParser parser(block);
    parser.Read<uint32_t>();
    parser.Read<uint32_t>();
    const TokenStreamTotals claimed = {parser.Read<uint64_t>(), parser.Read<uint64_t>(),
                                       parser.Read<uint64_t>()};
    const auto claimed_blocks = parser.Read<uint64_t>();
    const auto claimed_hash = parser.Read<uint64_t>();
    if (claimed_hash != expected)
      throw Corrupt(offset, "the token stream is corrupt: its hash does not match");
    if (in_document || claimed != stream_totals || claimed_blocks != blocks) {
      throw Corrupt(offset, "the token stream is corrupt: its counts do not match what came before");
    }
    std::vector<uint8_t> digest;
    AppendInteger(&digest, claimed_hash);
    content_hash.Update(digest);
    if (reader.Peek(1).empty()) return false;
    StartNextStream();
    return true;
  }

  void StartNextStream() {
    const uint64_t offset = reader.position();
    stream_hash = Xxh3Stream();
    stream_totals = {};
    blocks = 0;
    const TokenStreamHeader next = ReadHeader();
    if (next.tokenizer != header.tokenizer || next.record_kind != header.record_kind) {
      throw Corrupt(offset, "a token stream of another tokenizer or kind of record follows the first one");
    }
  }

  void ReadPiece(DocumentPiece* piece) {
    const uint64_t count = table.ReadVarint();
    const auto flags = table.Read<uint8_t>();
    piece->source_bytes = table.ReadVarint();
    piece->begins = (flags & kPieceBegins) != 0;
    piece->ends = (flags & kPieceEnds) != 0;
    piece->loss = (flags & kPieceNoLoss) == 0;
    piece->begins_text = (flags & kPieceBeginsText) != 0;
    piece->role = static_cast<TextRole>((flags & kPieceRole) >> kPieceRoleShift);
    const bool last = --pieces_left == 0;
    if (table.failed() || (flags & ~KnownPieceFlags(header.record_kind)) != 0 ||
        count > tokens.size() - tokens_done ||
        (last && (table.remaining() > 0 || count != tokens.size() - tokens_done))) {
      throw Corrupt(block_offset, "the token stream is corrupt: a block's pieces do not add up");
    }
    if (piece->begins == in_document) {
      throw Corrupt(block_offset,
                    "the token stream is corrupt: a document begins inside another, or never began");
    }
    piece->tokens = std::span(tokens).subspan(tokens_done, count);
    if (header.record_kind == RecordKind::kContrastive) {
      const char* fault = (flags & kPieceRole) == kPieceRole ? "a text has no role that is known"
                                                             : FaultOfContrastive(*piece, &order);
      if (fault != nullptr) throw Corrupt(block_offset, std::string("the token stream is corrupt: ") + fault);
    }
    tokens_done += count;
    in_document = !piece->ends;
    for (TokenStreamTotals* sums : {&stream_totals, &totals}) {
      sums->documents += piece->begins ? 1 : 0;
      sums->tokens += count;
      sums->source_bytes += piece->source_bytes;
    }
  }

  BufferedReader reader;
  TokenStreamHeader header;
  Xxh3Stream stream_hash;   // of the bytes of the current stream so far
  Xxh3Stream content_hash;  // of the hashes of whole streams
  TokenStreamTotals stream_totals, totals;
  uint64_t blocks = 0;
  bool in_document = false;
  ContrastiveOrder order;
  enum class State { kReading, kEnded, kBroken } state = State::kReading;
  // The current block.
  uint64_t block_offset = 0;
  std::vector<uint8_t> block;
  ByteParser table{ByteSpan()};
  std::vector<uint32_t> tokens;
  size_t tokens_done = 0;
  uint32_t pieces_left = 0;
};

TokenStreamReader::TokenStreamReader(std::unique_ptr<ByteSource> source)
    : impl_(std::make_unique<Impl>(std::move(source))) {}
TokenStreamReader::~TokenStreamReader() = default;

const TokenStreamHeader& TokenStreamReader::header() const {
  return impl_->header;
}

bool TokenStreamReader::Next(DocumentPiece* piece) {
  TRAINWRIGHT_CHECK(impl_->state != Impl::State::kBroken);
  if (impl_->state == Impl::State::kEnded) return false;
  impl_->state = Impl::State::kBroken;  // until this call succeeds: nobody reads on after an error
  while (impl_->pieces_left == 0) {
    if (!impl_->ReadBlock()) {
      impl_->state = Impl::State::kEnded;
      return false;
    }
  }
  impl_->ReadPiece(piece);
  impl_->state = Impl::State::kReading;
  return true;
}

const TokenStreamTotals& TokenStreamReader::totals() const {
  return impl_->totals;
}
uint64_t TokenStreamReader::content_hash() const {
  return impl_->content_hash.Digest();
}

}  // namespace trainwright

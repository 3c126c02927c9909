/// The stream of documents that `pretokenize` writes and `pack` reads: man/trainwright-token-stream.5,
/// version 1.
///
/// A header, blocks of document pieces, and a mandatory trailer whose hash covers every byte before it: a
/// reader accepts a stream only whole. Blocks are bounded, so neither side's memory grows with a document.
/// Readers and writers are not thread-safe; one per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/formats/record_kind.h"
#include "lib/formats/text_role.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"

namespace trainwright {

struct TokenStreamHeader {
  TokenizerIdentity tokenizer;
  RecordKind record_kind = RecordKind::kLm;
  /// Canonical JSON (sorted keys, no spaces): tool, version, the options that shape the content, input
  /// hashes. No clock, host, path or thread count.
  std::string provenance_json;
};

/// A run of tokens of one document. Most documents are one piece; long ones span several, and so do those of
/// sft records: a piece is either predicted or not. A document of contrastive records is a whole record: its
/// query, its positives and its negatives, each text in one piece or more (ContrastiveOrder).
struct DocumentPiece {
  std::span<const uint32_t> tokens;
  bool begins = true;  ///< the document's first piece
  bool ends = true;    ///< the document's last piece
  uint64_t source_bytes =
      0;  ///< bytes of text that these tokens stand for; exact when summed over the document
  /// Whether training predicts these tokens, or, of contrastive records, pools them; false only in sft
  /// records (prompts) and contrastive ones (instructions).
  bool loss = true;
  bool begins_text = false;          ///< of contrastive records: the first piece of a text
  TextRole role = TextRole::kQuery;  ///< of contrastive records: that of its text
};

struct TokenStreamTotals {
  uint64_t documents = 0, tokens = 0, source_bytes = 0;
  bool operator==(const TokenStreamTotals&) const = default;
};

class TokenStreamWriter {
 public:
  /// Writes the header. `sink` outlives the writer; the writer never commits it.
  TokenStreamWriter(ByteSink* sink, TokenStreamHeader header);
  ~TokenStreamWriter();
  /// Adds a piece; pieces longer than a block are cut, their source bytes shared out in proportion, exact in
  /// sum.
  /// \throws Error{kInternal} on an id >= vocab_size, pieces out of order, or one without loss outside sft
  ///     and contrastive records, or contrastive texts out of order
  void Write(const DocumentPiece& piece);
  /// Ends the stream with its trailer; the last document must have ended.
  void Finish();
  const TokenStreamTotals& totals() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Bytes that tell token streams from other content.
inline constexpr size_t kTokenStreamStartBytes = 8;
/// Whether content that begins so is a token stream.
/// \param start kTokenStreamStartBytes, or fewer when there are no more
bool IsTokenStream(ByteSpan start);

class TokenStreamReader {
 public:
  /// Reads and checks the header.
  /// \throws Error{kBadInput}: not a token stream, unknown version, corrupt, cut
  explicit TokenStreamReader(std::unique_ptr<ByteSource> source);
  ~TokenStreamReader();
  const TokenStreamHeader& header() const;
  /// The next piece; its tokens stay valid until the next call.
  /// \returns false only after the trailer was read and agrees, and nothing follows it except another whole
  /// stream
  ///          with an equal header (`cat a b`), which is read on as if it were one
  /// \throws Error{kBadInput} with the byte offset, on anything else
  [[nodiscard]] bool Next(DocumentPiece* piece);
  /// So far; complete once Next returned false.
  const TokenStreamTotals& totals() const;
  /// Once Next returned false: XXH3-64 of the 8-byte hashes that end the streams, each of which covers its
  /// whole stream. The input hash for provenance.
  uint64_t content_hash() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainwright

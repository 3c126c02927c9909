/// Where tokenized documents go: a token stream for `pack`, or JSON lines for people and scripts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/formats/token_stream.h"
#include "lib/io/byte_sink.h"

namespace trainwright {

enum class OutputFormat { kTokens, kJsonl };

/// Tokens in a row that are predicted, or not; of a contrastive record, pooled or not.
struct LossRun {
  uint64_t tokens = 0;
  uint64_t source_bytes = 0;  ///< of the record's own text in them
  bool loss = true;
  bool begins_text = false;          ///< of contrastive records, as in DocumentPiece
  TextRole role = TextRole::kQuery;  ///< likewise
};

/// One output. Nothing is visible in a file before Commit().
class DocumentOutput {
 public:
  virtual ~DocumentOutput() = default;
  virtual void Write(std::span<const uint32_t> ids, uint64_t source_bytes) = 0;
  /// Likewise of an sft or contrastive record.
  /// \param runs of all ids, in order
  virtual void WriteRuns(std::span<const uint32_t> ids, std::span<const LossRun> runs) = 0;
  /// Ends the stream with its trailer and commits the file. Called once, last.
  /// \throws Error{kIo}
  virtual void Commit() = 0;
  const TokenStreamTotals& totals() const { return totals_; }

 protected:
  TokenStreamTotals totals_;
};

/// \throws Error{kIo}
std::unique_ptr<DocumentOutput> MakeDocumentOutput(std::unique_ptr<ByteSink> sink, OutputFormat format,
                                                   const TokenStreamHeader& header);

/// Text in pieces to a sink, in few writes.
class TextWriter {
 public:
  explicit TextWriter(ByteSink* sink) : sink_(sink) {}
  void Write(std::string_view text);
  /// Hands on what is held back.
  void Flush();

 private:
  ByteSink* sink_;
  std::string buffer_;
};

}  // namespace trainwright

/// Cuts inputs into raw records: lines, JSON lines, paragraphs, NUL-ended records, whole files or rows of
/// parquet files, in batches of bounded size.
///
/// gzip and zstd content is decompressed as it is read. One thread reads; what the records mean is left to
/// DocumentText, which workers run in parallel. Memory holds one batch: about kBatchBytes, or one record if
/// that is longer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/documents/document_problem.h"
#include "lib/io/byte_source.h"
#include "lib/io/file_state.h"
#include "lib/io/parquet_file.h"

namespace trainwright {

enum class InputFormat {
  kLines,       ///< a line is a document; '\n' ends a line, a last line may lack it, '\r' is text
  kJsonl,       ///< a line is a JSON object
  kParagraphs,  ///< blank lines (empty, or of a '\r') come between documents
  kNul,         ///< a zero byte ends a document, the last may lack it; newlines are text
  kFile,        ///< a file is a document
  kParquet,     ///< a row of a parquet file is a document, its columns joined with newlines
};

/// One file (or "-"), how to read it, and which of its records.
struct DocumentInput {
  std::string path;
  InputFormat format = InputFormat::kLines;
  bool guessed =
      false;  ///< nobody asked for this format: worth a warning when the content looks like another
  /// Records whose first byte lies here, of the decompressed content; of a file as a document, all; of
  /// parquet, rows, counted from 0.
  uint64_t begin = 0, end = UINT64_MAX;
  uint64_t first_record = 0;     ///< number of the record at `begin` in the file, from 1; 0: not known
  bool has_format_flag = false;  ///< whether the user may name the format by --format, for hints
};

/// Ways out where a file is not read, for hints.
inline constexpr char kParquetHint[] =
    "write it as JSON lines first: to_json of the Python libraries datasets and pandas does";
inline constexpr char kArrowHint[] =
    "write it as parquet or JSON lines first: Dataset.to_parquet and Dataset.to_json of datasets do";

/// "lines", "jsonl", "paragraphs", "nul", "file", "parquet".
/// \throws Error{kUsage} naming --format
InputFormat ParseInputFormat(const std::string& name);
const char* NameOf(InputFormat format);

/// What `--format auto` means: jsonl for names that end in .jsonl, .ndjson or .json (and .gz or .zst after),
/// and for everything else than parquet when keys are given; parquet for .parquet; otherwise lines, which is
/// also what standard input holds.
InputFormat GuessInputFormat(const std::string& path, bool has_keys);

struct Record {
  size_t begin = 0, end = 0;  ///< the record without its delimiter, as a range of the batch's bytes
  bool too_long = false;      ///< longer than the limit: its bytes were dropped
};

struct RecordBatch {
  std::string source;  ///< name for messages
  InputFormat format = InputFormat::kLines;
  uint64_t first_record = 1;   ///< number of records[0] in its source, from 1: the line number of lines
  uint64_t skipped_bytes = 0;  ///< where reading began: records are counted from there
  std::string bytes;
  std::vector<Record> records;
  std::map<size_t, DocumentProblem> problems;  ///< of records that have no text, by index: parquet
};

class DocumentReader {
 public:
  static constexpr size_t kBatchBytes = 256 << 10;

  /// \param inputs in the order in which they are read; a record never spans two
  /// \param max_document_bytes longer records are marked too_long and not kept
  /// \param columns of parquet files, as ParquetFile takes them
  /// \throws Error{kUsage} for parquet that this installation cannot read
  DocumentReader(std::vector<DocumentInput> inputs, uint64_t max_document_bytes,
                 std::vector<std::string> columns = {"text"});
  ~DocumentReader();
  /// The next records, all of one source.
  /// \returns false at the end of the last input
  /// \throws Error{kIo}, and Error{kBadInput} on corrupt compressed data and when a file was written to since
  ///     reading it began
  [[nodiscard]] bool Next(RecordBatch* batch);
  /// To be called before what was made of the records is sealed.
  /// \throws Error{kBadInput} when a file was written to since reading it began
  void ThrowIfWritten() const;

  /// To be called before the first Next, for stored_sha256.
  void HashStoredBytes() { hashes_.stored.emplace(); }
  /// Of one input's bytes as they are stored, in hexadecimal as sha256sum prints it; whole once Next returned
  /// false. \pre HashStoredBytes
  std::string stored_sha256() const;

  /// Bytes read so far from the files as they are stored, and the sum of the files' sizes (0 when one of them
  /// is no regular file): the progress.
  uint64_t stored_bytes_read() const;
  uint64_t stored_bytes_total() const { return stored_bytes_total_; }
  /// Bytes of decompressed input so far, and their XXH3-64: the same for a pipe and for files in that order.
  /// Of parquet, they are the rows' text, a zero byte after each.
  uint64_t input_bytes() const { return input_bytes_; }
  uint64_t input_hash() const { return hashes_.input.Digest(); }

 private:
  bool OpenNext();
  bool NextRows(RecordBatch* batch);
  void AppendRow(const ParquetCell* cells, RecordBatch* batch) const;
  void CheckBeginning(std::string_view read) const;
  void Split(size_t scanned, size_t* tail, RecordBatch* batch);
  void SplitParagraphs(size_t scanned, size_t* tail, RecordBatch* batch);
  void Drop(size_t tail, std::string* bytes) const;

  std::vector<DocumentInput> inputs_;
  const uint64_t max_document_bytes_;
  const std::vector<std::string> columns_;
  uint64_t stored_bytes_total_ = 0, stored_bytes_read_ = 0, input_bytes_ = 0;
  struct Hashes {
    Xxh3Stream input;
    std::optional<Sha256> stored;  // where it is asked for; of parquet the file is hashed at the end
  } hashes_;
  size_t next_input_ = 0;
  std::vector<std::optional<FileState>> states_;  // of the inputs that were opened
  std::unique_ptr<ByteSource> source_;            // null between inputs, and in parquet
  std::unique_ptr<ParquetFile> parquet_;          // null between inputs, and in others
  uint64_t stored_bytes_before_ = 0;              // of the inputs before this one: parquet
  uint64_t end_row_ = 0;                          // where reading ends: parquet
  InputFormat format_ = InputFormat::kLines;
  uint64_t records_done_ = 0;  // of this source
  uint64_t skipped_bytes_ = 0;
  bool first_read_ = true;  // of this source
  std::vector<uint8_t> buffer_;
  std::string carry_;      // the start of a record that the last batch did not end
  bool dropping_ = false;  // inside a record that is too long
};

}  // namespace trainwright

#include "lib/documents/document_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/documents/byte_order_mark.h"
#include "lib/documents/input_slice.h"
#include "lib/formats/token_stream.h"
#include "lib/formats/zstd_frame.h"
#include "lib/io/file_checksum.h"

namespace trainwright {
namespace {

constexpr size_t kLookedAtBytes = 8192;  // of what a file begins with

bool IsPart(const DocumentInput& input) {
  return input.begin > 0 || input.end != UINT64_MAX;
}

uint64_t TotalSize(const std::vector<DocumentInput>& inputs) {
  uint64_t total = 0;
  for (const DocumentInput& input : inputs) {
    if (IsPart(input)) return 0;
    struct stat info;
    const bool known = input.path == "-" ? fstat(0, &info) == 0 : stat(input.path.c_str(), &info) == 0;
    if (!known || !S_ISREG(info.st_mode)) return 0;
    total += static_cast<uint64_t>(info.st_size);
  }
  return total;
}

/// Its compressed columns are no lines, and tokenizers of bytes would take them for some.
void RefuseParquet(const std::string& name, const DocumentInput& input, std::string_view start) {
  constexpr std::string_view kStartOfPages = "PAR1\x15";
  const bool is_parquet = name.ends_with(".parquet") ? start.starts_with("PAR1")
                                                     : input.guessed && start.starts_with(kStartOfPages);
  if (!is_parquet) return;
  throw Error(ErrorCode::kBadInput, name, "is parquet, and not to be read as lines or JSON", "",
              input.has_format_flag ? "--format parquet reads it, from a file" : kParquetHint);
}

/// Where nobody says how to read it: what datasets saves, as a file or as a stream.
void RefuseArrow(const std::string& name, bool guessed, std::string_view start) {
  constexpr std::string_view kStartOfFile = "ARROW1", kStartOfStream = "\xFF\xFF\xFF\xFF";
  if (!guessed || !(start.starts_with(kStartOfFile) || start.starts_with(kStartOfStream))) return;
  throw Error(ErrorCode::kBadInput, name, "is in Arrow's format, which is not read", "", kArrowHint);
}

/// Likewise: tokens and shards of the suite itself, which are no text.
void RefuseTokens(const std::string& name, bool guessed, std::string_view start) {
  if (!guessed) return;
  if (IsTokenStream(AsBytes(start.substr(0, kTokenStreamStartBytes)))) {
    throw Error(ErrorCode::kBadInput, name, "holds a token stream, and would be read as text", "",
                "pack makes shards of it, which evaluate reads; pretokenize --decode gives its text");
  }
  uint32_t magic = 0;
  if (start.size() < sizeof(magic)) return;
  std::memcpy(&magic, start.data(), sizeof(magic));
  if (magic != kHeaderFrameMagic) return;
  throw Error(ErrorCode::kBadInput, name, "holds shards, and would be read as text", "",
              "evaluate --format shards reads them; pack --cat prints their text");
}

constexpr char kUtf16Way[] = "iconv -f UTF-16 -t UTF-8";

/// Where nobody says how to read it: what Windows calls Unicode, which has zero bytes between letters.
void RefuseUtf16(const std::string& name, bool guessed, std::string_view start) {
  if (!guessed || !HasUtf16Mark(start)) return;
  throw Error(ErrorCode::kBadInput, name, "is UTF-16 by its first bytes, and text is UTF-8", "",
              std::string(kUtf16Way) + " converts it");
}

/// Likewise: tokens of a program or a picture are hardly meant.
void RefuseBinary(const std::string& name, bool guessed, InputFormat format, std::string_view start) {
  if (!guessed || format != InputFormat::kLines) return;
  const size_t zero = start.substr(0, kLookedAtBytes).find('\0');
  if (zero == std::string_view::npos) return;
  throw Error(ErrorCode::kBadInput, name, "is binary: it has a zero byte", "byte " + std::to_string(zero),
              "text is UTF-8; --format lines or file reads it all the same");
}

std::string BeginningOf(const std::string& path) {
  BufferedReader reader(DecompressIfNeeded(OpenSource(path)));
  return std::string(AsText(reader.Peek(kLookedAtBytes)));
}

/// Of the longest end mark of a line and a blank one behind it, what may be missing yet.
constexpr size_t kBlankLineBytes = 2;

/// The bytes of the blank line that begins there, its end mark included; 0 where none does.
size_t BlankLineAt(std::string_view bytes, size_t at) {
  for (const std::string_view blank : {"\n", "\r\n"}) {
    if (bytes.substr(at).starts_with(blank)) return blank.size();
  }
  return 0;
}

/// Of a paragraph whose blank line has not been read: its bytes without the newline that may be its last.
size_t ParagraphBytes(std::string_view open, bool at_end) {
  if (!at_end && open.ends_with("\n\r")) return open.size() - 2;
  return open.size() - (open.ends_with('\n') ? 1 : 0);
}

}  // namespace

InputFormat ParseInputFormat(const std::string& name) {
  for (const InputFormat format : {InputFormat::kLines, InputFormat::kJsonl, InputFormat::kParagraphs,
                                   InputFormat::kNul, InputFormat::kFile, InputFormat::kParquet}) {
    if (name == NameOf(format)) return format;
  }
  throw Error(ErrorCode::kUsage, "--format",
              "\"" + name + "\" is not one of auto, lines, jsonl, paragraphs, nul, file, parquet");
}

const char* NameOf(InputFormat format) {
  switch (format) {
    case InputFormat::kLines:
      return "lines";
    case InputFormat::kJsonl:
      return "jsonl";
    case InputFormat::kParagraphs:
      return "paragraphs";
    case InputFormat::kNul:
      return "nul";
    case InputFormat::kFile:
      return "file";
    case InputFormat::kParquet:
      return "parquet";
  }
  return "";
}

InputFormat GuessInputFormat(const std::string& path, bool has_keys) {
  std::string_view name = path;
  for (const std::string_view compressed : {".gz", ".zst"}) {
    if (name.ends_with(compressed)) name.remove_suffix(compressed.size());
  }
  // Behind .parquet, .gz is not undone, and the reader of parquet says that the file is none.
  if (name.ends_with(".parquet")) return InputFormat::kParquet;
  if (has_keys) return InputFormat::kJsonl;
  const bool json = name.ends_with(".jsonl") || name.ends_with(".ndjson") || name.ends_with(".json");
  return json ? InputFormat::kJsonl : InputFormat::kLines;
}

DocumentReader::DocumentReader(std::vector<DocumentInput> inputs, uint64_t max_document_bytes,
                               std::vector<std::string> columns)
    : inputs_(std::move(inputs)),
      max_document_bytes_(max_document_bytes),
      columns_(std::move(columns)),
      stored_bytes_total_(TotalSize(inputs_)),
      buffer_(kBatchBytes) {
  for (const DocumentInput& input : inputs_) {
    if (input.format == InputFormat::kParquet) ParquetFile::RequirePlugin(input.path);
  }
}

DocumentReader::~DocumentReader() = default;

uint64_t DocumentReader::stored_bytes_read() const {
  return stored_bytes_read_;
}

std::string DocumentReader::stored_sha256() const {
  TRAINWRIGHT_CHECK(hashes_.stored && inputs_.size() == 1);
  if (inputs_[0].format == InputFormat::kParquet) return Sha256OfFile(inputs_[0].path);
  return HexEncode(hashes_.stored->Digest());
}

bool DocumentReader::OpenNext() {
  if (next_input_ == inputs_.size()) return false;
  const DocumentInput& input = inputs_[next_input_++];
  states_.push_back(StateOf(input.path));
  if (input.format == InputFormat::kParquet) {
    parquet_ = std::make_unique<ParquetFile>(input.path, columns_);
    stored_bytes_before_ = stored_bytes_read_;
    records_done_ = std::min(input.begin, parquet_->rows());
    end_row_ = std::min(input.end, parquet_->rows());
    if (records_done_ > 0) parquet_->Seek(records_done_);
    return true;
  }
  source_ = OpenRecordRange(input, &stored_bytes_read_, hashes_.stored ? &*hashes_.stored : nullptr);
  skipped_bytes_ = input.first_record > 0 ? 0 : input.begin;  // records are counted from there
  format_ = input.format;
  records_done_ = input.first_record > 0 ? input.first_record - 1 : 0;
  first_read_ = true;
  carry_.clear();
  dropping_ = false;
  return true;
}

void DocumentReader::ThrowIfWritten() const {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i]) ThrowIfWrittenSince(*states_[i], inputs_[i].path);
  }
}

/// Refuses or warns of what looks like another format. Each part of a file is judged by how the file begins,
/// as the whole is.
/// \param read the first that was read of the source
void DocumentReader::CheckBeginning(std::string_view read) const {
  const DocumentInput& input = inputs_[next_input_ - 1];
  const bool names_parquet = input.path.ends_with(".parquet");
  if (!input.guessed && input.begin == 0 && HasUtf16Mark(read)) {
    LogCommonWarning(source_->name() + ": looks like UTF-16 but is read as it is; " + kUtf16Way +
                     " converts it");
  }
  if (!input.guessed && !names_parquet) return;
  const std::string of_file = IsPart(input) ? BeginningOf(input.path) : std::string();
  const std::string_view start = IsPart(input) ? std::string_view(of_file) : read;
  RefuseParquet(source_->name(), input, start);
  RefuseArrow(source_->name(), input.guessed, start);
  RefuseTokens(source_->name(), input.guessed, start);
  RefuseUtf16(source_->name(), input.guessed, start);
  RefuseBinary(source_->name(), input.guessed, format_, start);
  const bool looks_like_json = start.starts_with("{\"") || start.starts_with("{ \"");
  if (!input.guessed || format_ != InputFormat::kLines || !looks_like_json) return;
  LogCommonWarning(source_->name() +
                   ": looks like JSON lines but is read as plain lines; --format says which");
}

/// Turns the end marks in batch->bytes[scanned, end) into records. What follows the last one, where the next
/// record begins, stays in the batch.
void DocumentReader::Split(size_t scanned, size_t* tail, RecordBatch* batch) {
  if (format_ == InputFormat::kFile) return;
  if (format_ == InputFormat::kParagraphs) return SplitParagraphs(scanned, tail, batch);
  const char mark = format_ == InputFormat::kNul ? '\0' : '\n';
  while (true) {
    const size_t end = batch->bytes.find(mark, std::max(*tail, scanned));
    if (end == std::string::npos) return;
    const bool too_long = dropping_ || end - *tail > max_document_bytes_;
    batch->records.push_back({*tail, end, too_long});
    dropping_ = false;
    *tail = end + 1;
  }
}

/// Likewise of records between blank lines. Of a newline, up to two bytes behind it tell whether it ends one.
void DocumentReader::SplitParagraphs(size_t scanned, size_t* tail, RecordBatch* batch) {
  const std::string& bytes = batch->bytes;
  size_t from = std::max(*tail, scanned - std::min(scanned, kBlankLineBytes));
  while (true) {
    while (!dropping_ && *tail < bytes.size()) {
      const size_t blank_bytes = BlankLineAt(bytes, *tail);
      if (blank_bytes == 0) break;
      *tail += blank_bytes;
    }
    from = std::max(from, *tail);
    const size_t end = bytes.find('\n', from);
    if (end == std::string::npos) return;
    const size_t blank_bytes = BlankLineAt(bytes, end + 1);
    from = end + 1;
    if (blank_bytes == 0) continue;
    const bool too_long = dropping_ || end - *tail > max_document_bytes_;
    batch->records.push_back({*tail, end, too_long});
    dropping_ = false;
    *tail = end + 1 + blank_bytes;
  }
}

/// Of a record that is too long, keeps what may begin its end mark.
void DocumentReader::Drop(size_t tail, std::string* bytes) const {
  const size_t kept =
      format_ == InputFormat::kParagraphs ? std::min(kBlankLineBytes, bytes->size() - tail) : 0;
  bytes->erase(tail, bytes->size() - tail - kept);
}

/// The columns of a row, joined as a document, or why there is none.
void DocumentReader::AppendRow(const ParquetCell* cells, RecordBatch* batch) const {
  const size_t index = batch->records.size(), begin = batch->bytes.size();
  std::optional<DocumentProblem> problem;
  for (size_t i = 0; i < columns_.size() && !problem; ++i) {
    const ParquetColumn& column = parquet_->column(i);
    const std::string name = "column \"" + columns_[i] + "\"";
    if (column.kind == ParquetColumnKind::kMissing) {
      problem = {SkipReason::kMissingKey,
                 "no " + name,
                 {},
                 "--key names one of its columns: " + parquet_->column_names()};
    } else if (column.kind == ParquetColumnKind::kOtherType) {
      problem = {SkipReason::kNotAString, name + " is " + column.type + ", not text", {}, {}};
    } else if (cells[i].data == nullptr) {
      problem = {SkipReason::kNotAString, name + " is null, not a string", {}, {}};
    } else {
      if (i > 0) batch->bytes.push_back('\n');
      batch->bytes.append(cells[i].data, cells[i].size_bytes);
    }
  }
  const bool too_long = batch->bytes.size() - begin > max_document_bytes_;
  if (problem || too_long) batch->bytes.resize(begin);
  batch->records.push_back({begin, batch->bytes.size(), too_long && !problem});
  batch->bytes.push_back('\0');
  if (problem) batch->problems.emplace(index, *std::move(problem));
}

/// \returns false at the end of the file's rows
bool DocumentReader::NextRows(RecordBatch* batch) {
  constexpr uint64_t kMaxRows = 4096;
  *batch = {parquet_->path(), InputFormat::kParquet, records_done_ + 1, 0, {}, {}, {}};
  const ParquetRows rows =
      records_done_ < end_row_ ? parquet_->Next(std::min(end_row_ - records_done_, kMaxRows)) : ParquetRows{};
  for (size_t row = 0; row < rows.count; ++row) AppendRow(&rows.cells[row * columns_.size()], batch);
  records_done_ += rows.count;
  input_bytes_ += batch->bytes.size();
  hashes_.input.Update(AsBytes(batch->bytes));
  const double share =
      parquet_->rows() > 0 ? static_cast<double>(records_done_) / static_cast<double>(parquet_->rows()) : 1;
  stored_bytes_read_ =
      stored_bytes_before_ + static_cast<uint64_t>(share * static_cast<double>(parquet_->size_bytes()));
  if (rows.count > 0) return true;
  parquet_.reset();
  return false;
}

bool DocumentReader::Next(RecordBatch* batch) {
  while (true) {
    if (source_ == nullptr && parquet_ == nullptr && !OpenNext()) return false;
    if (parquet_ != nullptr) {
      if (NextRows(batch)) return true;
      continue;
    }
    *batch = {source_->name(), format_, records_done_ + 1, skipped_bytes_, std::move(carry_), {}, {}};
    carry_.clear();
    size_t tail = 0;  // where the record that has not ended begins
    bool ended = false;
    do {
      const size_t count = source_->Read(buffer_.data(), buffer_.size());
      ended = count == 0;
      const ByteSpan read(buffer_.data(), count);
      input_bytes_ += count;
      hashes_.input.Update(read);
      if (first_read_) CheckBeginning(AsText(read));
      first_read_ = false;
      const size_t scanned = batch->bytes.size();
      batch->bytes.append(AsText(read));
      Split(scanned, &tail, batch);
      const std::string_view open = std::string_view(batch->bytes).substr(tail);
      const bool is_paragraph = format_ == InputFormat::kParagraphs;
      const size_t open_bytes = is_paragraph ? ParagraphBytes(open, ended) : open.size();
      if (open_bytes > max_document_bytes_) dropping_ = true;
      if (dropping_) Drop(tail, &batch->bytes);
    } while (!ended && (batch->records.empty() || batch->bytes.size() < kBatchBytes));
    if (ended) {
      size_t end = batch->bytes.size();
      if (format_ == InputFormat::kParagraphs && end > tail && batch->bytes.back() == '\n') --end;
      // A file is a document even when it is empty; a line, only when something stands after the last
      // newline.
      if (dropping_ || tail < end || format_ == InputFormat::kFile) {
        batch->records.push_back({tail, end, dropping_});
      }
      source_.reset();
    } else {
      carry_ = batch->bytes.substr(tail);
      batch->bytes.resize(tail);
    }
    records_done_ += batch->records.size();
    if (!batch->records.empty()) return true;
  }
}

}  // namespace trainwright

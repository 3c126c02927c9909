#include "lib/data/document_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace trainwright {
namespace {

/// Counts what is read from the source under a decompressor.
class CountingSource final : public ByteSource {
 public:
  CountingSource(std::unique_ptr<ByteSource> source, uint64_t* count)
      : source_(std::move(source)), count_(count) {}
  size_t Read(uint8_t* out, size_t size) override {
    const size_t done = source_->Read(out, size);
    *count_ += done;
    return done;
  }
  const std::string& name() const override { return source_->name(); }

 private:
  std::unique_ptr<ByteSource> source_;
  uint64_t* count_;
};

uint64_t TotalSize(const std::vector<DocumentInput>& inputs) {
  uint64_t total = 0;
  for (const DocumentInput& input : inputs) {
    struct stat info;
    const bool known = input.path == "-" ? fstat(0, &info) == 0 : stat(input.path.c_str(), &info) == 0;
    if (!known || !S_ISREG(info.st_mode)) return 0;
    total += static_cast<uint64_t>(info.st_size);
  }
  return total;
}

}  // namespace

InputFormat ParseInputFormat(const std::string& name) {
  for (const InputFormat format :
       {InputFormat::kLines, InputFormat::kJsonl, InputFormat::kNul, InputFormat::kFile}) {
    if (name == NameOf(format)) return format;
  }
  throw Error(ErrorCode::kUsage, "--format", "\"" + name + "\" is none of auto, lines, jsonl, nul, file");
}

const char* NameOf(InputFormat format) {
  switch (format) {
    case InputFormat::kLines:
      return "lines";
    case InputFormat::kJsonl:
      return "jsonl";
    case InputFormat::kNul:
      return "nul";
    case InputFormat::kFile:
      return "file";
  }
  return "";
}

InputFormat GuessInputFormat(const std::string& path, bool has_keys) {
  if (has_keys) return InputFormat::kJsonl;
  std::string_view name = path;
  for (const std::string_view compressed : {".gz", ".zst"}) {
    if (name.ends_with(compressed)) name.remove_suffix(compressed.size());
  }
  const bool json = name.ends_with(".jsonl") || name.ends_with(".ndjson") || name.ends_with(".json");
  return json ? InputFormat::kJsonl : InputFormat::kLines;
}

DocumentReader::DocumentReader(std::vector<DocumentInput> inputs, uint64_t max_document_bytes)
    : inputs_(std::move(inputs)),
      max_document_bytes_(max_document_bytes),
      stored_bytes_total_(TotalSize(inputs_)),
      buffer_(kBatchBytes) {}

DocumentReader::~DocumentReader() = default;

uint64_t DocumentReader::stored_bytes_read() const {
  return stored_bytes_read_;
}

bool DocumentReader::OpenNext() {
  if (next_input_ == inputs_.size()) return false;
  const DocumentInput& input = inputs_[next_input_++];
  source_ = DecompressIfNeeded(std::make_unique<CountingSource>(OpenSource(input.path), &stored_bytes_read_));
  format_ = input.format;
  records_done_ = 0;
  first_read_ = true;
  carry_.clear();
  dropping_ = false;
  return true;
}

void DocumentReader::WarnOfJson(std::string_view start) const {
  const bool looks_like_json = start.starts_with("{\"") || start.starts_with("{ \"");
  if (!inputs_[next_input_ - 1].guessed || format_ != InputFormat::kLines || !looks_like_json) return;
  LogWarning(source_->name() + ": looks like JSON lines but is read as plain lines; --format says which");
}

/// Turns the end marks in batch->bytes[scanned, end) into records. What follows the last one stays in the
/// batch.
void DocumentReader::Split(size_t scanned, RecordBatch* batch) {
  if (format_ == InputFormat::kFile) return;
  const char mark = format_ == InputFormat::kNul ? '\0' : '\n';
  size_t begin = batch->records.empty() ? 0 : batch->records.back().end + 1;
  while (true) {
    const size_t end = batch->bytes.find(mark, std::max(begin, scanned));
    if (end == std::string::npos) return;
    const bool too_long = dropping_ || end - begin > max_document_bytes_;
    batch->records.push_back({begin, end, too_long});
    dropping_ = false;
    begin = end + 1;
  }
}

bool DocumentReader::Next(RecordBatch* batch) {
  while (true) {
    if (source_ == nullptr && !OpenNext()) return false;
    *batch = {source_->name(), format_, records_done_ + 1, std::move(carry_), {}};
    carry_.clear();
    size_t tail = 0;  // where the record that has not ended begins
    bool ended = false;
    do {
      const size_t count = source_->Read(buffer_.data(), buffer_.size());
      ended = count == 0;
      const ByteSpan read(buffer_.data(), count);
      input_bytes_ += count;
      input_hash_.Update(read);
      if (first_read_) WarnOfJson(AsText(read));
      first_read_ = false;
      const size_t scanned = batch->bytes.size();
      batch->bytes.append(AsText(read));
      Split(scanned, batch);
      tail = batch->records.empty() ? 0 : batch->records.back().end + 1;
      if (batch->bytes.size() - tail > max_document_bytes_) dropping_ = true;
      if (dropping_) batch->bytes.resize(tail);
    } while (!ended && (batch->records.empty() || batch->bytes.size() < kBatchBytes));
    if (ended) {
      // A file is a document even when it is empty; a line, only when something stands after the last
      // newline.
      if (dropping_ || tail < batch->bytes.size() || format_ == InputFormat::kFile) {
        batch->records.push_back({tail, batch->bytes.size(), dropping_});
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

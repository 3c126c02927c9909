#include "lib/documents/document_output.h"

#include <charconv>

#include "lib/io/byte_sink.h"

namespace trainwright {
namespace {

class TokenStreamOutput final : public DocumentOutput {
 public:
  TokenStreamOutput(std::unique_ptr<ByteSink> sink, const TokenStreamHeader& header)
      : sink_(std::move(sink)), writer_(sink_.get(), header) {}
  void Write(std::span<const uint32_t> ids, uint64_t source_bytes) override {
    writer_.Write({.tokens = ids, .source_bytes = source_bytes});
    totals_ = writer_.totals();
  }
  void WriteRuns(std::span<const uint32_t> ids, std::span<const LossRun> runs) override {
    for (size_t i = 0; i < runs.size(); ++i) {
      writer_.Write({.tokens = ids.first(runs[i].tokens),
                     .begins = i == 0,
                     .ends = i + 1 == runs.size(),
                     .source_bytes = runs[i].source_bytes,
                     .loss = runs[i].loss,
                     .begins_text = runs[i].begins_text,
                     .role = runs[i].role});
      ids = ids.subspan(runs[i].tokens);
    }
    totals_ = writer_.totals();
  }
  void Commit() override {
    writer_.Finish();
    sink_->Commit();
  }

 private:
  std::unique_ptr<ByteSink> sink_;
  TokenStreamWriter writer_;
};

class JsonlOutput final : public DocumentOutput {
 public:
  JsonlOutput(std::unique_ptr<ByteSink> sink, RecordKind records)
      : sink_(std::move(sink)), records_(records), writer_(sink_.get()) {}
  void Write(std::span<const uint32_t> ids, uint64_t source_bytes) override {
    WriteIds(ids, source_bytes);
    writer_.Write("]}\n");
  }
  void WriteRuns(std::span<const uint32_t> ids, std::span<const LossRun> runs) override {
    if (records_ == RecordKind::kContrastive) return WriteTexts(ids, runs);
    uint64_t source_bytes = 0, begin = 0;
    std::string spans;
    for (const LossRun& run : runs) {
      source_bytes += run.source_bytes;
      if (run.loss) {
        spans += (spans.empty() ? "[" : ",[") + std::to_string(begin) + "," +
                 std::to_string(begin + run.tokens) + "]";
      }
      begin += run.tokens;
    }
    WriteIds(ids, source_bytes);
    writer_.Write("],\"loss_spans\":[" + spans + "]}\n");
  }
  void Commit() override {
    writer_.Flush();
    sink_->Commit();
  }

 private:
  /// {"doc":0,"ids":[1,2
  void WriteIds(std::span<const uint32_t> ids, uint64_t source_bytes) {
    writer_.Write("{\"doc\":" + std::to_string(totals_.documents) + ",\"ids\":[");
    WriteNumbers(ids);
    Count(ids.size(), source_bytes);
  }

  /// 1,2
  void WriteNumbers(std::span<const uint32_t> ids) {
    char text[16] = {','};
    for (size_t i = 0; i < ids.size(); ++i) {
      const char* end = std::to_chars(text + 1, text + sizeof(text), ids[i]).ptr;
      const char* begin = i == 0 ? text + 1 : text;
      writer_.Write({begin, static_cast<size_t>(end - begin)});
    }
  }

  void Count(uint64_t tokens, uint64_t source_bytes) {
    ++totals_.documents;
    totals_.tokens += tokens;
    totals_.source_bytes += source_bytes;
  }

  /// {"doc":0,"query":{"instruction_tokens":1,"ids":[1,2]},"pos":[{...}],"neg":[{...}]}
  void WriteTexts(std::span<const uint32_t> ids, std::span<const LossRun> runs) {
    uint64_t source_bytes = 0;
    for (const LossRun& run : runs) source_bytes += run.source_bytes;
    writer_.Write("{\"doc\":" + std::to_string(totals_.documents) + ",\"query\":");
    Count(ids.size(), source_bytes);
    TextRole role = TextRole::kQuery;
    bool negatives = false;
    while (!runs.empty()) {
      const LossRun& first = runs.front();
      const bool has_instruction = !first.loss && runs.size() > 1;
      const uint64_t instruction = has_instruction ? first.tokens : 0;
      const uint64_t tokens = has_instruction ? first.tokens + runs[1].tokens : first.tokens;
      if (first.role != role) {
        writer_.Write(role == TextRole::kQuery ? ",\"pos\":[" : "],\"neg\":[");
        negatives = first.role == TextRole::kNegative;
      } else if (role != TextRole::kQuery) {
        writer_.Write(",");
      }
      role = first.role;
      writer_.Write("{\"instruction_tokens\":" + std::to_string(instruction) + ",\"ids\":[");
      WriteNumbers(ids.first(tokens));
      writer_.Write("]}");
      ids = ids.subspan(tokens);
      runs = runs.subspan(has_instruction ? 2 : 1);
    }
    writer_.Write(negatives ? "]}\n" : "],\"neg\":[]}\n");
  }

  std::unique_ptr<ByteSink> sink_;
  const RecordKind records_;
  TextWriter writer_;
};

}  // namespace

void TextWriter::Write(std::string_view text) {
  constexpr size_t kBufferBytes = 64 << 10;
  buffer_.append(text);
  if (buffer_.size() >= kBufferBytes) Flush();
}

void TextWriter::Flush() {
  if (!buffer_.empty()) sink_->Write(AsBytes(buffer_));
  buffer_.clear();
}

std::unique_ptr<DocumentOutput> MakeDocumentOutput(std::unique_ptr<ByteSink> sink, OutputFormat format,
                                                   const TokenStreamHeader& header) {
  if (format == OutputFormat::kJsonl)
    return std::make_unique<JsonlOutput>(std::move(sink), header.record_kind);
  return std::make_unique<TokenStreamOutput>(std::move(sink), header);
}

}  // namespace trainwright

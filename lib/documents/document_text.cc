#include "lib/documents/document_text.h"

#include <utility>

#include "lib/documents/byte_order_mark.h"
#include "lib/tok/utf8.h"

namespace trainwright {

DocumentText::DocumentText(DocumentTextOptions options)
    : options_(std::move(options)), json_(options_.keys, options_.instead) {}

std::optional<DocumentProblem> DocumentText::Read(const RecordBatch& batch, size_t index,
                                                  std::string_view* text) {
  replaced_bytes_ = 0;
  const Record& record = batch.records[index];
  if (record.too_long) return DocumentProblem{SkipReason::kTooLong, "longer than --max-document", {}, {}};
  if (const auto known = batch.problems.find(index); known != batch.problems.end()) return known->second;
  const std::string_view raw = RawRecord(batch, index);
  if (batch.format == InputFormat::kJsonl) return ReadJson(raw, text);
  *text = raw;
  if (!options_.require_utf8) return std::nullopt;
  const size_t bad = FindInvalidUtf8(raw);
  if (bad == std::string_view::npos) return std::nullopt;
  if (!options_.replace_invalid_utf8)
    return DocumentProblem{SkipReason::kInvalidUtf8, "not valid UTF-8", bad, {}};
  text_ = ReplaceInvalidUtf8(raw, &replaced_bytes_);
  *text = text_;
  return std::nullopt;
}

std::optional<DocumentProblem> DocumentText::ReadJson(std::string_view line, std::string_view* text) {
  *text = {};
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
  auto problem = json_.Read(line, &text_);
  if (problem && problem->reason == SkipReason::kInvalidUtf8) {
    if (options_.replace_invalid_utf8) {
      problem = json_.Read(ReplaceInvalidUtf8(line, &replaced_bytes_), &text_);
    } else {
      problem->byte = FindInvalidUtf8(line);
    }
  }
  if (!problem) *text = text_;
  return problem;
}

std::string_view RawRecord(const RecordBatch& batch, size_t index) {
  const Record& record = batch.records[index];
  const std::string_view raw = std::string_view(batch.bytes).substr(record.begin, record.end - record.begin);
  const bool is_first = batch.first_record + index == 1 && batch.skipped_bytes == 0;
  return batch.format == InputFormat::kJsonl && is_first ? WithoutByteOrderMark(raw) : raw;
}

std::string PlaceOf(const RecordBatch& batch, size_t index) {
  if (batch.format == InputFormat::kFile) return "";
  const std::string behind =
      batch.skipped_bytes > 0 ? " of those after byte " + std::to_string(batch.skipped_bytes) : "";
  if (batch.format == InputFormat::kParquet) return "row " + std::to_string(batch.first_record + index);
  const bool is_line = batch.format == InputFormat::kLines || batch.format == InputFormat::kJsonl;
  return (is_line ? "line " : "document ") + std::to_string(batch.first_record + index) + behind;
}

Error ErrorOf(const DocumentProblem& problem, const RecordBatch& batch, size_t index,
              const DocumentFlags& flags) {
  std::string place = PlaceOf(batch, index);
  if (problem.byte) place += (place.empty() ? "byte " : ", byte ") + std::to_string(*problem.byte);
  std::string hint = problem.hint, text = problem.problem;
  const auto offer = [&](bool is_offered, const char* way) {
    if (is_offered) hint += (hint.empty() ? "" : ", ") + std::string(way);
  };
  const bool is_keyless =
      problem.reason == SkipReason::kMissingKey || problem.reason == SkipReason::kNotAString;
  if (problem.hint.empty()) {
    offer(problem.reason == SkipReason::kInvalidUtf8 && flags.invalid_utf8,
          "--invalid-utf8 replace reads bad bytes as U+FFFD");
    offer(is_keyless, "--key names the text's key");
    offer(problem.reason == SkipReason::kTooLong && flags.max_document, "--max-document raises the limit");
  }
  offer(flags.on_error, "--on-error skip leaves such documents out and counts them");
  if (problem.reason == SkipReason::kTooLong && !flags.max_document) text = "longer than a document may be";
  return Error(ErrorCode::kBadInput, batch.source, text, place, hint);
}

}  // namespace trainwright

/// From a raw record to the text of a document, and the reasons why there may be none.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/documents/document_reader.h"
#include "lib/documents/jsonl_text.h"

namespace trainwright {

struct DocumentTextOptions {
  /// Where a JSON line or a parquet file keeps its text; several values are joined with newlines.
  std::vector<std::string> keys = {kTextKey};
  /// Of a JSON line, in place of a first key that it lacks.
  std::vector<std::string> instead = OtherTextKeys();
  /// Whether text must be valid UTF-8 (for tokenizers of characters). JSON must always be.
  bool require_utf8 = true;
  /// Whether bad bytes become U+FFFD, one a byte, instead of being a problem.
  bool replace_invalid_utf8 = false;
};

/// Reads documents out of records. Not thread-safe: one for each worker.
class DocumentText {
 public:
  explicit DocumentText(DocumentTextOptions options);
  /// The text of batch.records[index], possibly empty, in `text`: valid until the next call and while the
  /// batch lives.
  /// \returns why there is none, or nullopt
  std::optional<DocumentProblem> Read(const RecordBatch& batch, size_t index, std::string_view* text);
  /// Bad bytes that became U+FFFD in the last text.
  uint64_t replaced_bytes() const { return replaced_bytes_; }

 private:
  std::optional<DocumentProblem> ReadJson(std::string_view line, std::string_view* text);

  DocumentTextOptions options_;
  JsonlText json_;
  std::string text_;
  uint64_t replaced_bytes_ = 0;
};

/// batch.records[index] as it is, without the byte order mark that a JSON file may begin with; valid while
/// the batch lives.
std::string_view RawRecord(const RecordBatch& batch, size_t index);

/// Where batch.records[index] is in its source: "line 3", "document 3", "row 3"; "" when it is all of it.
std::string PlaceOf(const RecordBatch& batch, size_t index);

/// What a tool lets its user do about a record that gives no document, besides --key.
struct DocumentFlags {
  bool on_error = false;      ///< --on-error skip
  bool invalid_utf8 = false;  ///< --invalid-utf8 replace
  bool max_document = false;  ///< --max-document
};

/// The error that a problem is, with the file's name and the line (or the document's number). Kind{kBadInput}
/// \param flags that its hint may name
Error ErrorOf(const DocumentProblem& problem, const RecordBatch& batch, size_t index,
              const DocumentFlags& flags);

}  // namespace trainwright

/// Contrastive records out of JSON lines, as GRIT and its kin have them:
///
///   {"query": TEXT, "pos": [TEXT, ...], "neg": [TEXT, ...]}
///
/// where a TEXT is a string, or a list of two: an instruction, which may be "", and the text. Other members
/// are skipped; "neg" may be absent or empty.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/document_problem.h"
#include "lib/formats/text_role.h"

namespace trainwright {

struct InstructedText {
  std::string instruction, text;
  TextRole role = TextRole::kQuery;
};

struct ContrastiveExample {
  std::vector<InstructedText> texts;  ///< the query, then the positives, then the negatives

  /// Unicode characters of all texts and instructions.
  uint64_t CountCharacters() const;
  /// What tells records apart when they are held out: the query, so that all that is said of it stays on one
  /// side.
  std::string HoldoutKey() const;
};

/// Not thread-safe: one for each worker.
class ContrastiveExampleReader {
 public:
  ContrastiveExampleReader();
  ~ContrastiveExampleReader();
  /// \returns why the line gives no record, or nullopt
  std::optional<DocumentProblem> Read(std::string_view line, ContrastiveExample* example);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainwright

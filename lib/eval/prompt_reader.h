/// Prompts for generation: one from the command line, or the lines of a JSONL file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/data/document_reader.h"

namespace trainwright {

struct PromptLine {
  std::string text;
  nlohmann::ordered_json id;  ///< the line's "id", to tell samples by; null where it has none
  std::string place;          ///< "line 3", for messages; empty for a prompt of the command line
};

class PromptReader {
 public:
  /// \param prompt the only one, or absent: the lines of `path` ("-" is standard input)
  PromptReader(std::optional<std::string> prompt, const std::string& path);
  /// \returns nullopt behind the last \throws Error{kBadInput} naming the line that is no
  /// {"prompt": "..."}
  std::optional<PromptLine> Next();

 private:
  std::optional<std::string> prompt_;
  std::optional<DocumentReader> reader_;
  RecordBatch batch_;
  size_t next_ = 0;  // record of the batch
};

}  // namespace trainwright

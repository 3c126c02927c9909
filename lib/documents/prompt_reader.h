/// Prompts for generation: one from the command line, or the lines of a JSONL file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/documents/chat_record.h"
#include "lib/documents/document_reader.h"

namespace trainwright {

struct PromptLine {
  /// The text; of a conversation, what the user said last.
  std::string text;
  ChatRecord conversation;  ///< where conversations are read; ends with the user's turn
  /// What the line has besides the prompt, "id" among it, for the lines of its samples: names, and the JSON
  /// of their values as it is written. A prompt that is a list of turns is there as "messages".
  std::vector<std::pair<std::string, std::string>> others;
  nlohmann::ordered_json context;  ///< the line's "context": whoever takes contexts says what it is; or null
  std::string place;               ///< "line 3", for messages; empty for a prompt of the command line
};

class PromptReader {
 public:
  /// \param prompt the only one, or absent: the lines of `path` ("-" is standard input)
  /// \param conversations whether a prompt is what ChatRecordReader::ReadPrompt takes; else it is {"prompt":
  /// "..."}
  /// \param whole_turns as in ChatRecordOptions
  PromptReader(std::optional<std::string> prompt, const std::string& path, bool conversations,
               bool whole_turns = false);
  /// Whether the first line of a file has a list of turns and no text to continue: such lines are prompts
  /// once ReadConversations was called. Before the first Next; it waits for the line.
  bool BeginsWithTurns();
  /// Has prompts be conversations from here on.
  /// \param whole_turns as in ChatRecordOptions
  void ReadConversations(bool whole_turns);
  /// \returns nullopt after the last
  /// \throws Error{kBadInput} naming the line that is no prompt
  std::optional<PromptLine> Next();
  /// \throws Error{kBadInput} when the file was written to since reading it began
  void ThrowIfWritten() const;
  /// {"path" or null, "sha256"} of the bytes read, or of the only prompt's; whole once Next returned nullopt.
  nlohmann::ordered_json identity() const;

 private:
  /// Makes next_ the next line that is not blank; false: there is none.
  bool FindFilledLine();

  std::optional<std::string> prompt_;
  std::string path_, prompt_sha256_;
  std::optional<DocumentReader> reader_;
  std::optional<ChatRecordReader> chats_;
  RecordBatch batch_;
  size_t next_ = 0;  // record of the batch
};

}  // namespace trainwright

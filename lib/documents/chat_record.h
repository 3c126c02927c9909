/// Conversations out of JSON lines.
///
/// Recognised, in this order, unless keys are given:
///   a line of `generate` ({"prompt", "text", "ids", "sample", "finish"}): its prompt, be it one of those
///   below, and its text, whatever answers it carries from the prompt's line
///   {"messages"|"conversations": [{"role"|"from": R, "content"|"value": C}, ...], "system"?}   roles below
///   {"instruction", "input"|"context"?, "system"?, "history"?, "output"|"response"}
///   {"input": [turns as above], "output"}                (a persona and other members say nothing here)
///   {"prompt", "response"|"completion"|"text"}, each a string or a list of turns
///   {"question", "answer"}
///   {"text": [user, assistant, user, assistant, ...]}
/// Roles: system; user, human; assistant, gpt, model, bot; others (tool, developer) where whole turns are
/// read, with the line's "tools", of whatever shape it is, and with calls of functions in ShareGPT's form
/// (share_gpt.h). Elsewhere a conversation is a system turn or none, then user and assistant alternating, and
/// ends with the assistant. An answer of "weight" 0 or "train" false is read, and not learnt. Of members that
/// are null others of the same meaning, and other shapes, are tried; an answer may begin with the prompt's
/// turns again, which then count once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/document_problem.h"

namespace trainwright {

enum class ChatRole : uint8_t { kSystem, kUser, kAssistant, kOther };  // tool, developer, ...
const char* NameOf(ChatRole role);
/// Whether there is nothing but white space.
bool IsBlank(std::string_view text);

struct ChatTurn {
  ChatRole role = ChatRole::kUser;
  std::string content;
  std::string input;   ///< of a user turn, what the instruction is about; may be empty
  std::string json;    ///< as in the record, without nulls, where whole turns come from a list; else empty
  bool learnt = true;  ///< of the assistant's: whether it is to be predicted
};

struct ChatRecord {
  std::vector<ChatTurn> turns;
  std::string tools_json;  ///< the record's "tools", where whole turns are read and it has some

  /// Unicode characters of all turns.
  uint64_t CountCharacters() const;
  /// What tells conversations apart when they are held out: system and first user turn, so that several
  /// answers to one question stay on one side.
  std::string HoldoutKey() const;
};

/// What is wrong with the order or the content of the turns; nullopt: nothing.
/// \param last whose turn is to be the last
std::optional<DocumentProblem> CheckTurns(const ChatRecord& record, ChatRole last = ChatRole::kAssistant);
/// Likewise of whole turns, whose order the template judges: only whose turn is the last.
std::optional<DocumentProblem> CheckWholeTurns(const ChatRecord& record, bool answered);
/// That the last of whole turns says nothing: no words, and no calls or thoughts either.
std::optional<DocumentProblem> CheckLastAnswer(const ChatRecord& record);
/// That none of the answers, or not the last one, is to be predicted.
std::optional<DocumentProblem> CheckLearnt(const ChatRecord& record, bool last_only);

struct ChatRecordOptions {
  /// Paths of prompt and response, as --key takes them: strings or lists of turns. Both or neither; the same
  /// path twice is that of a list with all turns.
  std::string prompt_key, response_key;
  /// Turns keep all members of theirs (tool_calls, name, lists of content) that are not null, and may be of
  /// any role, in any order: a Jinja template reads them.
  bool whole_turns = false;
};

/// Not thread-safe: one for each worker.
class ChatRecordReader {
 public:
  explicit ChatRecordReader(ChatRecordOptions options);
  ~ChatRecordReader();
  /// \returns why the line gives no conversation, or nullopt
  std::optional<DocumentProblem> Read(std::string_view line, ChatRecord* record);
  /// What is to be answered: the same shapes up to the user's last turn. A response that the line has besides
  /// is not looked at; turns must end with the user's.
  std::optional<DocumentProblem> ReadPrompt(std::string_view line, ChatRecord* record);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainwright

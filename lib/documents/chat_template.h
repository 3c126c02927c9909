/// How a conversation is written as text: fixed pieces (literals) around what the turns say.
///
/// A template is text, one line a part of the conversation; # begins a comment line:
///
///   begin      {bos}                                        before everything
///   system     "<|im_start|>system\n" {content} "<|im_end|>\n"
///   user       "<|im_start|>user\n" {content} "<|im_end|>\n"
///   assistant  "<|im_start|>assistant\n" [ {content} "<|im_end|>" ] "\n"
///
/// Items are JSON strings, {content} (what the turn says), { content} (with a space before it, cut into
/// tokens together), {bos} and {eos} (the tokenizer's ids). Between [ and ] comes what training predicts:
/// the answer, and its end-of-turn token; what is before [ is how a prompt ends at inference. Other parts:
///
///   no-system             instead of system, when the conversation has no such turn
///   no-system-with-input  likewise, when its first user turn has an input besides (default: as no-system)
///   user-after-system     instead of user, for the turn after the system turn
///   input                 after a user turn's content (inside it, before what follows {content}), when it
///                         has an input (default: "\n\nContext: " {content})
///   between               before every user turn but the first
///   trim                  roles whose content loses white space at both ends, as words:
///                         system user assistant
///
/// Of contrastive records, each text of which is written by itself:
///
///   instruction           before a text, with its instruction; what is between [ and ] is pooled with it
///   no-instruction        before a text without one
///   text                  the text; between [ and ] is what is pooled (default: [ {content} ])
///   keep instruction      an instruction is written as it is given, and a blank at its end, not that of
///                         { content}, is cut into tokens with the text; without this line it loses tabs,
///                         newlines, spaces and colons at its ends
///
/// user and assistant are required. Without system, a conversation with a system turn does not fit.
///
/// A template may instead be a model's own, in Jinja (folder_template.h, jinja_chat.h).
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/tok/tokenizer_folder.h"

namespace trainwright {

struct TemplateItem {
  enum class Kind : uint8_t { kLiteral, kContent, kSpacedContent, kBos, kEos };
  Kind kind = Kind::kLiteral;
  std::string literal;
  bool loss = false;  ///< between [ and ]
};

enum class TemplatePart : uint8_t {
  kBegin,
  kNoSystem,
  kNoSystemWithInput,
  kSystem,
  kUser,
  kUserAfterSystem,
  kInput,
  kAssistant,
  kBetween,
  kInstruction,
  kNoInstruction,
  kText
};
inline constexpr size_t kTemplatePartCount = 12;

struct ChatTemplate {
  std::string name;  ///< of a built-in one, or the path
  std::string text;  ///< the lines, each with a newline, without comments: what provenance keeps
  std::array<std::vector<TemplateItem>, kTemplatePartCount> parts;
  std::array<bool, 3> trim = {};   ///< by ChatRole
  bool marks_are_text = false;     ///< its <|marks|> are ordinary text to the models trained with it
  bool keeps_instruction = false;  ///< "keep instruction"

  /// A model's own, in Jinja: `text` is its source, and what is above between them says nothing.
  bool is_jinja = false;
  std::string tool_text;  ///< in place of `text` for conversations with tools; empty: the same
  std::vector<std::pair<std::string, std::string>>
      named_tokens;                   ///< bos_token and its like, as in its folder
  std::chrono::sys_seconds now = {};  ///< what its strftime_now returns: TemplateTime
  /// Where a tokenizer marks the beginning of a text: before which texts (StartMarksOfFolder).
  StartMarks start_marks = StartMarks::kBehindBos;

  const std::vector<TemplateItem>& part(TemplatePart which) const {
    return parts[static_cast<size_t>(which)];
  }
  /// Whether text after a special token of a template in Jinja is marked.
  bool MarksBehind(bool is_bos) const {
    return start_marks == StartMarks::kBehindSpecials || (is_bos && start_marks == StartMarks::kBehindBos);
  }
  /// Whether an instruction's end and the text that follows adjoin, so that a blank between them is the
  /// text's.
  bool JoinsInstruction() const;
  bool has_system() const { return !part(TemplatePart::kSystem).empty(); }
  bool has_instruction() const { return !part(TemplatePart::kInstruction).empty(); }
  /// Whether an instruction is pooled with its text.
  bool pools_instruction() const { return has_instruction() && part(TemplatePart::kInstruction).back().loss; }
};

/// What a template's strftime_now returns: SOURCE_DATE_EPOCH of the environment, in UTC, by which builds are
/// repeated, or else the local time, as in transformers: the number that, given as SOURCE_DATE_EPOCH, makes
/// the same text.
/// \throws Error{kUsage} when SOURCE_DATE_EPOCH is no number of seconds
std::chrono::sys_seconds TemplateTime();
/// Whether SOURCE_DATE_EPOCH says it, and not the clock.
bool TemplateTimeIsChosen();

/// The names of the built-in templates.
std::vector<std::string> BuiltInTemplateNames();
/// A built-in template's text; empty when there is not one of this name.
std::string_view BuiltInTemplateText(const std::string& name);

/// \param name for messages
/// \throws Error{kUsage} naming the line
ChatTemplate ParseChatTemplate(std::string_view text, const std::string& name);

/// \param name_or_path a built-in template; a file of the lines above; or one in Jinja: NAME.jinja,
///     tokenizer_config.json, or a model's folder
/// \throws Error{kUsage, kIo}
ChatTemplate LoadChatTemplate(const std::string& name_or_path);

/// How conversations for a model are written: as said, or else as the folder of its tokenizer says. Of a
/// tokenizer alone, with no model beside it, plain, which is reported then.
/// \param named as LoadChatTemplate takes it; empty: nothing is said
/// \param tokenizer as LoadTokenizer takes it
/// \throws Error{kUsage, kIo}, kUsage also on a model's folder that has no template when nothing is said
ChatTemplate ConversationTemplate(const std::string& named, const std::string& tokenizer);

}  // namespace trainwright

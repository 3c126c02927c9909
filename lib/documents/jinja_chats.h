/// The Jinja templates of a model: that for conversations with tools, where it has one of its own, and that
/// for all others. Each is a JinjaChat, whose promises these functions have.
#pragma once

#include <optional>
#include <string>

#include "lib/documents/chat_record.h"
#include "lib/documents/chat_template.h"
#include "lib/documents/document_problem.h"
#include "lib/documents/jinja_chat.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

class JinjaChats {
 public:
  /// \param tokenizer, prompts_only as of JinjaChat
  /// \throws Error{kUsage}; not where the template for tools is no Jinja: that is the problem of each record
  /// that needs it
  JinjaChats(const ChatTemplate& chat_template, const Tokenizer& tokenizer, bool prompts_only);

  std::optional<DocumentProblem> Render(const ChatRecord& record, bool last_only, RenderedChat* chat) const;
  std::optional<DocumentProblem> RenderPrompt(const ChatRecord& record, RenderedChat* chat) const;
  /// \param with_tools of conversations that have some
  const std::string& answer_end(bool with_tools) const;

 private:
  const JinjaChat& For(const ChatRecord& record) const;
  std::optional<DocumentProblem> RefusalOf(const ChatRecord& record) const;

  JinjaChat usual_;
  std::optional<JinjaChat> of_tools_;
  std::optional<DocumentProblem> tools_refusal_;  // why of_tools_ is not there, though it is needed
};

}  // namespace trainwright

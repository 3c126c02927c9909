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
  /// \param tokenizer as of JinjaChat
  /// \throws Error{kUsage}
  JinjaChats(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

  std::optional<DocumentProblem> Render(const ChatRecord& record, bool last_only, RenderedChat* chat) const;
  std::optional<DocumentProblem> RenderPrompt(const ChatRecord& record, RenderedChat* chat) const;
  /// Of conversations without tools.
  const std::string& answer_end() const { return usual_.answer_end(); }

 private:
  const JinjaChat& For(const ChatRecord& record) const;

  JinjaChat usual_;
  std::optional<JinjaChat> of_tools_;
};

}  // namespace trainwright

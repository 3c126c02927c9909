#include "lib/documents/jinja_chats.h"

namespace trainwright {

JinjaChats::JinjaChats(const ChatTemplate& chat_template, const Tokenizer& tokenizer)
    : usual_(chat_template, tokenizer) {
  if (!chat_template.tool_text.empty()) of_tools_.emplace(chat_template, tokenizer, /*of_tools=*/true);
}

const JinjaChat& JinjaChats::For(const ChatRecord& record) const {
  return of_tools_ && !record.tools_json.empty() ? *of_tools_ : usual_;
}

std::optional<DocumentProblem> JinjaChats::Render(const ChatRecord& record, bool last_only,
                                                  RenderedChat* chat) const {
  return For(record).Render(record, last_only, chat);
}

std::optional<DocumentProblem> JinjaChats::RenderPrompt(const ChatRecord& record, RenderedChat* chat) const {
  return For(record).RenderPrompt(record, chat);
}

}  // namespace trainwright

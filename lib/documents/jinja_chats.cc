#include "lib/documents/jinja_chats.h"

#include "lib/base/error.h"

namespace trainwright {

JinjaChats::JinjaChats(const ChatTemplate& chat_template, const Tokenizer& tokenizer, bool prompts_only)
    : usual_(chat_template, tokenizer, {.of_tools = false, .prompts_only = prompts_only}) {
  if (chat_template.tool_text.empty()) return;
  try {
    of_tools_.emplace(chat_template, tokenizer,
                      JinjaChatOptions{.of_tools = true, .prompts_only = prompts_only});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    tools_refusal_ = ProblemOfTemplate(error);
  }
}

const JinjaChat& JinjaChats::For(const ChatRecord& record) const {
  return of_tools_ && !record.tools_json.empty() ? *of_tools_ : usual_;
}

std::optional<DocumentProblem> JinjaChats::RefusalOf(const ChatRecord& record) const {
  return record.tools_json.empty() ? std::nullopt : tools_refusal_;
}

const std::string& JinjaChats::answer_end(bool with_tools) const {
  const bool is_own = with_tools && of_tools_ && of_tools_->shows_answer_end();
  return is_own ? of_tools_->answer_end() : usual_.answer_end();
}

std::optional<DocumentProblem> JinjaChats::Render(const ChatRecord& record, bool last_only,
                                                  RenderedChat* chat) const {
  if (auto refusal = RefusalOf(record)) return refusal;
  return For(record).Render(record, last_only, chat);
}

std::optional<DocumentProblem> JinjaChats::RenderPrompt(const ChatRecord& record, RenderedChat* chat) const {
  if (auto refusal = RefusalOf(record)) return refusal;
  return For(record).RenderPrompt(record, chat);
}

}  // namespace trainwright

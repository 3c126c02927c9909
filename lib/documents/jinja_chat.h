/// Conversations written by a Jinja template of a model, and which of the text the assistant says.
///
/// The text is what transformers' apply_chat_template gives. The assistant's part of it is
///   what is in {% generation %} blocks, where the template has them; else, of each of its turns,
///   from where the rendering of the turns before it ends, with add_generation_prompt,
///   to where its words end (its tool calls, if it makes some) and the end-of-turn token after them: the
///   tokenizer's EOS, or another special token.
/// Where the words end is found by rendering the conversation once more with one letter added to them. A
/// template whose prompts are not how its answers begin, as one that opens a thought which answers lack, is
/// refused: training and inference would differ. Where prompts alone are rendered, it is not.
///
/// Where an answer calls tools and is not the last turn, the conversation up to it is rendered, too: its
/// end-of-turn token is looked for in its own text alone, not in that of the tool.
///
/// A turn of another role than system, user and assistant of which the template writes nothing is refused.
/// Answers that are not to be learnt are found like others, and left out of RenderedChat::answers.
///
/// Costs one rendering where {% generation %} marks the answers, two where the last alone is asked for, and
/// three where the template shows that it writes each turn by itself (jinja::TurnPlaces). Else 1 + 2n of a
/// conversation with n answers, and one or two more for each that calls tools. Each role besides system, user
/// and assistant costs one more. What they take together has a limit of its own, kMostStepsOfConversation.
/// Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/documents/chat_record.h"
#include "lib/documents/chat_template.h"
#include "lib/documents/document_problem.h"
#include "lib/documents/spelled_specials.h"
#include "lib/jinja/template.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

struct RenderedChat {
  std::string text;
  std::vector<jinja::Span> answers;  ///< in order, apart from each other
  std::vector<SpecialCut> cuts;      ///< of special tokens that the record spells
  uint64_t steps = 0;                ///< of all renderings that it took
};

/// The steps (lib/jinja/machine.h) that all renderings of one conversation may take together: some tens of
/// seconds, more than hundreds of turns take of a published template.
inline constexpr uint64_t kMostStepsOfConversation = 1'000'000'000;

struct JinjaChatOptions {
  bool of_tools = false;      ///< by the template's tool_text, which it has
  bool prompts_only = false;  ///< no answers are looked for, but what ends them
};

class JinjaChat {
 public:
  /// \param tokenizer names BOS and EOS where the template's folder does not; outlives the object
  /// \throws Error{kUsage} naming what is no Jinja, or that it does not say where its answers are
  JinjaChat(const ChatTemplate& chat_template, const Tokenizer& tokenizer, JinjaChatOptions options = {});

  /// \param last_only only the last answer is looked for
  /// \returns why the template does not render it, or nullopt
  /// \throws Error{kInterrupted, kTerminated}
  std::optional<DocumentProblem> Render(const ChatRecord& record, bool last_only, RenderedChat* chat) const;
  /// Likewise up to where the assistant answers; without answers.
  std::optional<DocumentProblem> RenderPrompt(const ChatRecord& record, RenderedChat* chat) const;
  /// What follows an answer's words and is predicted; empty when a trial conversation does not show it.
  const std::string& answer_end() const { return answer_end_; }
  /// Whether a trial conversation shows what follows an answer's words, if only that nothing does.
  bool shows_answer_end() const { return after_words_.has_value(); }

 private:
  struct Said;
  /// Bytes of the text: words end where the end-of-turn token, if any, begins or white space before it does.
  struct Answer {
    size_t begin = 0, words_end = 0, end = 0;
    size_t turn = 0;  // its number, from 0
  };

  jinja::Rendered RenderText(Said* said, bool prompt) const;
  Said Prepare(const ChatRecord& record) const;
  /// These change the messages for a rendering, and put them back.
  /// \param count of the messages, from the first, that are rendered
  jinja::Rendered RenderBegin(Said* said, size_t count, bool prompt) const;
  /// Sets said->apart where the template shows the turns apart.
  void SetTurnsApart(Said* said, const jinja::Rendered& plain) const;
  size_t AnswerBegin(Said* said, size_t turn, const std::string& text) const;
  Answer AnswerOf(Said* said, size_t turn, const jinja::Rendered& plain, size_t begin, size_t limit) const;
  std::vector<Answer> AnswersOf(Said* said, bool last_only, const jinja::Rendered& plain) const;
  /// Where what the template writes of a turn ends in `text`, at the latest.
  size_t TurnEnd(Said* said, size_t turn, const std::string& text, size_t words_end) const;
  size_t EndMarkBehind(const jinja::Rendered& plain, size_t words_end, size_t limit) const;
  /// Where the template's EOS first comes in [from, limit); npos: nowhere.
  size_t FindEos(const jinja::Rendered& plain, size_t from, size_t limit) const;
  /// Where tool calls and the end-of-turn token after them end.
  size_t CallsEnd(const jinja::Rendered& plain, size_t words_end, size_t turn_end, size_t limit) const;
  /// The {% generation %} blocks of the last turn.
  std::vector<jinja::Span> LastGenerations(Said* said, const jinja::Rendered& plain) const;
  void Finish(jinja::Rendered plain, RenderedChat* chat) const;
  void TryOut(JinjaChatOptions options);

  std::string name_;
  jinja::Template template_;
  jinja::RenderOptions options_;
  nlohmann::ordered_json named_tokens_;  // bos_token and its like
  SpelledSpecials specials_{{}};
  std::string eos_;  // may be empty
  std::string answer_end_;
  std::optional<std::string> after_words_;  // of the last answer, where a trial conversation shows it
};

/// Why a template writes no conversation, by what parsing or rendering it was refused with.
DocumentProblem ProblemOfTemplate(const Error& error);

/// The messages as transformers takes them: a turn's own JSON where the record kept it.
nlohmann::ordered_json MessagesOf(const ChatRecord& record);

}  // namespace trainwright

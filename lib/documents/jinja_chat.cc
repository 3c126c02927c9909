#include "lib/documents/jinja_chat.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/documents/turn_renderings.h"
#include "lib/jinja/raised_error.h"

namespace trainwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kJinjaSpace = " \t\r\n";

/// What templates for conversations with tools are tried out with.
constexpr char kTrialTools[] =
    R"([{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters":)"
    R"({"type": "object", "properties": {"at": {"type": "string", "description": "What."}}, "required": ["at"]}}}])";

DocumentProblem BadConversation(const std::string& problem) {
  return {SkipReason::kBadTurns, problem, {}, {}};
}

/// Whether the role of a message is the assistant's.
bool IsAnswer(const Json& message) {
  const auto role = message.find("role");
  return role != message.end() && *role == "assistant";
}

/// Where the code point begins that has a byte here.
size_t CodePointBegin(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool IsJinjaSpace(std::string_view text, size_t begin, size_t end) {
  return text.substr(begin, end - begin).find_first_not_of(kJinjaSpace) == std::string_view::npos;
}

/// Whether a signal ended a rendering: nothing is wrong with the conversation.
bool IsStop(const Error& error) {
  return error.code() == ErrorCode::kInterrupted || error.code() == ErrorCode::kTerminated;
}

/// Adds a letter to `text` that does not end it already.
void AddLetter(std::string* text) {
  const size_t last = text->find_last_not_of(kJinjaSpace);
  text->push_back(last != std::string::npos && (*text)[last] == 'a' ? 'b' : 'a');
}

/// Changes the end of what a message says: its last tool call's arguments, or else its words.
/// \returns whether it says anything
bool ChangeEnd(Json* message) {
  const auto calls = message->find("tool_calls");
  if (calls != message->end() && calls->is_array() && !calls->empty() && calls->back().is_object()) {
    Json& call = calls->back();
    Json& function = call.contains("function") && call["function"].is_object() ? call["function"] : call;
    Json& arguments = function["arguments"];
    if (arguments.is_string()) {
      AddLetter(arguments.get_ptr<Json::string_t*>());
    } else {
      if (!arguments.is_object()) arguments = Json::object();
      std::string name = "a";
      while (arguments.contains(name)) name += "a";
      arguments[name] = 1;
    }
    return true;
  }
  const auto content = message->find("content");
  if (content == message->end()) return false;
  if (content->is_string()) {
    AddLetter(content->get_ptr<Json::string_t*>());
    return true;
  }
  if (!content->is_array()) return false;
  for (auto part = content->rbegin(); part != content->rend(); ++part) {
    if (!part->is_object() || !part->contains("text") || !(*part)["text"].is_string()) continue;
    AddLetter((*part)["text"].get_ptr<Json::string_t*>());
    return true;
  }
  return false;
}

/// Each role besides system, user and assistant must be in the text: its first turn with words is changed.
/// \param messages those that `text` is the rendering of
/// \param render gives that of what they are at the time
/// \throws Error{kBadInput} naming a turn of which the template writes nothing
void RequireOtherRoles(const ChatRecord& record, const std::string& text, Json::array_t* messages,
                       const std::function<std::string()>& render) {
  std::set<std::string> written;
  for (size_t turn = 0; turn < record.turns.size(); ++turn) {
    if (record.turns[turn].role != ChatRole::kOther) continue;
    Json& message = (*messages)[turn];
    const auto role = message["role"].get<std::string>();
    Json changed = message;
    if (written.contains(role) || !ChangeEnd(&changed)) continue;
    std::swap(message, changed);
    std::string other;
    try {
      other = render();
    } catch (const Error& error) {
      if (IsStop(error)) throw;  // else the template reads the turn
    }
    std::swap(message, changed);
    if (other == text) {
      throw Error(ErrorCode::kBadInput, "turn " + std::to_string(turn),
                  "is of the role \"" + role + "\", of which the template writes nothing", "",
                  "templates know system, user and assistant, and some of them tool");
    }
    written.insert(role);
  }
}

/// Leaves out the {% generation %} blocks of answers that are not to be learnt.
/// \throws Error{kBadInput} where some are not, and blocks and answers do not go together one by one
void EraseUnlearnt(const ChatRecord& record, std::vector<jinja::Span>* blocks) {
  const auto is_learnt = [](const ChatTurn& turn) { return turn.learnt; };
  if (std::all_of(record.turns.begin(), record.turns.end(), is_learnt)) return;
  std::vector<jinja::Span> learnt;
  size_t answers = 0;
  for (const ChatTurn& turn : record.turns) {
    if (turn.role != ChatRole::kAssistant) continue;
    if (turn.learnt && answers < blocks->size()) learnt.push_back((*blocks)[answers]);
    ++answers;
  }
  if (answers != blocks->size()) {
    throw Error(ErrorCode::kBadInput, "conversation",
                "has answers that are not to be learnt, and the template does not mark each answer by one "
                "{% generation %} block");
  }
  *blocks = std::move(learnt);
}

/// What a message says it thought, under each name that templates read, as transformers 5.23 fills them in.
Json WithReasoning(Json message) {
  const Json* reasoning = nullptr;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto member = message.find(name);
    if (reasoning == nullptr && member != message.end() && !member->is_null()) reasoning = &*member;
  }
  if (reasoning == nullptr) return message;
  Json filled = {{"thinking", *reasoning}};
  const Json said = *reasoning;
  for (auto& [name, value] : message.items()) filled[name] = std::move(value);
  filled["reasoning_content"] = said;
  return filled;
}

}  // namespace

struct JinjaChat::Said {
  /// \param named the template's other variables
  explicit Said(Json named) : variables(std::move(named)) {
    variables["messages"] = Json::array();
    variables["tools"] = nullptr;
    variables["documents"] = nullptr;
  }
  Json& messages() { return variables["messages"]; }
  Json& tools() { return variables["tools"]; }
  Json::array_t& turns() { return messages().get_ref<Json::array_t&>(); }

  Json variables;
  uint64_t steps = 0;                   // that its renderings have taken
  std::optional<TurnRenderings> apart;  // in place of renderings, where the template allows it
};

// What a template says of a conversation is the user's to read; where it says so, less.
DocumentProblem ProblemOfTemplate(const Error& error) {
  if (const auto* raised = dynamic_cast<const jinja::RaisedError*>(&error)) {
    return BadConversation("the template refuses it: " + raised->message());
  }
  // The record has a line, too: that of the template goes with its name.
  const std::string place = error.place().empty() ? "" : ", " + error.place();
  DocumentProblem problem = BadConversation(error.object() + place + ": " + error.problem());
  problem.hint = error.hint();
  return problem;
}

Json MessagesOf(const ChatRecord& record) {
  Json messages = Json::array();
  for (const ChatTurn& turn : record.turns) {
    if (!turn.json.empty()) {
      messages.push_back(WithReasoning(Json::parse(turn.json)));
      continue;
    }
    std::string content = turn.content;
    if (!turn.input.empty()) content += "\n\nContext: " + turn.input;  // as template files have it
    messages.push_back({{"role", NameOf(turn.role)}, {"content", std::move(content)}});
  }
  return messages;
}

JinjaChat::JinjaChat(const ChatTemplate& chat_template, const Tokenizer& tokenizer, JinjaChatOptions options)
    : name_(chat_template.name + (options.of_tools ? " (tool_use)" : "")),
      template_(jinja::Template::Parse(options.of_tools ? chat_template.tool_text : chat_template.text,
                                       "template " + name_)),
      named_tokens_(Json::object()) {
  options_.now = chat_template.now;
  options_.poll = ThrowIfStopped;
  options_.data_variables = {"messages", "tools"};
  for (const auto& [name, text] : chat_template.named_tokens) named_tokens_[name] = text;
  const TokenizerIdentity& identity = tokenizer.identity();
  std::vector<std::string> specials;
  for (const SpecialToken& special : tokenizer.special_tokens()) {
    if (!special.is_word) specials.push_back(special.text);
    for (const auto& [name, id] : {std::pair("bos_token", identity.bos_id), {"eos_token", identity.eos_id}}) {
      if (special.id == id && !named_tokens_.contains(name)) named_tokens_[name] = special.text;
    }
  }
  specials_ = SpelledSpecials(std::move(specials));
  if (named_tokens_.contains("eos_token")) eos_ = named_tokens_["eos_token"].get<std::string>();
  TryOut(options);
}

jinja::Rendered JinjaChat::RenderText(Said* said, bool prompt) const {
  ThrowIfStopped();
  said->variables["add_generation_prompt"] = prompt;
  jinja::Rendered rendered = template_.Render(said->variables, options_);
  said->steps += rendered.steps;
  if (said->steps > kMostStepsOfConversation) {
    throw Error(ErrorCode::kBadInput, "conversation",
                "takes more than the limit of " + std::to_string(kMostStepsOfConversation) +
                    " steps to find its answers in, as no {% generation %} marks them",
                "", "--loss-turns last looks for the last answer alone");
  }
  return rendered;
}

JinjaChat::Said JinjaChat::Prepare(const ChatRecord& record) const {
  Said said(named_tokens_);
  said.messages() = MessagesOf(record);
  if (!record.tools_json.empty()) said.tools() = Json::parse(record.tools_json);
  return said;
}

size_t JinjaChat::FindEos(const jinja::Rendered& plain, size_t from, size_t limit) const {
  if (eos_.empty()) return std::string::npos;
  const std::string_view text = std::string_view(plain.text).substr(0, limit);
  size_t eos = text.find(eos_, from);
  while (eos != std::string::npos && !HasNoData(plain.data, eos, eos + eos_.size())) {
    eos = text.find(eos_, eos + 1);
  }
  return eos;
}

size_t JinjaChat::EndMarkBehind(const jinja::Rendered& plain, size_t words_end, size_t limit) const {
  const std::string& text = plain.text;
  const size_t last = std::min(text.size(), limit + eos_.size());  // one that begins before the limit
  if (const size_t eos = FindEos(plain, words_end, last); eos < limit && IsJinjaSpace(text, words_end, eos)) {
    return eos + eos_.size();
  }
  for (size_t at = words_end; at < limit; ++at) {
    if (const size_t special = specials_.SizeAt(text, plain.data, at); special > 0) return at + special;
    if (kJinjaSpace.find(text[at]) == std::string_view::npos) break;
  }
  return words_end;
}

jinja::Rendered JinjaChat::RenderBegin(Said* said, size_t count, bool prompt) const {
  Json::array_t& turns = said->turns();
  const auto cut = turns.begin() + static_cast<ptrdiff_t>(count);
  Json::array_t behind(std::make_move_iterator(cut), std::make_move_iterator(turns.end()));
  turns.erase(cut, turns.end());
  const auto restore = [&] { std::move(behind.begin(), behind.end(), std::back_inserter(turns)); };
  try {
    jinja::Rendered rendered = RenderText(said, prompt);
    restore();
    return rendered;
  } catch (...) {
    restore();
    throw;
  }
}

void JinjaChat::SetTurnsApart(Said* said, const jinja::Rendered& plain) const {
  if (plain.turns.begins.empty()) return;
  Json::array_t& turns = said->turns();
  Json::array_t kept = turns;
  const auto restore = [&] { turns = std::move(kept); };
  try {
    const jinja::Rendered prompted = RenderText(said, /*prompt=*/true);
    for (size_t turn = plain.turns.first; turn < turns.size(); ++turn) {
      if (IsAnswer(turns[turn])) ChangeEnd(&turns[turn]);
    }
    said->apart = TurnRenderings::Of(plain, prompted, RenderText(said, /*prompt=*/false));
    restore();
  } catch (const Error& error) {
    restore();
    if (IsStop(error)) throw;  // what else it refuses of these, it may take in parts
  }
}

size_t JinjaChat::TurnEnd(Said* said, size_t turn, const std::string& text, size_t words_end) const {
  if (turn + 1 == said->turns().size()) return text.size();
  if (said->apart && said->apart->Has(turn)) {
    // Which is not before the words end: the turn itself is written alike where it is the last.
    return CodePointBegin(text, said->apart->SharedBegin(turn));
  }
  std::string own;
  try {
    own = RenderBegin(said, turn + 1, /*prompt=*/false).text;
  } catch (const jinja::RaisedError&) {
    return text.size();  // it refuses conversations that end with a call
  }
  if (const size_t common = CommonBegin(text, own); common >= words_end) return CodePointBegin(text, common);
  // It is written otherwise where it is the last, say with its thoughts: then what follows its words counts.
  Json& message = said->turns()[turn];
  Json changed = message;
  ChangeEnd(&changed);
  std::swap(message, changed);
  const std::string other = RenderBegin(said, turn + 1, /*prompt=*/false).text;
  std::swap(message, changed);
  const std::string_view behind = std::string_view(own).substr(own.size() - CommonEnd(own, other));
  return CodePointBegin(text, words_end + CommonBegin(std::string_view(text).substr(words_end), behind));
}

size_t JinjaChat::CallsEnd(const jinja::Rendered& plain, size_t words_end, size_t turn_end,
                           size_t limit) const {
  std::string_view own = std::string_view(plain.text).substr(0, turn_end);
  if (const size_t eos = FindEos(plain, words_end, own.size()); eos != std::string::npos) {
    return eos + eos_.size();
  }
  // What a template puts behind the arguments of a call may hold special tokens besides the one that ends it.
  size_t last_special_end = 0;
  for (size_t at = words_end; at < own.size();) {
    const size_t special = specials_.SizeAt(plain.text, plain.data, at);
    if (at + special > own.size()) {
      own = own.substr(0, at);
      break;
    }
    if (special > 0) last_special_end = at + special;
    at += std::max<size_t>(special, 1);
  }
  if (last_special_end > 0 && IsJinjaSpace(own, last_special_end, own.size())) return last_special_end;
  std::string_view calls = own.substr(words_end);
  if (after_words_ && calls.ends_with(*after_words_)) calls.remove_suffix(after_words_->size());
  calls = calls.substr(0, calls.find_last_not_of(kJinjaSpace) + 1);
  const size_t calls_end = words_end + calls.size();
  // The special token of the next turn ends a call where it ends other answers, too.
  const bool next_turn_ends = after_words_ && IsJinjaSpace(*after_words_, 0, after_words_->size());
  return next_turn_ends ? EndMarkBehind(plain, calls_end, limit) : calls_end;
}

size_t JinjaChat::AnswerBegin(Said* said, size_t turn, const std::string& text) const {
  std::optional<size_t> begin;
  if (said->apart && said->apart->Has(turn)) {
    begin = said->apart->PromptEnd(turn);
  } else if (const std::string prompt = RenderBegin(said, turn, /*prompt=*/true).text;
             text.starts_with(prompt)) {
    begin = prompt.size();
  }
  if (!begin) {
    throw Error(
        ErrorCode::kBadInput, "turn " + std::to_string(turn),
        "begins otherwise than the template's prompt for it, and no {% generation %} marks the answers", "",
        turn + 1 < said->turns().size() ? "templates that leave thoughts out of earlier turns are for "
                                          "--loss-turns last, which trains the last "
                                          "answer alone"
                                        : "");
  }
  return *begin;
}

JinjaChat::Answer JinjaChat::AnswerOf(Said* said, size_t turn, const jinja::Rendered& plain, size_t begin,
                                      size_t limit) const {
  const std::string& text = plain.text;
  Json& message = said->turns()[turn];
  Json changed = message;
  const bool says = ChangeEnd(&changed);
  std::optional<size_t> shared_end;
  if (says && said->apart && said->apart->Has(turn)) {
    shared_end = said->apart->SharedEnd(turn);
  } else if (says) {
    std::swap(message, changed);
    const std::string other = RenderText(said, /*prompt=*/false).text;
    std::swap(message, changed);
    if (other != text) shared_end = CommonEnd(text, other);
  }
  const size_t words_end = text.size() - shared_end.value_or(0);
  if (!shared_end || words_end < begin) {
    throw Error(
        ErrorCode::kBadInput, "turn " + std::to_string(turn),
        "is not what the template writes after its prompt, and no {% generation %} marks the answers");
  }
  const auto calls = changed.find("tool_calls");
  const bool has_calls = calls != changed.end() && calls->is_array() && !calls->empty();
  if (!has_calls) return {begin, words_end, EndMarkBehind(plain, words_end, limit), turn};
  const size_t turn_end = std::max(words_end, std::min(TurnEnd(said, turn, text, words_end), limit));
  return {begin, words_end, CallsEnd(plain, words_end, turn_end, limit), turn};
}

std::vector<JinjaChat::Answer> JinjaChat::AnswersOf(Said* said, bool last_only,
                                                    const jinja::Rendered& plain) const {
  const std::string& text = plain.text;
  if (!last_only) SetTurnsApart(said, plain);
  std::vector<size_t> turns, begins;
  const size_t count = said->turns().size();
  for (size_t turn = 0; turn < count; ++turn) {
    if (!IsAnswer(said->turns()[turn]) || (last_only && turn + 1 < count)) continue;
    turns.push_back(turn);
    begins.push_back(AnswerBegin(said, turn, text));
  }
  std::vector<Answer> answers;
  for (size_t i = 0; i < turns.size(); ++i) {
    const size_t limit = i + 1 < turns.size() ? begins[i + 1] : text.size();
    answers.push_back(AnswerOf(said, turns[i], plain, begins[i], limit));
    if (i > 0 && begins[i] < answers[i - 1].end) {
      throw Error(ErrorCode::kBadInput, "turn " + std::to_string(turns[i]),
                  "begins inside the answer before it");
    }
  }
  return answers;
}

std::vector<jinja::Span> JinjaChat::LastGenerations(Said* said, const jinja::Rendered& plain) const {
  const std::vector<jinja::Span>& blocks = plain.generations;
  if (blocks.size() < 2) return blocks;
  size_t earlier = blocks.size() - 1;
  try {
    // A turn that is joined to the one before it adds no block of its own: then the last one counts.
    const size_t turn = said->turns().size() - 1;
    earlier = std::min(earlier, RenderBegin(said, turn, /*prompt=*/true).generations.size());
  } catch (const Error& error) {  // it refuses conversations without the last answer
    if (IsStop(error)) throw;
  }
  return {blocks.begin() + static_cast<ptrdiff_t>(earlier), blocks.end()};
}

void JinjaChat::Finish(jinja::Rendered plain, RenderedChat* chat) const {
  chat->cuts = specials_.CutsOf(plain.text, plain.data);
  chat->text = std::move(plain.text);
}

std::optional<DocumentProblem> JinjaChat::Render(const ChatRecord& record, bool last_only,
                                                 RenderedChat* chat) const {
  if (auto problem = CheckWholeTurns(record, /*answered=*/true)) return problem;
  if (auto problem = CheckLastAnswer(record)) return problem;
  if (auto problem = CheckLearnt(record, last_only)) return problem;
  *chat = {};
  try {
    Said said = Prepare(record);
    jinja::Rendered plain = RenderText(&said, /*prompt=*/false);
    RequireOtherRoles(record, plain.text, &said.turns(), [&] { return RenderText(&said, false).text; });
    if (template_.has_generation()) {
      chat->answers = last_only ? LastGenerations(&said, plain) : plain.generations;
      if (!last_only) EraseUnlearnt(record, &chat->answers);
    } else {
      for (const Answer& answer : AnswersOf(&said, last_only, plain)) {
        if (record.turns[answer.turn].learnt) chat->answers.push_back({answer.begin, answer.end});
      }
    }
    chat->steps = said.steps;
    Finish(std::move(plain), chat);
  } catch (const Error& error) {
    if (IsStop(error)) throw;
    return ProblemOfTemplate(error);
  }
  std::erase_if(chat->answers, [](const jinja::Span& answer) { return answer.begin == answer.end; });
  if (chat->answers.empty()) return BadConversation("the template " + name_ + " marks no answer in it");
  return std::nullopt;
}

std::optional<DocumentProblem> JinjaChat::RenderPrompt(const ChatRecord& record, RenderedChat* chat) const {
  if (auto problem = CheckWholeTurns(record, /*answered=*/false)) return problem;
  *chat = {};
  try {
    Said said = Prepare(record);
    jinja::Rendered prompt = RenderText(&said, /*prompt=*/true);
    RequireOtherRoles(record, prompt.text, &said.turns(), [&] { return RenderText(&said, true).text; });
    chat->steps = said.steps;
    Finish(std::move(prompt), chat);
  } catch (const Error& error) {
    if (IsStop(error)) throw;
    return ProblemOfTemplate(error);
  }
  return std::nullopt;
}

void JinjaChat::TryOut(JinjaChatOptions options) {
  Said said(named_tokens_);
  said.messages() = {{{"role", "user"}, {"content", "Which one?"}},
                     {{"role", "assistant"}, {"content", "This"}}};
  if (options.of_tools) said.tools() = Json::parse(kTrialTools);
  try {
    jinja::Rendered plain = RenderText(&said, /*prompt=*/false);
    if (!template_.has_generation()) {
      const size_t begin = options.prompts_only ? 0 : AnswerBegin(&said, 1, plain.text);
      plain.generations = {{begin, plain.text.size()}};
    }
    if (plain.generations.empty()) return;
    const jinja::Span block = plain.generations[0];
    const Answer answer = AnswerOf(&said, 1, plain, block.begin, block.end);
    after_words_ = plain.text.substr(answer.words_end);
    const size_t end = template_.has_generation() ? block.end : answer.end;
    if (answer.words_end < end) answer_end_ = plain.text.substr(answer.words_end, end - answer.words_end);
  } catch (const jinja::RaisedError&) {
    return;  // it wants other conversations
  } catch (const Error& error) {
    if (IsStop(error)) throw;
    // It wants other tools; or prompts say what is wrong with it, if anything is.
    if (options.of_tools || options.prompts_only) return;
    throw Error(ErrorCode::kUsage, "template " + name_,
                "does not render a question and its answer: " + std::string(error.what()), "",
                "see CHAT TEMPLATES in pretokenize(1)");
  }
}

}  // namespace trainwright

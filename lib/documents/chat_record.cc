#include "lib/documents/chat_record.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/documents/json_line.h"
#include "lib/documents/share_gpt.h"
#include "lib/formats/json_text.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

using simdjson::dom::element;
using Problem = std::optional<DocumentProblem>;

std::optional<ChatRole> RoleNamed(std::string_view name) {
  if (name == "system") return ChatRole::kSystem;
  if (name == "user" || name == "human") return ChatRole::kUser;
  for (const char* assistant : {"assistant", "gpt", "model", "bot"}) {
    if (name == assistant) return ChatRole::kAssistant;
  }
  return std::nullopt;
}

Problem Missing(const std::string& key) {
  return DocumentProblem{SkipReason::kMissingKey, "no key \"" + key + "\"", {}, {}};
}

DocumentProblem EmptyResponse() {
  return {SkipReason::kEmptyResponse, "the response is empty", {}, {}};
}

Problem ReadString(element value, const std::string& where, std::string* text) {
  std::string_view content;
  if (value.get_string().get(content) != simdjson::SUCCESS) {
    return DocumentProblem{
        SkipReason::kNotAString, where + " is " + NameOf(value.type()) + ", not a string", {}, {}};
  }
  *text = content;
  return std::nullopt;
}

/// The first of `names` that the object has, and not as null; where all are null, the first that it has.
const char* FirstMember(element object, std::initializer_list<const char*> names, element* found) {
  const char* first = nullptr;
  for (const char* name : names) {
    element value;
    if (!FindMember(object, name, &value) || (first != nullptr && value.is_null())) continue;
    *found = value;
    if (!value.is_null()) return name;
    first = name;
  }
  return first;
}

/// Likewise, but none where all are null: lines of data sets that were joined have the members of all.
const char* FirstValue(element object, std::initializer_list<const char*> names, element* found) {
  const char* name = FirstMember(object, names, found);
  return name != nullptr && found->is_null() ? nullptr : name;
}

/// OpenAI's "weight" (0 or 1) and axolotl's "train" (false or true) of an answer.
Problem ReadLearnt(const nlohmann::ordered_json& message, const std::string& place, ChatTurn* turn) {
  if (turn->role != ChatRole::kAssistant) return std::nullopt;
  for (const char* name : {"weight", "train"}) {
    const auto member = message.find(name);
    if (member == message.end() || !(member->is_boolean() || member->is_number())) continue;
    const double weight = member->is_number() ? member->get<double>() : member->get<bool>() ? 1 : 0;
    if (weight != 0 && weight != 1) {
      return DocumentProblem{
          SkipReason::kBadTurns, place + "." + name + " is " + member->dump() + ", neither 0 nor 1", {}, {}};
    }
    if (weight == 0) turn->learnt = false;
  }
  return std::nullopt;
}

Problem ReadPlainTurns(element list, const std::string& where, std::vector<ChatTurn>* turns) {
  simdjson::dom::array array;
  if (list.get_array().get(array) != simdjson::SUCCESS) {
    return DocumentProblem{
        SkipReason::kNotAString, where + " is " + NameOf(list.type()) + ", not a list of turns", {}, {}};
  }
  size_t number = 0;
  for (const element item : array) {
    const std::string place = where + "[" + std::to_string(number++) + "]";
    if (!item.is_object()) {
      return DocumentProblem{
          SkipReason::kBadTurns, place + " is " + NameOf(item.type()) + ", not a turn", {}, {}};
    }
    element role, content;
    const char* role_key = FirstMember(item, {"role", "from"}, &role);
    if (role_key == nullptr)
      return DocumentProblem{SkipReason::kMissingKey, place + " has no \"role\"", {}, {}};
    const char* content_key = FirstMember(item, {"content", "value"}, &content);
    if (content_key == nullptr) {
      return DocumentProblem{SkipReason::kMissingKey, place + " has no \"content\"", {}, {}};
    }
    std::string role_name;
    if (auto problem = ReadString(role, place + "." + role_key, &role_name)) return problem;
    const auto known = RoleNamed(role_name);
    if (!known) {
      return DocumentProblem{SkipReason::kBadTurns,
                             place + ": unknown role \"" + role_name +
                                 "\"; known are system, user (human) and assistant "
                                 "(gpt, model, bot)",
                             {},
                             {}};
    }
    ChatTurn& turn = turns->emplace_back();
    turn.role = *known;
    if (auto problem = ReadString(content, place + "." + content_key, &turn.content)) return problem;
    if (element weight; FirstValue(item, {"weight", "train"}, &weight) != nullptr) {
      const auto message = nlohmann::ordered_json::parse(simdjson::minify(item));
      if (auto problem = ReadLearnt(message, place, &turn)) return problem;
    }
  }
  return std::nullopt;
}

/// What a whole turn says in words: a text, or the texts of a list of parts.
std::string WordsOf(const nlohmann::ordered_json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string words;
  if (!content.is_array()) return words;
  for (const nlohmann::ordered_json& part : content) {
    if (part.is_object() && part.contains("text") && part["text"].is_string()) {
      words += part["text"].get<std::string>();
    }
  }
  return words;
}

/// As apply_chat_template does: templates ask whether a turn has a member, and write a null as "None".
void DropNullMembers(nlohmann::ordered_json* message) {
  for (auto member = message->begin(); member != message->end();) {
    member = member->is_null() ? message->erase(member) : std::next(member);
  }
}

/// Turns with all their members, under the names that templates read.
Problem ReadWholeTurns(element list, const std::string& where, std::vector<ChatTurn>* turns) {
  nlohmann::ordered_json messages = nlohmann::ordered_json::parse(simdjson::minify(list));
  if (!messages.is_array())
    return DocumentProblem{SkipReason::kNotAString, where + " is no list of turns", {}, {}};
  for (nlohmann::ordered_json& message : messages) {
    if (message.is_object()) DropNullMembers(&message);
  }
  if (auto problem = NameShareGptCalls(where, &messages)) return problem;
  size_t number = 0;
  for (nlohmann::ordered_json& message : messages) {
    const std::string place = where + "[" + std::to_string(number++) + "]";
    if (!message.is_object()) return DocumentProblem{SkipReason::kBadTurns, place + " is not a turn", {}, {}};
    const char* role_key = message.contains("role") ? "role" : "from";
    if (!message.contains(role_key)) {
      return DocumentProblem{SkipReason::kMissingKey, place + " has no \"role\"", {}, {}};
    }
    if (!message[role_key].is_string()) {
      return DocumentProblem{SkipReason::kNotAString, place + "." + role_key + " is not a string", {}, {}};
    }
    ChatTurn& turn = turns->emplace_back();
    const auto name = message[role_key].get<std::string>();
    const auto known = RoleNamed(name);
    turn.role = known.value_or(ChatRole::kOther);
    message["role"] = known ? NameOf(*known) : name;
    if (!message.contains("content") && message.contains("value")) message["content"] = message["value"];
    message.erase("from");
    message.erase("value");
    if (message.contains("content")) turn.content = WordsOf(message["content"]);
    if (auto problem = ReadLearnt(message, place, &turn)) return problem;
    turn.json = message.dump();
  }
  return std::nullopt;
}

/// The record's tools: a list, or a text that holds one or is blank, as columns of one type have it.
Problem ReadTools(element root, std::string* tools_json) {
  element tools;
  if (FirstValue(root, {"tools"}, &tools) == nullptr) return std::nullopt;
  std::string text = simdjson::minify(tools);
  if (std::string_view held; tools.get_string().get(held) == simdjson::SUCCESS) text = held;
  if (IsBlank(text)) return std::nullopt;
  const auto json = OrderedJsonOf(WithNumbersInRange(text));
  if (!json.is_array()) return DocumentProblem{SkipReason::kBadTurns, "\"tools\" is no list", {}, {}};
  *tools_json = json.dump();  // an empty list is one, which a template may tell from none
  return std::nullopt;
}

/// Where the turns of a record go, and how much of them.
struct TurnList {
  std::vector<ChatTurn>* turns;
  bool whole;  // ChatRecordOptions::whole_turns

  ChatTurn& Add(ChatRole role) const {
    ChatTurn& turn = turns->emplace_back();
    turn.role = role;
    return turn;
  }
};

Problem AppendTurns(element list, const std::string& key, TurnList turns) {
  const std::string where = "\"" + key + "\"";
  return turns.whole ? ReadWholeTurns(list, where, turns.turns) : ReadPlainTurns(list, where, turns.turns);
}

/// A string is a turn of this role, a list is turns.
Problem AppendTurnOrTurns(element value, const std::string& key, ChatRole role, TurnList turns) {
  if (value.is_array()) return AppendTurns(value, key, turns);
  return ReadString(value, "the value of \"" + key + "\"", &turns.Add(role).content);
}

bool SaySame(const ChatTurn& a, const ChatTurn& b) {
  const bool same_json = a.json.empty() || b.json.empty() || a.json == b.json;
  return a.role == b.role && a.content == b.content && a.input == b.input && same_json;
}

/// An answer of preference data holds the prompt's turns, too: each counts once.
/// \param prompt_turns how many of the turns, from the first, are the prompt's
Problem DropRepeatedPrompt(size_t prompt_turns, const std::string& key, std::vector<ChatTurn>* turns) {
  const auto answer = turns->begin() + static_cast<ptrdiff_t>(prompt_turns);
  if (prompt_turns == 0 || answer == turns->end()) return std::nullopt;
  if (turns->size() > 2 * prompt_turns && std::equal(turns->begin(), answer, answer, SaySame)) {
    turns->erase(turns->begin(), answer);
    return std::nullopt;
  }
  const bool asks_again = answer->role == ChatRole::kUser || answer->role == ChatRole::kSystem;
  if (std::prev(answer)->role != ChatRole::kUser || !asks_again) return std::nullopt;
  return DocumentProblem{SkipReason::kBadTurns,
                         "\"" + key + "\" begins with the " + NameOf(answer->role) +
                             ", where the assistant must speak, and does not repeat the prompt",
                         {},
                         "where it has all turns, name it for both: --prompt-key KEY --response-key KEY"};
}

/// Whether a turn that was read whole has no words, and no calls or thoughts either.
bool SaysNothing(const ChatTurn& turn) {
  if (turn.json.empty() || !IsBlank(turn.content)) return false;
  const auto members = nlohmann::ordered_json::parse(turn.json);
  return std::all_of(members.items().begin(), members.items().end(), [](const auto& member) {
    const bool names_it = member.key() == "role" || member.key() == "content" || member.key() == "name";
    return names_it || member.value().empty() || member.value() == "";
  });
}

/// Likewise of what answers a prompt. CheckTurns and CheckWholeTurns look at what is not read whole, and
/// CheckLastAnswer at conversations.
Problem AppendAnswer(element value, const std::string& key, TurnList turns) {
  const size_t prompt_turns = turns.turns->size();
  if (auto problem = AppendTurnOrTurns(value, key, ChatRole::kAssistant, turns)) return problem;
  if (auto problem = DropRepeatedPrompt(prompt_turns, key, turns.turns)) return problem;
  if (turns.turns->empty() || !SaysNothing(turns.turns->back())) return std::nullopt;
  return EmptyResponse();
}

/// A text "system" beside the turns, as LLaMA-Factory's forms have it: the system turn, where they begin with
/// none.
void ReadSystem(element object, TurnList turns) {
  element value;
  std::string_view text;
  if (FirstValue(object, {"system"}, &value) == nullptr) return;
  if (value.get_string().get(text) != simdjson::SUCCESS || IsBlank(text)) return;
  if (!turns.turns->empty() && turns.turns->front().role == ChatRole::kSystem) return;
  ChatTurn system;
  system.role = ChatRole::kSystem;
  system.content = text;
  turns.turns->insert(turns.turns->begin(), std::move(system));
}

/// "history", as LLaMA-Factory's form of Alpaca has it: a list of earlier questions, each with its answer.
Problem ReadHistory(element object, TurnList turns) {
  element history;
  simdjson::dom::array rounds, said;
  if (FirstValue(object, {"history"}, &history) == nullptr) return std::nullopt;
  if (history.get_array().get(rounds) != simdjson::SUCCESS) return std::nullopt;
  size_t number = 0;
  for (const element round : rounds) {
    const std::string place = "\"history\"[" + std::to_string(number++) + "]";
    if (round.get_array().get(said) != simdjson::SUCCESS || said.size() != 2) {
      return DocumentProblem{SkipReason::kBadTurns, place + " is no pair of question and answer", {}, {}};
    }
    ChatRole role = ChatRole::kUser;
    for (const element text : said) {
      if (auto problem = ReadString(text, place, &turns.Add(role).content)) return problem;
      role = ChatRole::kAssistant;
    }
  }
  return std::nullopt;
}

/// What an instruction is about: the first of these members that says something. A second one that is no text
/// is something else's.
const char* FindInput(element object, element* input) {
  bool is_first = true;
  for (const char* name : {"input", "context"}) {
    std::string_view text;
    if (FirstValue(object, {name}, input) == nullptr) continue;
    const bool is_text = input->get_string().get(text) == simdjson::SUCCESS;
    if (is_text ? !IsBlank(text) : is_first) return name;
    is_first = false;
  }
  return nullptr;
}

/// {"instruction", "input"?, "system"?, "history"?}
Problem ReadInstructionPrompt(element object, element instruction, TurnList turns) {
  if (auto problem = ReadHistory(object, turns)) return problem;
  element input;
  const char* const key = FindInput(object, &input);
  if (key != nullptr) turns.whole = false;  // a whole turn has no place for it
  if (auto problem = AppendTurnOrTurns(instruction, "instruction", ChatRole::kUser, turns)) return problem;
  if (turns.turns->empty()) return std::nullopt;  // an empty list
  if (key != nullptr) {
    std::string* const text = &turns.turns->back().input;
    if (auto problem = ReadString(input, std::string("the value of \"") + key + "\"", text)) return problem;
  }
  ReadSystem(object, turns);
  return std::nullopt;
}

/// {"instruction", "input"?, "system"?, "history"?, "output"}
Problem ReadInstruction(element object, element instruction, TurnList turns) {
  element output;
  if (auto problem = ReadInstructionPrompt(object, instruction, turns)) return problem;
  const char* output_key = FirstMember(object, {"output", "response"}, &output);
  if (output_key == nullptr) return Missing("output");
  return AppendAnswer(output, output_key, turns);
}

Problem ReadAlternatingTexts(element list, TurnList turns) {
  size_t number = 0;
  for (const element item : list.get_array()) {
    ChatTurn& turn = turns.Add(number % 2 == 0 ? ChatRole::kUser : ChatRole::kAssistant);
    if (auto problem = ReadString(item, "\"text\"[" + std::to_string(number) + "]", &turn.content))
      return problem;
    ++number;
  }
  return std::nullopt;
}

Problem ReadPair(element object, const char* prompt_key, element prompt,
                 std::initializer_list<const char*> answers, TurnList turns) {
  element answer;
  const char* answer_key = FirstMember(object, answers, &answer);
  if (answer_key == nullptr) return Missing(*answers.begin());
  if (auto problem = AppendTurnOrTurns(prompt, prompt_key, ChatRole::kUser, turns)) return problem;
  return AppendAnswer(answer, answer_key, turns);
}

/// {"messages"|"conversations", "system"?}
Problem ReadConversation(element object, const char* key, element list, TurnList turns) {
  if (auto problem = AppendTurns(list, key, turns)) return problem;
  ReadSystem(object, turns);
  return std::nullopt;
}

Problem NothingRecognised(element object) {
  std::string keys;
  for (const auto field : simdjson::dom::object(object)) {
    keys += (keys.empty() ? "\"" : ", \"") + std::string(field.key) + "\"";
  }
  return DocumentProblem{
      SkipReason::kMissingKey,
      "no prompt and response are recognised among its keys (" + (keys.empty() ? "none" : keys) + ")",
      {},
      {}};
}

Problem ReadKnownPrompt(element object, TurnList turns) {
  element value;
  if (const char* key = FirstValue(object, {"messages", "conversations"}, &value)) {
    return ReadConversation(object, key, value, turns);
  }
  if (FirstValue(object, {"instruction"}, &value)) return ReadInstructionPrompt(object, value, turns);
  if (const char* key = FirstMember(object, {"prompt", "question"}, &value)) {
    return AppendTurnOrTurns(value, key, ChatRole::kUser, turns);
  }
  return Missing("prompt");
}

/// Whether a line is one that `generate` wrote.
bool IsSample(element object) {
  element value;
  for (const char* key : {"prompt", "text", "ids", "sample", "finish"}) {
    if (FirstMember(object, {key}, &value) == nullptr) return false;
  }
  return true;
}

Problem ReadSample(element object, TurnList turns) {
  element text;
  if (auto problem = ReadKnownPrompt(object, turns)) return problem;
  FirstMember(object, {"text"}, &text);
  return AppendTurnOrTurns(text, "text", ChatRole::kAssistant, turns);
}

Problem ReadKnownShape(element object, TurnList turns) {
  element value;
  if (IsSample(object)) return ReadSample(object, turns);
  if (const char* key = FirstValue(object, {"messages", "conversations"}, &value)) {
    return ReadConversation(object, key, value, turns);
  }
  if (FirstValue(object, {"instruction"}, &value)) return ReadInstruction(object, value, turns);
  if (FirstMember(object, {"input"}, &value) && value.is_array()) {
    return ReadPair(object, "input", value, {"output"}, turns);
  }
  if (FirstValue(object, {"prompt"}, &value)) {
    return ReadPair(object, "prompt", value, {"response", "completion", "text"}, turns);
  }
  if (FirstValue(object, {"question"}, &value)) return ReadPair(object, "question", value, {"answer"}, turns);
  if (FirstMember(object, {"text"}, &value) && value.is_array()) return ReadAlternatingTexts(value, turns);
  return NothingRecognised(object);
}

}  // namespace

const char* NameOf(ChatRole role) {
  constexpr std::array<const char*, 4> kNames = {"system", "user", "assistant", "other"};
  return kNames[static_cast<size_t>(role)];
}

uint64_t ChatRecord::CountCharacters() const {
  uint64_t characters = 0;
  for (const ChatTurn& turn : turns) {
    characters += trainwright::CountCharacters(turn.content) + trainwright::CountCharacters(turn.input);
  }
  return characters;
}

std::string ChatRecord::HoldoutKey() const {
  std::string key;
  for (const ChatTurn& turn : turns) {
    if (turn.role == ChatRole::kAssistant) break;
    key += turn.content + '\0' + turn.input + '\0';
  }
  return key;
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::optional<DocumentProblem> CheckTurns(const ChatRecord& record, ChatRole last) {
  const auto bad = [](const std::string& problem) {
    return DocumentProblem{SkipReason::kBadTurns, problem, {}, {}};
  };
  if (record.turns.empty()) return bad("the conversation has no turns");
  ChatRole expected = ChatRole::kUser;
  for (size_t i = 0; i < record.turns.size(); ++i) {
    const ChatTurn& turn = record.turns[i];
    if (i == 0 && turn.role == ChatRole::kSystem) continue;
    if (turn.role != expected) {
      return bad("turn " + std::to_string(i) + " is of the " + NameOf(turn.role) + ", where the " +
                 NameOf(expected) + " must speak");
    }
    if (turn.role == ChatRole::kAssistant && IsBlank(turn.content)) {
      return EmptyResponse();
    }
    expected = turn.role == ChatRole::kUser ? ChatRole::kAssistant : ChatRole::kUser;
  }
  if (record.turns.back().role != last) {
    return bad(std::string("the conversation ends with the ") + NameOf(record.turns.back().role) +
               ", not with the " + NameOf(last));
  }
  return std::nullopt;
}

std::optional<DocumentProblem> CheckWholeTurns(const ChatRecord& record, bool answered) {
  const auto bad = [](const std::string& problem) {
    return DocumentProblem{SkipReason::kBadTurns, problem, {}, {}};
  };
  if (record.turns.empty()) return bad("the conversation has no turns");
  const ChatTurn& last = record.turns.back();
  if ((last.role == ChatRole::kAssistant) != answered) {
    return bad(std::string("the conversation ends with ") +
               (answered ? "another than the assistant" : "the assistant, with nothing to answer"));
  }
  if (answered && last.json.empty() && IsBlank(last.content)) {
    return EmptyResponse();
  }
  return std::nullopt;
}

std::optional<DocumentProblem> CheckLastAnswer(const ChatRecord& record) {
  if (record.turns.empty() || !SaysNothing(record.turns.back())) return std::nullopt;
  return EmptyResponse();
}

std::optional<DocumentProblem> CheckLearnt(const ChatRecord& record, bool last_only) {
  const auto learnt = [](const ChatTurn& turn) { return turn.role == ChatRole::kAssistant && turn.learnt; };
  const std::vector<ChatTurn>& turns = record.turns;
  const auto first = last_only && !turns.empty() ? turns.end() - 1 : turns.begin();
  if (std::any_of(first, turns.end(), learnt)) return std::nullopt;
  return DocumentProblem{SkipReason::kBadTurns, "no answer of the conversation is to be learnt", {}, {}};
}

struct ChatRecordReader::Impl {
  ChatRecordOptions options;
  JsonLine json;

  TurnList TurnsOf(ChatRecord* record) const { return {&record->turns, options.whole_turns}; }
  Problem ReadToolsOfWhole(element root, ChatRecord* record) const;
  Problem ReadTurns(element root, ChatRecord* record) const;
};

ChatRecordReader::ChatRecordReader(ChatRecordOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
}
ChatRecordReader::~ChatRecordReader() = default;

std::optional<DocumentProblem> ChatRecordReader::Read(std::string_view line, ChatRecord* record) {
  record->turns.clear();
  record->tools_json.clear();
  element root;
  if (auto problem = impl_->json.Parse(line, &root)) return problem;
  auto problem = impl_->ReadTurns(root, record);
  if (!problem) return impl_->options.whole_turns ? CheckWholeTurns(*record, true) : CheckTurns(*record);
  if (problem->reason == SkipReason::kMissingKey || problem->reason == SkipReason::kNotAString) {
    problem->hint = "--prompt-key and --response-key name the keys of prompt and response";
  }
  return problem;
}

std::optional<DocumentProblem> ChatRecordReader::ReadPrompt(std::string_view line, ChatRecord* record) {
  record->turns.clear();
  record->tools_json.clear();
  element root;
  if (auto problem = impl_->json.Parse(line, &root)) return problem;
  if (auto problem = impl_->ReadToolsOfWhole(root, record)) return problem;
  if (auto problem = ReadKnownPrompt(root, impl_->TurnsOf(record))) return problem;
  return impl_->options.whole_turns ? CheckWholeTurns(*record, /*answered=*/false)
                                    : CheckTurns(*record, ChatRole::kUser);
}

Problem ChatRecordReader::Impl::ReadToolsOfWhole(element root, ChatRecord* record) const {
  return options.whole_turns ? ReadTools(root, &record->tools_json) : std::nullopt;
}

Problem ChatRecordReader::Impl::ReadTurns(element root, ChatRecord* record) const {
  const TurnList turns = TurnsOf(record);
  if (auto problem = ReadToolsOfWhole(root, record)) return problem;
  if (options.prompt_key.empty()) return ReadKnownShape(root, turns);
  element prompt, response;
  if (!FindPath(root, options.prompt_key, &prompt)) return Missing(options.prompt_key);
  if (!FindPath(root, options.response_key, &response)) return Missing(options.response_key);
  if (options.prompt_key == options.response_key) return AppendTurns(response, options.response_key, turns);
  if (auto problem = AppendTurnOrTurns(prompt, options.prompt_key, ChatRole::kUser, turns)) return problem;
  return AppendAnswer(response, options.response_key, turns);
}

}  // namespace trainwright

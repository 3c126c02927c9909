#include "lib/documents/prompt_reader.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/documents/document_text.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

constexpr const char* kNamesOfTurns[] = {"messages", "conversations", "prompt"};

/// Discarded where the line is no JSON.
nlohmann::ordered_json ObjectOf(std::string_view line) {
  auto object = OrderedJsonOf(line);
  if (object.is_discarded()) object = OrderedJsonOf(WithNumbersInRange(line));
  return object;
}

Error NoPrompt(const nlohmann::ordered_json& object, const std::string& source, const std::string& place) {
  const bool has_turns = object.contains("messages") || object.contains("conversations");
  return {ErrorCode::kBadInput, source, "has no string \"prompt\"", place,
          has_turns
              ? "with --template conversations are prompts, and without it those of a model with a chat "
                "template whose first line is one"
              : "a line is an object like {\"prompt\": \"Once upon a time\"}"};
}

/// The member that is a list of turns under a name that stands for something else in the lines of samples;
/// empty: there is none that is read.
std::string_view NameOfTurns(const nlohmann::ordered_json& object) {
  const auto has = [&](const char* name) {
    const auto member = object.find(name);
    return member != object.end() && !member->is_null();
  };
  for (const char* read_first : {"messages", "conversations", "instruction"}) {
    if (has(read_first)) return "";
  }
  const char* const name = has("prompt") ? "prompt" : "question";
  const auto turns = object.find(name);
  return turns != object.end() && turns->is_array() ? name : "";
}

}  // namespace

PromptReader::PromptReader(std::optional<std::string> prompt, const std::string& path, bool conversations,
                           bool whole_turns)
    : prompt_(std::move(prompt)), path_(path) {
  constexpr uint64_t kLongestLineBytes = uint64_t{1} << 30;
  if (conversations) ReadConversations(whole_turns);
  if (prompt_) {
    prompt_sha256_ = HexEncode(Sha256Of(AsBytes(*prompt_)));
  } else {
    reader_.emplace(std::vector<DocumentInput>{{path, InputFormat::kJsonl}}, kLongestLineBytes);
    reader_->HashStoredBytes();
  }
}

bool PromptReader::BeginsWithTurns() {
  if (!reader_ || !FindFilledLine() || batch_.records[next_].too_long) return false;
  const std::string_view text = RawRecord(batch_, next_);
  if (IsNestedTooDeep(text)) return false;
  const nlohmann::ordered_json object = ObjectOf(text);
  if (!object.is_object()) return false;
  const auto prompt = object.find("prompt");
  if (prompt != object.end() && prompt->is_string()) return false;
  return std::any_of(std::begin(kNamesOfTurns), std::end(kNamesOfTurns), [&](const char* name) {
    const auto turns = object.find(name);
    return turns != object.end() && turns->is_array();
  });
}

void PromptReader::ReadConversations(bool whole_turns) {
  chats_.emplace(ChatRecordOptions{.whole_turns = whole_turns});
}

void PromptReader::ThrowIfWritten() const {
  if (reader_) reader_->ThrowIfWritten();
}

nlohmann::ordered_json PromptReader::identity() const {
  if (!reader_) return {{"path", nullptr}, {"sha256", prompt_sha256_}};
  return {{"path", path_}, {"sha256", reader_->stored_sha256()}};
}

bool PromptReader::FindFilledLine() {
  for (;; ++next_) {
    while (next_ == batch_.records.size()) {
      next_ = 0;
      if (!reader_->Next(&batch_)) {
        batch_.records.clear();
        return false;
      }
    }
    const bool is_blank = RawRecord(batch_, next_).find_first_not_of(" \t\r") == std::string_view::npos;
    if (!is_blank || batch_.records[next_].too_long) return true;
  }
}

std::optional<PromptLine> PromptReader::Next() {
  PromptLine line;
  if (!reader_) {
    if (!prompt_) return std::nullopt;
    line.text = std::move(*prompt_);
    prompt_.reset();
    line.conversation.turns = {{ChatRole::kUser, line.text, ""}};
    return line;
  }
  if (!FindFilledLine()) return std::nullopt;
  line.place = "line " + std::to_string(batch_.first_record + next_);
  const auto refuse = [&](const std::string& problem) {
    return Error(ErrorCode::kBadInput, batch_.source, problem, line.place,
                 "a line is an object like {\"prompt\": \"Once upon a time\"}");
  };
  const size_t number = next_++;
  if (batch_.records[number].too_long) throw refuse("is longer than 1 GiB");
  const std::string_view text = RawRecord(batch_, number);
  if (IsNestedTooDeep(text)) throw refuse("is nested deeper than 1000 lists and objects");
  const nlohmann::ordered_json object = ObjectOf(text);
  if (!object.is_object()) throw refuse("is no JSON object");
  if (chats_) {
    if (const auto problem = chats_->ReadPrompt(text, &line.conversation)) throw refuse(problem->problem);
    line.text = line.conversation.turns.back().content;
  } else {
    const auto prompt = object.find("prompt");
    if (prompt == object.end() || !prompt->is_string()) throw NoPrompt(object, batch_.source, line.place);
    line.text = prompt->get<std::string>();
  }
  if (const auto context = object.find("context"); context != object.end()) line.context = *context;
  const std::string_view turns = chats_ ? NameOfTurns(object) : "";
  for (const auto& [name, value] : MembersAsWritten(text)) {
    if (!turns.empty() && name == "messages") continue;  // null
    if (!turns.empty() && name == turns) line.others.emplace_back("messages", value);
    if (name != "prompt") line.others.emplace_back(name, value);
  }
  return line;
}

}  // namespace trainwright

#include "lib/documents/recorded_template.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/formats/provenance.h"
#include "lib/formats/record_kind.h"
#include "lib/jinja/template.h"
#include "lib/tok/tokenizer_folder.h"

namespace trainwright {
namespace {

constexpr char kText[] = "template", kToolText[] = "template_tool_use", kLanguage[] = "template_language",
               kTokens[] = "template_tokens", kMarks[] = "template_marks_behind_specials",
               kFirstMark[] = "template_marks_first", kTime[] = "template_time_s", kJinja[] = "jinja";
constexpr char kName[] = "of the training data";

/// What provenance says of templates of conversations, once each.
std::vector<nlohmann::ordered_json> RecordsIn(const nlohmann::ordered_json& provenance) {
  std::vector<nlohmann::ordered_json> records;
  for (const nlohmann::ordered_json& options : OptionsInProvenance(provenance, "pretokenize")) {
    const auto of = [&](const char* key) { return options.value(key, nlohmann::ordered_json()); };
    if (of("records") != RecordKindName(RecordKind::kSft) || !of(kText).is_string()) continue;
    nlohmann::ordered_json record;
    for (const char* key : {kText, kToolText, kLanguage, kTokens, kMarks, kFirstMark}) record[key] = of(key);
    if (std::find(records.begin(), records.end(), record) == records.end())
      records.push_back(std::move(record));
  }
  return records;
}

/// Of the lines of a template: the built-in one that has them, whose name and marks they do not say.
ChatTemplate TemplateOfLines(const std::string& text) {
  for (const std::string& name : BuiltInTemplateNames()) {
    ChatTemplate built_in = LoadChatTemplate(name);
    if (built_in.text == text) return built_in;
  }
  return ParseChatTemplate(text, kName);
}

/// Whether what a template in Jinja writes depends on the time.
bool DependsOnTime(const ChatTemplate& chat_template) {
  const auto uses_time = [&](const std::string& text) {
    return jinja::Template::Parse(text, "template " + chat_template.name).uses_time();
  };
  if (uses_time(chat_template.text)) return true;
  try {
    return uses_time(chat_template.tool_text);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    return false;  // it writes nothing: jinja_chats.h
  }
}

/// Of kBehindBos, nothing: so are those of data from before the others were recorded.
void RecordMarks(StartMarks marks, nlohmann::json* record) {
  if (marks == StartMarks::kBehindBos) return;
  (*record)[kMarks] = marks == StartMarks::kBehindSpecials;
  if (marks == StartMarks::kNone) (*record)[kFirstMark] = false;
}

StartMarks RecordedMarks(const nlohmann::ordered_json& record) {
  if (record[kFirstMark] == false) return StartMarks::kNone;
  if (!record[kMarks].is_boolean()) return StartMarks::kBehindBos;
  return record[kMarks] == true ? StartMarks::kBehindSpecials : StartMarks::kFirst;
}

}  // namespace

nlohmann::json RecordOfTemplate(const ChatTemplate& chat_template) {
  nlohmann::json record = {{kText, chat_template.text}};
  if (!chat_template.is_jinja) return record;
  record[kLanguage] = kJinja;
  record[kTokens] = chat_template.named_tokens;
  RecordMarks(chat_template.start_marks, &record);
  // Where it shapes ids alone: the same input makes the same bytes on another day.
  if (DependsOnTime(chat_template)) record[kTime] = chat_template.now.time_since_epoch().count();
  if (!chat_template.tool_text.empty()) record[kToolText] = chat_template.tool_text;
  return record;
}

std::optional<ChatTemplate> RecordedTemplate(const nlohmann::ordered_json& provenance) {
  const std::vector<nlohmann::ordered_json> records = RecordsIn(provenance);
  if (records.size() != 1) return std::nullopt;
  const nlohmann::ordered_json& record = records[0];
  const std::string text = record[kText].get<std::string>();
  if (record[kLanguage] != kJinja) return TemplateOfLines(text);
  ChatTemplate chat_template;
  chat_template.name = kName;
  chat_template.text = text;
  chat_template.is_jinja = true;
  chat_template.start_marks = RecordedMarks(record);
  if (record[kToolText].is_string()) chat_template.tool_text = record[kToolText].get<std::string>();
  if (record[kTokens].is_array()) {
    for (const auto& token : record[kTokens]) {
      if (token.is_array() && token.size() == 2 && token[0].is_string() && token[1].is_string())
        chat_template.named_tokens.emplace_back(token[0].get<std::string>(), token[1].get<std::string>());
    }
  }
  chat_template.now = TemplateTime();
  return chat_template;
}

bool HasSeveralTemplates(const nlohmann::ordered_json& provenance) {
  return RecordsIn(provenance).size() > 1;
}

bool LacksJinjaTemplate(const nlohmann::ordered_json& provenance) {
  const std::vector<nlohmann::ordered_json> records = RecordsIn(provenance);
  return records.size() > 1 || (records.size() == 1 && records[0][kLanguage] != kJinja);
}

std::optional<std::chrono::sys_seconds> RecordedTemplateTime(const nlohmann::ordered_json& provenance) {
  for (const nlohmann::ordered_json& options : OptionsInProvenance(provenance, "pretokenize")) {
    const auto time_s = options.find(kTime);
    if (time_s != options.end() && time_s->is_number_integer())
      return std::chrono::sys_seconds(std::chrono::seconds(time_s->get<int64_t>()));
  }
  return std::nullopt;
}

}  // namespace trainwright

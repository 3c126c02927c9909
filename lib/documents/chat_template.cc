#include "lib/documents/chat_template.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/documents/byte_order_mark.h"
#include "lib/documents/chat_record.h"
#include "lib/documents/folder_template.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

struct BuiltIn {
  const char* name;
  const char* text;
  bool marks_are_text = false;  // see ChatTemplate
};

constexpr BuiltIn kBuiltIns[] = {
    {"plain",
     R"(system {content} "\n"
user {content} "\n"
assistant [ {content} {eos} ]
instruction {content} "\n"
)"},
    {"grit",
     R"(begin {bos}
user "<|user|>\n" {content}
assistant "\n<|assistant|>\n" [ {content} {eos} ]
between "\n"
trim assistant
instruction "<|user|>\n" {content} "\n<|embed|>\n"
no-instruction "<|embed|>\n"
)",
     true},
    // Of the pooling of the last token, which needs a mark at the end: the vocabulary has no other.
    {"grit-lasttoken",
     R"(begin {bos}
user "<|user|>\n" {content}
assistant "\n<|assistant|>\n" [ {content} {eos} ]
between "\n"
trim assistant
instruction "<|user|>\n" {content} "\n<|embed|>\n"
no-instruction "<|embed|>\n"
text [ {content} {eos} ]
)",
     true},
    {"qa-space",
     R"(user {content} " "
assistant [ {content} {eos} ]
)"},
    {"chatml",
     R"(system "<|im_start|>system\n" {content} "<|im_end|>\n"
user "<|im_start|>user\n" {content} "<|im_end|>\n"
assistant "<|im_start|>assistant\n" [ {content} "<|im_end|>" ] "\n"
)"},
    {"llama2",
     R"(system {bos} "[INST] <<SYS>>\n" {content} "\n<</SYS>>\n\n"
user {bos} "[INST]" { content} " [/INST]"
user-after-system {content} " [/INST]"
assistant [ { content} " " {eos} ]
trim system user assistant
)"},
    {"llama3",
     R"(begin {bos}
system "<|start_header_id|>system<|end_header_id|>\n\n" {content} "<|eot_id|>"
user "<|start_header_id|>user<|end_header_id|>\n\n" {content} "<|eot_id|>"
assistant "<|start_header_id|>assistant<|end_header_id|>\n\n" [ {content} "<|eot_id|>" ]
trim system user assistant
)"},
    {"zephyr",
     R"(system "<|system|>\n" {content} {eos} "\n"
user "<|user|>\n" {content} {eos} "\n"
assistant "<|assistant|>\n" [ {content} {eos} ] "\n"
)"},
    {"alpaca",
     R"(no-system "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
no-system-with-input "Below is an instruction that describes a task, paired with an input that provides further context. Write a response that appropriately completes the request.\n\n"
system {content} "\n\n"
user "### Instruction:\n" {content} "\n\n"
input "\n\n### Input:\n" {content}
assistant "### Response:\n" [ {content} {eos} ]
between "\n\n"
)"},
};

/// Null: there is none of this name.
const BuiltIn* FindBuiltIn(const std::string& name) {
  const auto found = std::find_if(std::begin(kBuiltIns), std::end(kBuiltIns),
                                  [&](const BuiltIn& built_in) { return name == built_in.name; });
  return found == std::end(kBuiltIns) ? nullptr : found;
}

constexpr const char* kPartNames[kTemplatePartCount] = {
    "begin",     "no-system", "no-system-with-input", "system",         "user", "user-after-system", "input",
    "assistant", "between",   "instruction",          "no-instruction", "text"};

/// Reads the items of one line.
class LineParser {
 public:
  LineParser(std::string_view rest, std::string where) : rest_(rest), where_(std::move(where)) {}

  std::string Word() {
    SkipSpace();
    const size_t end = std::min(rest_.find_first_of(" \t"), rest_.size());
    std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }

  std::vector<TemplateItem> Items() {
    std::vector<TemplateItem> items;
    bool loss = false, had_loss = false;
    for (SkipSpace(); !rest_.empty(); SkipSpace()) {
      if (Take("[")) {
        if (had_loss) throw Bad("has a second [");
        loss = had_loss = true;
      } else if (Take("]")) {
        if (!loss) throw Bad("has a ] without a [");
        loss = false;
      } else if (rest_[0] == '"') {
        items.push_back({TemplateItem::Kind::kLiteral, Literal(), loss});
        if (items.back().literal.empty()) items.pop_back();
      } else if (const auto slot = Slot()) {
        items.push_back({*slot, "", loss});
      } else {
        throw Bad("has something that is no item: " + std::string(rest_.substr(0, 20)));
      }
    }
    if (loss) throw Bad("has a [ without a ]");
    return items;
  }

  bool empty() {
    SkipSpace();
    return rest_.empty();
  }
  Error Bad(const std::string& problem) const {
    return Error(
        ErrorCode::kUsage, where_, problem, "",
        "items are \"text\" as in JSON, {content}, { content}, {bos}, {eos}, [ and ]; see CHAT TEMPLATES in "
        "pretokenize(1)");
  }

 private:
  void SkipSpace() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size())); }
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::optional<TemplateItem::Kind> Slot() {
    if (Take("{content}")) return TemplateItem::Kind::kContent;
    if (Take("{ content}")) return TemplateItem::Kind::kSpacedContent;
    if (Take("{bos}")) return TemplateItem::Kind::kBos;
    if (Take("{eos}")) return TemplateItem::Kind::kEos;
    return std::nullopt;
  }
  std::string Literal() {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) throw Bad("has a text without its closing quote");
    const auto json = nlohmann::json::parse(rest_.substr(0, end + 1), nullptr, /*allow_exceptions=*/false);
    if (!json.is_string())
      throw Bad("has a text that is not a JSON string: " + std::string(rest_.substr(0, end + 1)));
    rest_.remove_prefix(end + 1);
    return json.get<std::string>();
  }

  std::string_view rest_;
  std::string where_;
};

bool IsContent(const TemplateItem& item) {
  return item.kind == TemplateItem::Kind::kContent || item.kind == TemplateItem::Kind::kSpacedContent;
}

void CheckPart(TemplatePart part, const std::vector<TemplateItem>& items, const LineParser& line) {
  const auto contents = std::count_if(items.begin(), items.end(), IsContent);
  const bool has_loss =
      std::any_of(items.begin(), items.end(), [](const TemplateItem& item) { return item.loss; });
  switch (part) {
    case TemplatePart::kBegin:
    case TemplatePart::kNoSystem:
    case TemplatePart::kNoSystemWithInput:
    case TemplatePart::kBetween:
    case TemplatePart::kNoInstruction:
      if (contents > 0) throw line.Bad("has no turn that {content} could stand for");
      break;
    default:
      if (contents != 1) throw line.Bad("needs {content} once");
  }
  const bool is_instruction = part == TemplatePart::kInstruction;
  if (is_instruction && !has_loss) return;
  if (part != TemplatePart::kAssistant && part != TemplatePart::kText && !is_instruction) {
    if (has_loss) {
      throw line.Bad(
          "is not predicted: [ and ] belong into the line of the assistant, or of a text or its "
          "instruction");
    }
    return;
  }
  const auto content = std::find_if(items.begin(), items.end(), IsContent);
  if (!content->loss) throw line.Bad("must have its {content} between [ and ]");
  if (part == TemplatePart::kAssistant &&
      std::any_of(items.begin(), content, [](const TemplateItem& item) { return item.loss; })) {
    throw line.Bad("has something between [ and {content}, which no prompt of inference could tell apart");
  }
  if (part != TemplatePart::kAssistant && !items.back().loss) throw line.Bad("has something after its ]");
}

void ParseTrim(LineParser* line, ChatTemplate* chat_template) {
  while (!line->empty()) {
    const std::string word = line->Word();
    bool known = false;
    for (const ChatRole role : {ChatRole::kSystem, ChatRole::kUser, ChatRole::kAssistant}) {
      if (word != NameOf(role)) continue;
      chat_template->trim[static_cast<size_t>(role)] = known = true;
    }
    if (!known) throw line->Bad("knows no role " + word);
  }
}

void ParseKeep(LineParser* line, ChatTemplate* chat_template) {
  const std::string word = line->Word();
  if (word != "instruction" || !line->empty()) throw line->Bad("keeps an instruction alone");
  chat_template->keeps_instruction = true;
}

constexpr uint64_t kMaxTemplateBytes = 1 << 20;
constexpr char kTimeVariable[] = "SOURCE_DATE_EPOCH";

/// What a clock in UTC would show when it showed what the one on the wall does now.
std::chrono::sys_seconds LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  const bool is_known = localtime_r(&now, &local) != nullptr;
  return std::chrono::sys_seconds(std::chrono::seconds(now + (is_known ? local.tm_gmtoff : 0)));
}

}  // namespace

bool ChatTemplate::JoinsInstruction() const {
  const auto is_content = [](const TemplateItem& item) {
    return item.kind == TemplateItem::Kind::kContent || item.kind == TemplateItem::Kind::kSpacedContent;
  };
  const std::vector<TemplateItem>&before = part(TemplatePart::kInstruction),
        &text = part(TemplatePart::kText);
  return !before.empty() && !text.empty() && is_content(before.back()) && is_content(text.front());
}

std::chrono::sys_seconds TemplateTime() {
  const char* epoch = std::getenv(kTimeVariable);
  if (epoch == nullptr) return LocalTime();
  int64_t time_s = 0;
  const char* end = epoch + std::strlen(epoch);
  const auto [parsed, problem] = std::from_chars(epoch, end, time_s);
  if (problem != std::errc() || parsed != end || time_s < 0) {
    throw Error(ErrorCode::kUsage, kTimeVariable, "is no number of seconds: \"" + std::string(epoch) + "\"");
  }
  return std::chrono::sys_seconds(std::chrono::seconds(time_s));
}

bool TemplateTimeIsChosen() {
  return std::getenv(kTimeVariable) != nullptr;
}

std::vector<std::string> BuiltInTemplateNames() {
  std::vector<std::string> names;
  for (const BuiltIn& built_in : kBuiltIns) names.emplace_back(built_in.name);
  return names;
}

std::string_view BuiltInTemplateText(const std::string& name) {
  const BuiltIn* built_in = FindBuiltIn(name);
  return built_in == nullptr ? std::string_view() : built_in->text;
}

ChatTemplate ParseChatTemplate(std::string_view text, const std::string& name) {
  ChatTemplate chat_template;
  chat_template.name = name;
  std::array<bool, kTemplatePartCount> seen = {};
  size_t number = 0;
  text = WithoutByteOrderMark(text);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line_text = text.substr(0, end);
    if (line_text.ends_with('\r')) line_text.remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    LineParser line(line_text, "template " + name + ", line " + std::to_string(number));
    if (line.empty()) continue;
    const std::string word = line.Word();
    if (word[0] == '#') continue;
    chat_template.text += std::string(line_text) + "\n";
    if (word == "trim") {
      ParseTrim(&line, &chat_template);
      continue;
    }
    if (word == "keep") {
      ParseKeep(&line, &chat_template);
      continue;
    }
    const auto part = std::find(std::begin(kPartNames), std::end(kPartNames), word) - std::begin(kPartNames);
    if (part == static_cast<ptrdiff_t>(kTemplatePartCount))
      throw line.Bad("begins with \"" + word + "\", which names no part");
    if (std::exchange(seen[static_cast<size_t>(part)], true))
      throw line.Bad("says " + word + " a second time");
    chat_template.parts[static_cast<size_t>(part)] = line.Items();
    CheckPart(static_cast<TemplatePart>(part), chat_template.parts[static_cast<size_t>(part)], line);
  }
  const auto fill = [&](TemplatePart part, const std::vector<TemplateItem>& items) {
    if (!seen[static_cast<size_t>(part)]) chat_template.parts[static_cast<size_t>(part)] = items;
  };
  for (const TemplatePart part : {TemplatePart::kUser, TemplatePart::kAssistant}) {
    if (seen[static_cast<size_t>(part)]) continue;
    throw Error(ErrorCode::kUsage, "template " + name,
                std::string("has no line ") + kPartNames[static_cast<size_t>(part)], "",
                "see CHAT TEMPLATES in pretokenize(1)");
  }
  fill(TemplatePart::kText, {{TemplateItem::Kind::kContent, "", true}});
  fill(TemplatePart::kUserAfterSystem, chat_template.part(TemplatePart::kUser));
  fill(TemplatePart::kNoSystemWithInput, chat_template.part(TemplatePart::kNoSystem));
  fill(TemplatePart::kInput,
       {{TemplateItem::Kind::kLiteral, "\n\nContext: ", false}, {TemplateItem::Kind::kContent, "", false}});
  if (chat_template.pools_instruction() && !chat_template.part(TemplatePart::kText).front().loss) {
    throw Error(ErrorCode::kUsage, "template " + name,
                "pools an instruction and its text, but not what is between them", "",
                "begin the line text with [, or leave [ and ] out of the line instruction");
  }
  return chat_template;
}

ChatTemplate LoadChatTemplate(const std::string& name_or_path) {
  if (const BuiltIn* built_in = FindBuiltIn(name_or_path)) {
    ChatTemplate chat_template = ParseChatTemplate(built_in->text, name_or_path);
    chat_template.marks_are_text = built_in->marks_are_text;
    return chat_template;
  }
  if (std::filesystem::is_directory(name_or_path)) {
    if (auto found = FindFolderTemplate(name_or_path)) return *std::move(found);
    throw Error(ErrorCode::kUsage, "--template",
                "the folder " + name_or_path +
                    " has neither chat_template.jinja nor a chat_template in tokenizer_config.json");
  }
  if (auto found = LoadTemplateFile(name_or_path)) return *std::move(found);
  std::string names;
  for (const std::string& name : BuiltInTemplateNames()) names += (names.empty() ? "" : ", ") + name;
  try {
    const std::vector<uint8_t> bytes = ReadWholeFile(name_or_path, kMaxTemplateBytes);
    return ParseChatTemplate(AsText(bytes), name_or_path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    throw Error(ErrorCode::kUsage, "--template",
                "no built-in template and no file is named \"" + name_or_path + "\"", "",
                "built in are " + names);
  }
}

ChatTemplate ConversationTemplate(const std::string& named, const std::string& tokenizer) {
  if (!named.empty()) return LoadChatTemplate(named);
  const std::filesystem::path path(tokenizer);
  const bool is_folder = std::filesystem::is_directory(path);
  if (is_folder || std::filesystem::is_regular_file(path)) {
    const std::filesystem::path folder = is_folder ? path : path.parent_path();
    if (auto found = FindFolderTemplate(folder)) {
      HoldInfo("conversations are written by " + found->name);
      return *std::move(found);
    }
    // A model has one way of writing them, and who trains it on another finds out at the end.
    if (std::filesystem::exists(folder / "config.json")) {
      throw Error(ErrorCode::kUsage, "--template",
                  "is needed: the model's folder " + (folder.empty() ? "." : folder.string()) +
                      " has neither chat_template.jinja nor a chat_template in tokenizer_config.json",
                  "",
                  "give the one that the model was trained on, or --template plain where it has seen no "
                  "conversation");
    }
  }
  LogWarning(
      "conversations are written by the template plain: no --template is given, and no template is beside "
      "the tokenizer");
  return LoadChatTemplate("plain");
}

}  // namespace trainwright

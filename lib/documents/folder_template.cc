#include "lib/documents/folder_template.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/tok/folder_json.h"
#include "lib/tok/tokenizer_folder.h"

namespace trainwright {
namespace {

using NamedTokens = std::vector<std::pair<std::string, std::string>>;

constexpr uint64_t kMaxTemplateBytes = 1 << 20;
constexpr uint64_t kMaxTokenizerConfigBytes = 1 << 24;  // some list every special token
constexpr char kTokenizerConfigName[] = "tokenizer_config.json";
constexpr char kJinjaName[] = "chat_template.jinja";
constexpr char kNamedTemplatesFolder[] = "additional_chat_templates", kJinjaExtension[] = ".jinja";
constexpr char kDefault[] = "default", kToolUse[] = "tool_use";

/// An empty object when there is no such file; what is no object when it holds something else.
nlohmann::json ParseTokenizerConfig(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return nlohmann::json::object();
  const std::vector<uint8_t> bytes = ReadWholeFile(path, kMaxTokenizerConfigBytes);
  return JsonOf(AsText(bytes));
}

nlohmann::json ReadTokenizerConfig(const std::filesystem::path& path) {
  nlohmann::json config = ParseTokenizerConfig(path);
  if (!config.is_object()) throw Error(ErrorCode::kUsage, path, "is no JSON object");
  return config;
}

std::string ReadTemplate(const std::string& path) {
  return std::string(AsText(ReadWholeFile(path, kMaxTemplateBytes)));
}

/// What a tokenizer's configuration calls its special tokens: "bos_token" and the like.
NamedTokens NamedTokensOf(const nlohmann::json& config) {
  NamedTokens tokens;
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) tokens.emplace_back(key, value.get<std::string>());
    if (value.is_object() && value.contains("content") && value["content"].is_string()) {
      tokens.emplace_back(key, value["content"].get<std::string>());
    }
  }
  return tokens;
}

ChatTemplate JinjaTemplate(const std::string& name, std::string source, const nlohmann::json& config) {
  ChatTemplate chat_template;
  chat_template.name = name;
  chat_template.text = std::move(source);
  chat_template.is_jinja = true;
  chat_template.named_tokens = NamedTokensOf(config);
  chat_template.now = TemplateTime();
  return chat_template;
}

std::filesystem::path NamedTemplateFile(const std::filesystem::path& folder, const std::string& name) {
  return folder / kNamedTemplatesFolder / (name + kJinjaExtension);
}

/// The last of a list of named templates that has this name.
std::optional<std::string> SourceNamed(const std::string& name, const nlohmann::json& list) {
  std::optional<std::string> found;
  for (const nlohmann::json& named : list) {
    if (!named.is_object() || named.value("name", nlohmann::json()) != name) continue;
    const nlohmann::json source = named.value("template", nlohmann::json());
    if (source.is_string()) found = source.get<std::string>();
  }
  return found;
}

/// That of a configuration: a string, or a list of named ones, of which those count that get_chat_template of
/// transformers takes.
std::optional<ChatTemplate> TemplateOfConfig(const std::string& path, const nlohmann::json& config) {
  const auto member = config.find("chat_template");
  if (member == config.end() || member->is_null()) return std::nullopt;
  if (member->is_string()) return JinjaTemplate(path, member->get<std::string>(), config);
  if (member->is_array()) {
    if (auto source = SourceNamed(kDefault, *member)) {
      ChatTemplate chat_template = JinjaTemplate(path, *std::move(source), config);
      chat_template.tool_text = SourceNamed(kToolUse, *member).value_or("");
      return chat_template;
    }
  }
  throw Error(ErrorCode::kUsage, path, "has a chat_template that is neither a text nor has one named default",
              "", "write the one that you mean to a file NAME.jinja, and give that");
}

/// A literal of Jinja.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return quoted + "\"";
}

void NameMoreTokens(const std::string& folder, ChatTemplate* chat_template) {
  auto& tokens = chat_template->named_tokens;
  for (auto& token :
       NamedTokensOf(ReadTokenizerConfig(std::filesystem::path(folder) / kTokenizerConfigName))) {
    const bool known = std::any_of(tokens.begin(), tokens.end(),
                                   [&](const auto& named) { return named.first == token.first; });
    if (!known) tokens.push_back(std::move(token));
  }
}

/// A template before which special tokens are set that it names and that `beside` does not hold.
std::string WithTokensSet(const std::string& text, const NamedTokens& tokens, const NamedTokens& beside) {
  std::string with_tokens;
  for (const auto& token : tokens) {
    if (text.find(token.first) == std::string::npos) continue;
    if (std::find(beside.begin(), beside.end(), token) != beside.end()) continue;
    // A tag takes its line's end.
    with_tokens += "{% set " + token.first + " = " + Quoted(token.second) + " %}\n";
  }
  return with_tokens + text;
}

StartMarks MarksOfFolder(const std::string& folder) {
  return StartMarksOfFolder(folder).value_or(StartMarks::kBehindBos);
}

/// Has the folder's tokenizer_config.json ask for what StartMarksOfFolder reads there, if it reads anything.
void AskForStartMarks(const std::string& folder, StartMarks marks) {
  if (std::filesystem::exists(std::filesystem::path(folder) / kTokenizerJsonFile)) return;
  if (LeavesOutStartMark(folder)) return;  // its texts have none, wherever a template asks for one
  const std::optional<StartMarks> said = StartMarksOfFolder(folder);
  if (!said || said == marks) return;
  const std::filesystem::path path = std::filesystem::path(folder) / kTokenizerConfigName;
  auto config = OrderedJsonOf(AsText(ReadWholeFile(path, kMaxTokenizerConfigBytes)));
  config.erase("add_prefix_space");
  config.erase(kTokenizerKindField);
  if (marks == StartMarks::kNone) {
    config["add_prefix_space"] = false;
    config[kTokenizerKindField] = "sentencepiece";  // other texts are marked as in the training data
  }
  if (marks == StartMarks::kBehindBos) {
    config.erase("legacy");
  } else {
    config["legacy"] = marks == StartMarks::kBehindSpecials;
  }
  WriteFileAtomically(path, AsBytes(config.dump(2) + "\n"));
}

}  // namespace

std::optional<ChatTemplate> FindFolderTemplate(const std::string& folder) {
  const std::filesystem::path path(folder), config = path / kTokenizerConfigName;
  const std::filesystem::path named = NamedTemplateFile(folder, kDefault);
  const std::filesystem::path jinja = std::filesystem::exists(named) ? named : path / kJinjaName;
  std::optional<ChatTemplate> found;
  if (std::filesystem::exists(jinja)) {
    found = JinjaTemplate(jinja, ReadTemplate(jinja), ReadTokenizerConfig(config));
  } else {
    found = TemplateOfConfig(config, ReadTokenizerConfig(config));
  }
  if (!found) return std::nullopt;
  const std::filesystem::path of_tools = NamedTemplateFile(folder, kToolUse);
  if (std::filesystem::exists(of_tools)) found->tool_text = ReadTemplate(of_tools);
  found->start_marks = MarksOfFolder(folder);
  return found;
}

std::optional<ChatTemplate> FindAdapterTemplate(const std::string& adapter, const std::string& base) {
  std::optional<ChatTemplate> found = FindFolderTemplate(adapter);
  if (!found) return FindFolderTemplate(base);
  NameMoreTokens(base, &*found);
  if (found->start_marks == StartMarks::kBehindBos) found->start_marks = MarksOfFolder(base);
  return found;
}

std::optional<ChatTemplate> LoadTemplateFile(const std::string& path) {
  const std::filesystem::path file(path);
  if (!std::filesystem::is_regular_file(file)) return std::nullopt;
  std::optional<ChatTemplate> found;
  if (file.extension() == kJinjaExtension) {
    found = JinjaTemplate(path, ReadTemplate(path),
                          ReadTokenizerConfig(file.parent_path() / kTokenizerConfigName));
  } else if (file.extension() == ".json") {
    found = TemplateOfConfig(path, ReadTokenizerConfig(file));
    if (!found) throw Error(ErrorCode::kUsage, path, "has no chat_template");
  }
  if (found) found->start_marks = MarksOfFolder(file.parent_path());
  return found;
}

void WriteFolderTemplate(const std::string& folder, const ChatTemplate& chat_template,
                         const std::string& tokens_folder) {
  // A training that is to be saved does not end over a file that names no tokens.
  const nlohmann::json config =
      ParseTokenizerConfig(std::filesystem::path(tokens_folder) / kTokenizerConfigName);
  const auto beside = NamedTokensOf(config.is_object() ? config : nlohmann::json::object());
  const auto write = [&](const std::string& path, const std::string& text) {
    WriteFileAtomically(path, AsBytes(WithTokensSet(text, chat_template.named_tokens, beside)));
  };
  write(folder + "/" + kJinjaName, chat_template.text);
  AskForStartMarks(folder, chat_template.start_marks);
  if (chat_template.tool_text.empty()) return;
  std::filesystem::create_directories(std::filesystem::path(folder) / kNamedTemplatesFolder);
  write(NamedTemplateFile(folder, kToolUse), chat_template.tool_text);
}

void RemoveFolderTemplate(const std::string& folder) {
  const std::filesystem::path path(folder), config_path = path / kTokenizerConfigName;
  std::error_code error;
  std::filesystem::remove(path / kJinjaName, error);
  if (error) throw SystemError(path / kJinjaName, "delete", error.value());
  if (!std::filesystem::exists(config_path)) return;
  auto config = OrderedJsonOf(AsText(ReadWholeFile(config_path, kMaxTokenizerConfigBytes)));
  if (!config.is_object() || config.erase("chat_template") == 0) return;
  WriteFileAtomically(config_path, AsBytes(config.dump(2) + "\n"));
}

void CopyNamedTemplates(const std::string& folder, const std::string& out) {
  const std::filesystem::path from = std::filesystem::path(folder) / kNamedTemplatesFolder;
  const std::filesystem::path to = std::filesystem::path(out) / kNamedTemplatesFolder;
  if (!std::filesystem::is_directory(from)) return;
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    if (entry.path().extension() != kJinjaExtension) continue;
    std::filesystem::create_directories(to);
    WriteFileAtomically(to / entry.path().filename(), AsBytes(ReadTemplate(entry.path())));
  }
}

}  // namespace trainwright

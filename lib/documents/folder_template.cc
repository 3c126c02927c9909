#include "lib/documents/folder_template.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxTemplateBytes = 1 << 20;
constexpr uint64_t kMaxTokenizerConfigBytes = 1 << 24;  // some list every special token
constexpr char kTokenizerConfigName[] = "tokenizer_config.json";
constexpr char kJinjaName[] = "chat_template.jinja";

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

/// What a tokenizer's configuration calls its special tokens: "bos_token" and the like.
std::vector<std::pair<std::string, std::string>> NamedTokensOf(const nlohmann::json& config) {
  std::vector<std::pair<std::string, std::string>> tokens;
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

/// That of a configuration: a string, or a list of named ones, of which the default counts.
std::optional<ChatTemplate> TemplateOfConfig(const std::string& path, const nlohmann::json& config) {
  const auto member = config.find("chat_template");
  if (member == config.end() || member->is_null()) return std::nullopt;
  if (member->is_string()) return JinjaTemplate(path, member->get<std::string>(), config);
  if (member->is_array()) {
    for (const nlohmann::json& named : *member) {
      if (!named.is_object() || named.value("name", nlohmann::json()) != "default") continue;
      const nlohmann::json source = named.value("template", nlohmann::json());
      if (source.is_string()) return JinjaTemplate(path, source.get<std::string>(), config);
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

}  // namespace

std::optional<ChatTemplate> FindFolderTemplate(const std::string& folder) {
  const std::filesystem::path jinja = std::filesystem::path(folder) / kJinjaName;
  if (std::filesystem::exists(jinja)) return LoadTemplateFile(jinja);
  const std::filesystem::path config = std::filesystem::path(folder) / kTokenizerConfigName;
  return TemplateOfConfig(config, ReadTokenizerConfig(config));
}

std::optional<ChatTemplate> FindAdapterTemplate(const std::string& adapter, const std::string& base) {
  std::optional<ChatTemplate> found = FindFolderTemplate(adapter);
  if (!found) return FindFolderTemplate(base);
  NameMoreTokens(base, &*found);
  return found;
}

std::optional<ChatTemplate> LoadTemplateFile(const std::string& path) {
  const std::filesystem::path file(path);
  if (!std::filesystem::is_regular_file(file)) return std::nullopt;
  if (file.extension() == ".jinja") {
    const std::vector<uint8_t> bytes = ReadWholeFile(path, kMaxTemplateBytes);
    return JinjaTemplate(path, std::string(AsText(bytes)),
                         ReadTokenizerConfig(file.parent_path() / kTokenizerConfigName));
  }
  if (file.extension() != ".json") return std::nullopt;
  if (auto found = TemplateOfConfig(path, ReadTokenizerConfig(file))) return found;
  throw Error(ErrorCode::kUsage, path, "has no chat_template");
}

void WriteFolderTemplate(const std::string& folder, const ChatTemplate& chat_template,
                         const std::string& tokens_folder) {
  // A training that is to be saved does not end over a file that names no tokens.
  const nlohmann::json config =
      ParseTokenizerConfig(std::filesystem::path(tokens_folder) / kTokenizerConfigName);
  const auto beside = NamedTokensOf(config.is_object() ? config : nlohmann::json::object());
  std::string text;
  for (const auto& token : chat_template.named_tokens) {
    if (chat_template.text.find(token.first) == std::string::npos) continue;
    if (std::find(beside.begin(), beside.end(), token) != beside.end()) continue;
    text += "{% set " + token.first + " = " + Quoted(token.second) + " %}\n";  // a tag takes its line's end
  }
  text += chat_template.text;
  WriteFileAtomically(folder + "/" + kJinjaName, AsBytes(text));
}

}  // namespace trainwright

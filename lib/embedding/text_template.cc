#include "lib/embedding/text_template.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/tok/folder_json.h"
#include "lib/tok/folder_text_marks.h"

namespace trainwright {
namespace {

using nlohmann::json;

constexpr char kLibraryConfig[] = "config_sentence_transformers.json";

/// The prompt of texts that come with none.
std::string DefaultPrompt(const std::string& folder) {
  const json config = ObjectOfFolder(folder, kLibraryConfig);
  const json name = config.value("default_prompt_name", json());
  if (!name.is_string()) return "";
  const json prompts = config.value("prompts", json::object());
  const auto prompt = prompts.find(name.get<std::string>());
  if (prompt != prompts.end() && prompt->is_string()) return prompt->get<std::string>();
  throw Error(ErrorCode::kBadInput, folder + "/" + kLibraryConfig,
              "has no prompt by the name that default_prompt_name gives");
}

/// The prompt by the first of the role's names that is there, be it empty, as encode_query and
/// encode_document look for it; nullopt: none is.
std::optional<std::string> RolePrompt(const std::string& folder, TextRole role) {
  const json prompts = ObjectOfFolder(folder, kLibraryConfig).value("prompts", json());
  if (!prompts.is_object()) return std::nullopt;
  const auto names = role == TextRole::kQuery ? std::vector<const char*>{"query"}
                                              : std::vector<const char*>{"document", "passage", "corpus"};
  for (const char* name : names) {
    const auto prompt = prompts.find(name);
    if (prompt != prompts.end()) return prompt->is_string() ? prompt->get<std::string>() : "";
  }
  return std::nullopt;
}

/// A line of a template; empty where it would say nothing.
std::string LineOf(const std::string& part, const std::vector<std::string>& items) {
  std::string line;
  for (const std::string& item : items) line += item.empty() ? "" : " " + item;
  return line.empty() ? "" : part + line + "\n";
}

/// Marks as items of a template.
/// \param usual the mark that `usual_item` stands for
std::string ItemsOf(const std::vector<std::string>& marks, const std::string& usual, const char* usual_item) {
  std::string items;
  for (const std::string& mark : marks) {
    items += (items.empty() ? "" : " ") + (mark == usual ? usual_item : json(mark).dump());
  }
  return items;
}

/// The items of a prompt, which may begin with the tokenizer's mark.
std::string ItemsOfPrompt(const std::string& prompt, const std::string& bos) {
  const bool has_mark = !bos.empty() && prompt.starts_with(bos);
  const std::string rest = has_mark ? prompt.substr(bos.size()) : prompt;
  const std::string literal = rest.empty() ? "" : json(rest).dump();
  return !has_mark ? literal : literal.empty() ? "{bos}" : "{bos} " + literal;
}

/// What is pooled of a text with this prompt is what is pooled here. A blank before a text is cut into tokens
/// together with it.
bool IsPooledAlike(const std::string& prompt, Pooling pooling, bool pools_prompt) {
  return prompt.empty() || pools_prompt || pooling == Pooling::kLastToken ||
         (pooling == Pooling::kMean && !prompt.ends_with(' '));
}

/// \param prompt of texts without an instruction, which IsPooledAlike
std::string TemplateOf(const std::string& folder, std::string prompt, Pooling pooling, bool pools_prompt) {
  const TextMarks marks = ReadTextMarks(folder);
  const bool has_prompt = !prompt.empty(), spaced = prompt.ends_with(' '),
             is_mean = pooling == Pooling::kMean || pooling == Pooling::kWeightedMean;
  const json config = ObjectOfFolder(folder, kTokenizerConfigFile);
  const std::string bos = TextOfToken(config.value("bos_token", json())),
                    eos = TextOfToken(config.value("eos_token", json())),
                    begin = ItemsOf(marks.begin, bos, "{bos}"), end = ItemsOf(marks.end, eos, "{eos}");
  if (spaced) prompt.pop_back();
  const std::string before = ItemsOfPrompt(prompt, bos), content = spaced ? "{ content}" : "{content}";
  const std::string turns = "user {content}\nassistant [ {content} ]\n";
  const bool pools_all = is_mean && (pools_prompt || !has_prompt);
  if (pools_all && !(begin + before).empty()) {
    return turns + LineOf("text", {"[", begin, before, content, end, "]"});
  }
  const std::string instruction = is_mean && pools_prompt ? "[ {content} ]" : "{content}";
  return turns + LineOf("begin", {begin}) + LineOf("no-instruction", {before}) +
         LineOf("instruction", {instruction}) + "keep instruction\n" +
         LineOf("text", {"[", content, end, "]"});
}

}  // namespace

std::string ReadTextTemplate(const std::string& folder, Pooling pooling, bool pools_prompt) {
  const std::string prompt = DefaultPrompt(folder);
  if (!IsPooledAlike(prompt, pooling, pools_prompt)) {
    throw Error(ErrorCode::kBadInput, folder,
                std::string("has a default prompt that it does not pool, and so another ") +
                    PoolingName(pooling) + " than the one that is known here");
  }
  return TemplateOf(folder, prompt, pooling, pools_prompt);
}

std::optional<std::string> ReadRoleTemplate(const std::string& folder, TextRole role, Pooling pooling,
                                            bool pools_prompt, const World& world) {
  const std::optional<std::string> found = RolePrompt(folder, role);
  if (!found || *found == DefaultPrompt(folder)) return std::nullopt;
  const std::string& prompt = *found;
  if (!IsPooledAlike(prompt, pooling, pools_prompt)) {
    if (world.is_writer()) {
      LogWarning(folder + ": its prompt of " + (role == TextRole::kQuery ? "queries" : "passages") +
                 " is left out: it is not pooled, and so leaves another " + PoolingName(pooling) +
                 " than the one that is known here");
    }
    return std::nullopt;
  }
  return TemplateOf(folder, prompt, pooling, pools_prompt);
}

}  // namespace trainwright

#include "lib/embedding/text_marks.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

using nlohmann::json;

constexpr char kTokenizerJson[] = "tokenizer.json", kTokenizerConfig[] = "tokenizer_config.json",
               kLibraryConfig[] = "config_sentence_transformers.json";
constexpr uint64_t kMostBytes = 1 << 28;

/// A file of the folder without its member "model", which is most of a tokenizer and not wanted; an empty
/// object where there is none, or where it is none.
json ReadObject(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  if (!std::filesystem::exists(path)) return json::object();
  const std::vector<uint8_t> text = ReadWholeFile(path, kMostBytes);
  const auto skip_model = [](int depth, json::parse_event_t event, json& value) {
    return !(depth == 1 && event == json::parse_event_t::key && value == "model");
  };
  RefuseDeepJson(AsText(text), path);
  json object = json::parse(text, skip_model, /*allow_exceptions=*/false);
  return object.is_object() ? object : json::object();
}

/// A special token of tokenizer_config.json: a string, or an object with its content.
std::string TokenOf(const json& config, const char* name) {
  json token = config.value(name, json());
  if (token.is_object()) token = token.value("content", json());
  return token.is_string() ? token.get<std::string>() : "";
}

TextMarks MarksOf(const json& post_processor) {
  TextMarks marks;
  const json steps =
      post_processor.contains("processors") ? post_processor.at("processors") : json::array({post_processor});
  for (const json& step : steps) {
    if (!step.is_object() || !step.contains("single")) continue;
    bool before = true;
    for (const json& item : step.at("single")) {
      if (item.contains("SpecialToken")) {
        (before ? marks.begin : marks.end).push_back(item.at("SpecialToken").at("id").get<std::string>());
      } else {
        before = false;
      }
    }
  }
  return marks;
}

TextMarks MarksOfConfig(const json& config) {
  TextMarks marks;
  const bool is_llama = TokenOf(config, "tokenizer_class").starts_with("LlamaTokenizer");
  const std::string bos = TokenOf(config, "bos_token"), eos = TokenOf(config, "eos_token");
  if (config.value("add_bos_token", is_llama) && !bos.empty()) marks.begin = {bos};
  if (config.value("add_eos_token", false) && !eos.empty()) marks.end = {eos};
  return marks;
}

/// The prompt of texts that come with none.
std::string DefaultPrompt(const std::string& folder) {
  const json config = ReadObject(folder, kLibraryConfig);
  const json name = config.value("default_prompt_name", json());
  if (!name.is_string()) return "";
  const json prompts = config.value("prompts", json::object());
  const auto prompt = prompts.find(name.get<std::string>());
  if (prompt != prompts.end() && prompt->is_string()) return prompt->get<std::string>();
  throw Error(ErrorCode::kBadInput, folder + "/" + kLibraryConfig,
              "has no prompt by the name that default_prompt_name gives");
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

}  // namespace

TextMarks ReadTextMarks(const std::string& folder) {
  try {
    if (!std::filesystem::exists(folder + "/" + kTokenizerJson)) {
      return MarksOfConfig(ReadObject(folder, kTokenizerConfig));
    }
    const json tokenizer = ReadObject(folder, kTokenizerJson);
    const auto post_processor = tokenizer.find("post_processor");
    if (post_processor == tokenizer.end() || !post_processor->is_object()) return {};
    return MarksOf(*post_processor);
  } catch (const json::exception&) {
    throw Error(ErrorCode::kBadInput, folder, "says in no way that is known how its tokenizer marks texts",
                "", std::string("see ") + kTokenizerJson + " and " + kTokenizerConfig + " there");
  }
}

std::string ReadTextTemplate(const std::string& folder, Pooling pooling, bool pools_prompt) {
  const TextMarks marks = ReadTextMarks(folder);
  std::string prompt = DefaultPrompt(folder);
  if (marks.begin.empty() && marks.end.empty() && prompt.empty()) return "";
  const bool has_prompt = !prompt.empty(), is_weighted = pooling == Pooling::kWeightedMean,
             is_mean = pooling == Pooling::kMean || is_weighted;
  // A blank before a text is cut into tokens together with it.
  const bool spaced = prompt.ends_with(' ');
  if (has_prompt && !pools_prompt &&
      (is_weighted || pooling == Pooling::kCls || (spaced && pooling == Pooling::kMean))) {
    throw Error(ErrorCode::kBadInput, folder,
                std::string("has a default prompt that it does not pool, and so another ") +
                    PoolingName(pooling) + " than the one that is known here");
  }
  const json config = ReadObject(folder, kTokenizerConfig);
  const std::string bos = TokenOf(config, "bos_token"), begin = ItemsOf(marks.begin, bos, "{bos}"),
                    end = ItemsOf(marks.end, TokenOf(config, "eos_token"), "{eos}");
  if (spaced) prompt.pop_back();
  const std::string before = ItemsOfPrompt(prompt, bos), content = spaced ? "{ content}" : "{content}";
  const std::string turns = "user {content}\nassistant [ {content} ]\n";
  const bool pools_all = is_mean && (pools_prompt || !has_prompt);
  if (pools_all && !(begin + before).empty()) {
    return turns + LineOf("text", {"[", begin, before, content, end, "]"});
  }
  return turns + LineOf("begin", {begin}) + LineOf("no-instruction", {before}) +
         "instruction {content} \"\\n\"\n" + LineOf("text", {"[", content, end, "]"});
}

}  // namespace trainwright

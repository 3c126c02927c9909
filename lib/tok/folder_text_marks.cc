#include "lib/tok/folder_text_marks.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/tok/folder_json.h"

namespace trainwright {
namespace {

using nlohmann::json;

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
  const auto token = [&](const char* name) { return TextOfToken(config.value(name, json())); };
  const std::string kind = token("tokenizer_class");
  const bool is_llama = kind.starts_with("LlamaTokenizer") || kind.starts_with("CodeLlamaTokenizer");
  const std::string bos = token("bos_token"), eos = token("eos_token");
  if (config.value("add_bos_token", is_llama) && !bos.empty()) marks.begin = {bos};
  if (config.value("add_eos_token", false) && !eos.empty()) marks.end = {eos};
  return marks;
}

}  // namespace

TextMarks ReadTextMarks(const std::string& folder) {
  try {
    if (!std::filesystem::exists(folder + "/" + kTokenizerJsonFile)) {
      return MarksOfConfig(ObjectOfFolder(folder, kTokenizerConfigFile));
    }
    const json tokenizer = ObjectOfFolder(folder, kTokenizerJsonFile);
    const auto post_processor = tokenizer.find("post_processor");
    if (post_processor == tokenizer.end() || !post_processor->is_object()) return {};
    return MarksOf(*post_processor);
  } catch (const json::exception&) {
    throw Error(ErrorCode::kBadInput, folder, "says in no way that is known how its tokenizer marks texts",
                "", std::string("see ") + kTokenizerJsonFile + " and " + kTokenizerConfigFile + " there");
  }
}

}  // namespace trainwright

#include "lib/tok/folder_text_marks.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/tok/folder_json.h"

namespace trainwright {
namespace {

using nlohmann::json;

/// Those of TemplateProcessing.
void AddMarksOfTemplate(const json& single, TextMarks* marks) {
  bool before = true;
  for (const json& item : single) {
    if (item.contains("SpecialToken")) {
      (before ? marks->begin : marks->end).push_back(item.at("SpecialToken").at("id").get<std::string>());
    } else {
      before = false;
    }
  }
}

TextMarks MarksOf(const json& post_processor) {
  TextMarks marks;
  const json steps =
      post_processor.contains("processors") ? post_processor.at("processors") : json::array({post_processor});
  for (const json& step : steps) {
    if (!step.is_object()) continue;
    const std::string type = step.value("type", std::string());
    if (type == "RobertaProcessing" || type == "BertProcessing") {
      marks.begin.push_back(step.at("cls").at(0).get<std::string>());
      marks.end.push_back(step.at("sep").at(0).get<std::string>());
    } else if (step.contains("single")) {
      AddMarksOfTemplate(step.at("single"), &marks);
    }
  }
  return marks;
}

/// Whether the tokenizer is of a class that puts the marks that its configuration asks for, and BOS where it
/// does not say.
/// \source transformers 4.57, models/{llama,code_llama,gemma,cohere}/tokenization_*_fast.py
bool IsOfLlamasKind(const json& config) {
  std::string kind = TextOfToken(config.value("tokenizer_class", json()));
  if (kind.ends_with("Fast")) kind.resize(kind.size() - 4);
  return kind == "LlamaTokenizer" || kind == "CodeLlamaTokenizer" || kind == "GemmaTokenizer" ||
         kind == "CohereTokenizer";
}

/// Of a tokenizer of Llama's kind that names none.
std::string UsualBosOf(const json& config) {
  const std::string kind = TextOfToken(config.value("tokenizer_class", json()));
  if (kind.starts_with("Gemma")) return "<bos>";
  return kind.starts_with("Cohere") ? "<BOS_TOKEN>" : "<s>";
}

TextMarks MarksOfConfig(const json& config) {
  TextMarks marks;
  const auto flag = [&](const char* name, bool absent) {
    const json value = config.value(name, json());
    return value.is_boolean() ? value.get<bool>() : absent;
  };
  const std::string eos = TextOfToken(config.value("eos_token", json()));
  std::string bos = TextOfToken(config.value("bos_token", json()));
  if (!config.contains("bos_token") && IsOfLlamasKind(config)) bos = UsualBosOf(config);
  if (flag("add_bos_token", IsOfLlamasKind(config)) && !bos.empty()) marks.begin = {bos};
  if (flag("add_eos_token", false) && !eos.empty()) marks.end = {eos};
  return marks;
}

/// \param config_goes_first whether tokenizers of Llama's kind go by it also where there is a tokenizer.json
TextMarks ReadMarks(const std::string& folder, bool config_goes_first) {
  try {
    const json config = WithSpecialTokensMap(folder, ObjectOfFolder(folder, kTokenizerConfigFile));
    if (!std::filesystem::exists(folder + "/" + kTokenizerJsonFile) ||
        (config_goes_first && IsOfLlamasKind(config))) {
      return MarksOfConfig(config);
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

}  // namespace

TextMarks ReadTextMarks(const std::string& folder) {
  return ReadMarks(folder, /*config_goes_first=*/false);
}

TextMarks ReadTextMarksOfTransformers4(const std::string& folder) {
  return ReadMarks(folder, /*config_goes_first=*/true);
}

}  // namespace trainwright

#include "lib/run/recipe_config.h"

#include <filesystem>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/run/foreign_optimizer.h"
#include "lib/run/recipe_program.h"

namespace trainwright {
namespace {

OptionsOfFile Translate(const RecipeProgram& program, YamlText yaml, const std::string& path,
                        const GivenValue& given) {
  if (!yaml.problem.empty()) {
    throw Error(ErrorCode::kUsage, path, yaml.problem, "line " + std::to_string(yaml.problem_line),
                yaml.problem_hint);
  }
  std::set<std::string> variables;
  if (program.prepare != nullptr) variables = program.prepare(&yaml, path);
  const auto place_of = [&](const std::string& name) {
    const auto place = yaml.places.find(name);
    return place == yaml.places.end() ? YamlPlace{} : place->second;
  };
  ForeignFile file({.path = path,
                    .root = std::move(yaml.root),
                    .hint = program.section + " in train(1) lists the keys that are read",
                    .open_word = "",
                    .has_ours = program.has_ours,
                    .variables = std::move(variables),
                    .line_of = [&](const std::string& name) { return place_of(name).line; },
                    .text_of = [&](const std::string& name) { return place_of(name).text; },
                    .given = given});
  file.Take(program.rules());
  if (program.finish != nullptr) program.finish(&file);
  return file.Result(program.name, program.defaults);
}

}  // namespace

void GiveBaseModel(const ForeignKey& key, ForeignFile* file) {
  const std::string model = file->TextOf(key);
  if (!key.value->is_string() || model.empty()) throw file->Refusal(key, "must name a model");
  file->Give(key, "init", model);
  std::error_code ignored;
  if (std::filesystem::is_directory(model, ignored)) return;
  file->Tell(key,
             "there is no folder '" + model +
                 "', and nothing is downloaded: get it (hf download NAME --local-dir DIR) and give --init "
                 "DIR, which overrides the file");
}

void TellOfData(const ForeignKey& key, RecordKind records, const std::string& chunk, ForeignFile* file) {
  file->Tell(key, "data is read from shards: make them with pretokenize --records " +
                      RecordKindName(records) + " --tokenizer MODEL-FOLDER FILE | pack --chunk " +
                      (chunk.empty() ? "N" : chunk) + " -o shards, and name them with --data");
}

std::optional<OptionsOfFile> ReadRecipe(std::string_view text, const std::string& path,
                                        const GivenValue& given) {
  YamlText yaml;
  try {
    yaml = ParseYaml(text, path);
  } catch (const Error&) {
    return std::nullopt;  // whoever reads it as a file of ours says what is wrong
  }
  if (!yaml.root.is_object()) return std::nullopt;
  for (const RecipeProgram* program : {&LoraTrainerProgram(), &TorchtuneProgram(), &AxolotlProgram()}) {
    if (program->owns(yaml.root)) return Translate(*program, std::move(yaml), path, given);
  }
  return std::nullopt;
}

}  // namespace trainwright

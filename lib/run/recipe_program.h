/// A program whose YAML files `train --config` reads: how they are known, and what becomes of their keys.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/formats/record_kind.h"
#include "lib/formats/yaml_text.h"
#include "lib/run/foreign_file.h"

namespace trainwright {

struct RecipeProgram {
  std::string name;  ///< "axolotl"
  /// Whether a file is one of this program's.
  bool (*owns)(const nlohmann::json& root);
  /// Before the keys are looked at; returns ForeignSource::variables. nullptr: nothing is to be done.
  std::set<std::string> (*prepare)(YamlText* yaml, const std::string& path);
  ForeignRules (*rules)();
  /// After each key has been taken by its rule: what goes by several keys; nullptr: nothing does.
  void (*finish)(ForeignFile* file);
  /// What the program does where the file says nothing, as options.
  std::vector<std::pair<std::string, std::string>> defaults;
  std::string section;    ///< of train(1): where its keys are listed
  bool has_ours = false;  ///< beside its sections a file may have keys of train itself
};

const RecipeProgram& AxolotlProgram();
const RecipeProgram& TorchtuneProgram();
const RecipeProgram& LoraTrainerProgram();

/// The model that a file names as --init: a folder, or a name that a notice says how to get.
void GiveBaseModel(const ForeignKey& key, ForeignFile* file);

/// "pretokenize --records sft ... | pack --chunk 512 -o shards": the notice of a key that names data.
/// \param chunk as the file says it; empty: it does not
void TellOfData(const ForeignKey& key, RecordKind records, const std::string& chunk, ForeignFile* file);

}  // namespace trainwright

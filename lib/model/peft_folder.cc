#include "lib/model/peft_folder.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/formats/json_text.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/weights_io.h"
#include "lib/spec/family.h"
#include "lib/spec/lora_targets.h"
#include "lib/spec/model_config.h"
#include "lib/spec/model_files.h"
#include "lib/spec/saved_modules.h"

namespace trainwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr char kTensorPrefix[] = "base_model.model.";
constexpr char kPickledWeights[] = "adapter_model.bin";  // of older versions of peft
constexpr uint64_t kMostConfigBytes = 1 << 24;

[[noreturn]] void Refuse(const std::string& path, const std::string& field, const std::string& problem) {
  throw Error(ErrorCode::kBadInput, path, problem, "field " + field);
}

/// null, false, {} and [] say that a feature is not used.
bool Off(const json& value) {
  return value.is_null() || value == false || ((value.is_object() || value.is_array()) && value.empty());
}

/// Fields that say nothing about the maths of an adapter that is given, or about that of plain LoRA.
const std::set<std::string>& HarmlessFields() {
  static const std::set<std::string> fields = {"auto_mapping",
                                               "base_model_name_or_path",
                                               "revision",
                                               "inference_mode",
                                               "task_type",
                                               "peft_version",
                                               "fan_in_fan_out",
                                               "layers_pattern",
                                               "megatron_core",
                                               "qalora_group_size",
                                               "loftq_config",
                                               "eva_config",
                                               "corda_config",
                                               "lora_ga_config",
                                               "ensure_weight_tying",
                                               "runtime_config",
                                               "peft_type",
                                               "r",
                                               "lora_alpha",
                                               "lora_dropout",
                                               "target_modules",
                                               "use_rslora",
                                               "use_dora",
                                               "modules_to_save",
                                               "bias",
                                               "init_lora_weights"};
  return fields;
}

/// The names of a list, sorted, each once, with commas between them.
std::string NamesOf(const json& modules, const std::string& field, const std::string& path) {
  if (!modules.is_array() || modules.empty()) Refuse(path, field, "is no list of module names");
  std::set<std::string> sorted;
  for (const json& name : modules) {
    if (!name.is_string() || name.get<std::string>().find(',') != std::string::npos) {
      Refuse(path, field, "holds " + name.dump() + ", which is no module's name");
    }
    sorted.insert(name.get<std::string>());
  }
  std::string names;
  for (const std::string& name : sorted) names += (names.empty() ? "" : ",") + name;
  return names;
}

std::string TargetsOf(const json& modules, const std::string& path) {
  return modules == "all-linear" ? "all-linear" : NamesOf(modules, "target_modules", path);
}

/// GPT-NeoX's head, which transformers 5 calls as other families do.
constexpr char kNeoxHead[] = "embed_out.weight", kHead[] = "lm_head.weight";

std::string NameInPeft(const Parameter& parameter) {
  return parameter.name == kNeoxHead ? kHead : parameter.name;
}

/// Whether a parameter is trained whole, beside adapters.
bool IsSavedWhole(const Parameter& parameter) {
  return parameter.trainable && !IsAdapterParameter(parameter) && !IsProjectionParameter(parameter);
}

/// "model.embed_tokens" of "model.embed_tokens.weight".
std::string ModuleOf(const std::string& tensor) {
  return tensor.substr(0, tensor.rfind('.'));
}

/// The other names of what is trained whole: peft stores a table that is the head twice.
std::vector<TensorAlias> SavedAliases(const FlatParameters& parameters) {
  std::vector<TensorAlias> saved;
  for (const TensorAlias& alias : parameters.aliases()) {
    if (IsSavedWhole(parameters.all()[alias.parameter])) saved.push_back(alias);
  }
  return saved;
}

/// What is trained whole, as modules_to_save names it: peft takes every module whose path ends with a name.
/// Of a table that is the head both, by which it knows that they are tied.
json SavedModulesOf(const FlatParameters& parameters) {
  std::set<std::string> modules;
  for (const Parameter& parameter : parameters.all()) {
    if (IsSavedWhole(parameter)) modules.insert(ModuleOf(NameInPeft(parameter)));
  }
  for (const TensorAlias& alias : SavedAliases(parameters)) modules.insert(ModuleOf(alias.name));
  return modules.empty() ? json() : json(modules);
}

/// Whether all of the model's modules that a name stands for, as peft goes by names, are among some: those
/// that can have no adapter here count, too, for peft would give them one.
bool NamesNoOther(const std::string& name, const FlatParameters& parameters, const std::set<size_t>& among) {
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const std::string& tensor = parameters.all()[i].name;
    const bool is_named = tensor.ends_with(".weight") && IsNamedBy(ModuleOf(tensor), name);
    if (is_named && !among.contains(i)) return false;
  }
  return true;
}

/// The names that choose the adapters' modules: q_proj where all of that name have one, else self_attn.q_proj
/// or the whole path.
std::vector<std::string> TargetNames(const FlatParameters& parameters) {
  const LoraAdapters& adapters = *parameters.adapters();
  std::set<size_t> targeted;
  for (const LoraModule& module : adapters.modules()) targeted.insert(module.weight);
  std::set<std::string> names;
  for (const LoraModule& module : adapters.modules()) {
    const std::string in_layer = NameInLayer(module.name);
    const std::string candidates[] = {in_layer.substr(in_layer.rfind('.') + 1), in_layer, module.name};
    for (const std::string& name : candidates) {
      if (!names.contains(name) && !NamesNoOther(name, parameters, targeted)) continue;
      names.insert(name);
      break;
    }
  }
  return {names.begin(), names.end()};
}

std::string EncodePeftConfig(const LanguageModel& model, const std::string& base_model) {
  const FlatParameters& parameters = model.parameters();
  const LoraOptions& lora = parameters.adapters()->options();
  bool turned = false;
  for (const LoraModule& module : parameters.adapters()->modules()) {
    turned |= parameters.all()[module.weight].file_order == FileOrder::kTransposed;
  }
  ordered_json config = {{"base_model_name_or_path", base_model},
                         {"bias", "none"},
                         {"ensure_weight_tying", true},
                         {"fan_in_fan_out", turned},
                         {"inference_mode", true},
                         {"init_lora_weights", true},
                         {"lora_alpha", lora.alpha},
                         {"lora_dropout", lora.dropout},
                         {"modules_to_save", SavedModulesOf(parameters)},
                         {"peft_type", "LORA"},
                         {"r", lora.rank},
                         {"target_modules", TargetNames(parameters)},
                         {"task_type", "CAUSAL_LM"},
                         {"use_dora", lora.dora},
                         {"use_rslora", lora.rank_stabilized}};
  if (SavedAliases(parameters).empty()) config.erase("ensure_weight_tying");  // older versions lack it
  if (lora.alpha == static_cast<double>(static_cast<int64_t>(lora.alpha))) {
    config["lora_alpha"] = static_cast<int64_t>(lora.alpha);
  }
  return config.dump(2) + "\n";
}

/// Hands each tensor of a folder's adapter to `take` with its name, less the prefix.
template <typename Take>
void ForEachTensor(const std::string& folder, const Take& take) {
  const MappedFile mapped(folder + "/" + kAdapterWeightsFileName);
  const SafetensorsHeader header = ParseSafetensors(mapped.bytes(), mapped.path());
  for (const SafetensorsEntry& entry : header.entries) {
    if (!entry.name.starts_with(kTensorPrefix)) {
      throw Error(ErrorCode::kBadInput, mapped.path(), "is no tensor of an adapter", "tensor " + entry.name);
    }
    take(entry, mapped.bytes().data() + header.data_offset + entry.begin, mapped.path(),
         entry.name.substr(sizeof(kTensorPrefix) - 1));
  }
}

constexpr char kNotOfLayersHint[] =
    "adapters of embeddings and heads are not read: merge them into the model with peft (merge_and_unload), "
    "or train these whole, with modules_to_save instead of target_modules";

/// Of which modules a folder's adapter has tensors.
struct StoredModules {
  std::vector<std::string> adapted, embeddings, all;
};

/// Refuses another rank than that of the matrices beside it, before memory is taken for such adapters.
StoredModules ModulesOfWeights(const std::string& folder, int64_t rank) {
  const std::string kind = ".lora_A.weight";
  StoredModules stored;
  ForEachTensor(folder, [&](const SafetensorsEntry& entry, const uint8_t*, const std::string& path,
                            const std::string& name) {
    stored.all.push_back(ModuleOf(name));
    if (name.ends_with(".lora_embedding_A")) stored.embeddings.push_back(ModuleOf(name));
    if (!name.ends_with(kind) || entry.shape.size() != 2) return;
    stored.adapted.push_back(name.substr(0, name.size() - kind.size()));
    if (entry.shape[0] == rank) return;
    Refuse(folder + "/" + kAdapterConfigFileName, "r",
           "is " + std::to_string(rank) + ", and " + entry.name + " of " + path + " has rank " +
               std::to_string(entry.shape[0]));
  });
  return stored;
}

bool NamesOne(const std::string& name, const std::vector<std::string>& modules) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](const std::string& module) { return IsNamedBy(module, name); });
}

[[noreturn]] void RefuseWithoutTensors(const std::string& folder, const std::string& names, const char* field,
                                       const char* what) {
  Refuse(folder + "/" + kAdapterConfigFileName, field,
         "names " + names + ", of which " + folder + "/" + kAdapterWeightsFileName + " has no " + what);
}

/// Moves the targets that no adapter is of to unused_targets. Refuses those of embeddings, modules to save
/// that are not there, and a configuration without a target that is.
void CompareWithWeights(const std::string& folder, PeftConfig* config) {
  const StoredModules stored = ModulesOfWeights(folder, config->lora.rank);
  const auto refuse_embedding = [&](const std::string& name, const char* field) {
    if (!NamesOne(name, stored.embeddings)) return;
    throw Error(ErrorCode::kBadInput, folder + "/" + kAdapterConfigFileName,
                "names " + name + ", whose adapter is of an embedding", std::string("field ") + field,
                kNotOfLayersHint);
  };
  if (config->lora.targets != "all-linear") {
    std::istringstream targets(std::exchange(config->lora.targets, ""));
    for (std::string name; std::getline(targets, name, ',');) {
      const bool is_there = NamesOne(name, stored.adapted);
      if (!is_there) refuse_embedding(name, "target_modules");
      std::string& list = is_there ? config->lora.targets : config->unused_targets;
      list += (list.empty() ? "" : ",") + name;
    }
    if (config->lora.targets.empty()) {
      RefuseWithoutTensors(folder, config->unused_targets, "target_modules", "adapter");
    }
  }
  std::istringstream saved(config->lora.saved_modules);
  for (std::string name; std::getline(saved, name, ',');) {
    if (NamesOne(name, stored.all)) continue;
    refuse_embedding(name, "modules_to_save");
    RefuseWithoutTensors(folder, name, "modules_to_save", "tensor");
  }
}

/// Whether a model has a module of a name, in its layers or beside them.
bool HasModule(const ModelConfig& model, const std::string& name) {
  const FamilyDescription& family = FamilyOf(model);
  const OuterModules outer = family.outer_modules();
  std::vector<std::string> modules = {outer.head, outer.head_of_peft};
  modules.insert(modules.end(), outer.tables.begin(), outer.tables.end());
  modules.insert(modules.end(), outer.norms.begin(), outer.norms.end());
  for (const LayerMatrix& matrix : family.LayerMatrices(model)) modules.push_back(matrix.module);
  return NamesOne(name, modules);
}

}  // namespace

bool IsPeftFolder(const std::string& folder) {
  return std::filesystem::exists(folder + "/" + kAdapterConfigFileName);
}

PeftConfig DecodePeftConfig(const std::string& text, const std::string& path) {
  const json config = JsonOf(text);
  if (!config.is_object()) throw Error(ErrorCode::kBadInput, path, "is no JSON object");
  const auto value = [&](const char* field, const json& absent = nullptr) {
    return config.contains(field) ? config[field] : absent;
  };
  const auto positive = [&](const char* field) {
    const json number = value(field);
    if (!number.is_number() || !(number.get<double>() > 0)) Refuse(path, field, "is no number above 0");
    return number.get<double>();
  };
  const auto flag = [&](const char* field) {
    const json given = value(field, false);
    if (!given.is_boolean()) Refuse(path, field, "is neither true nor false");
    return given.get<bool>();
  };
  if (value("peft_type") != "LORA")
    Refuse(path, "peft_type", "is " + value("peft_type").dump() + ", not \"LORA\"");
  if (value("bias", "none") != "none") Refuse(path, "bias", "trains biases, which this build does not");
  // Some ways to start an adapter change the base's weights, too.
  const json start = value("init_lora_weights", true);
  if (!start.is_boolean() && start != "gaussian" && start != "orthogonal" && start != "eva") {
    Refuse(path, "init_lora_weights", "is " + start.dump() + ", which changes the base's weights");
  }
  for (const auto& [field, given] : config.items()) {
    if (!HarmlessFields().contains(field) && !Off(given)) {
      Refuse(path, field, "is " + given.dump() + ", which this build does not compute");
    }
  }
  PeftConfig decoded;
  if (!value("r").is_number_integer()) Refuse(path, "r", "is no whole number");
  if (positive("r") > static_cast<double>(kMostLoraRank)) {
    Refuse(path, "r", "is " + value("r").dump() + ", and ranks are at most " + std::to_string(kMostLoraRank));
  }
  decoded.lora.rank = static_cast<int64_t>(positive("r"));
  decoded.lora.alpha = positive("lora_alpha");
  const json dropout = value("lora_dropout", 0.0);
  if (!dropout.is_number() || !(dropout >= 0.0 && dropout < 1.0)) {
    Refuse(path, "lora_dropout", "is no number in [0, 1)");
  }
  decoded.lora.dropout = dropout.get<double>();
  decoded.lora.rank_stabilized = flag("use_rslora");
  decoded.lora.targets = TargetsOf(value("target_modules"), path);
  decoded.lora.dora = flag("use_dora");
  if (const json saved = value("modules_to_save"); !Off(saved)) {
    decoded.lora.saved_modules = NamesOf(saved, "modules_to_save", path);
  }
  const json base = value("base_model_name_or_path");
  if (base.is_string()) decoded.base_model = base.get<std::string>();
  return decoded;
}

PeftConfig ReadPeftConfig(const std::string& folder) {
  const std::string path = folder + "/" + kAdapterConfigFileName;
  const std::vector<uint8_t> text = ReadWholeFile(path, kMostConfigBytes);
  PeftConfig config = DecodePeftConfig(std::string(AsText(text)), path);
  if (std::filesystem::exists(folder + "/" + kAdapterWeightsFileName)) {
    CompareWithWeights(folder, &config);
  } else if (std::filesystem::exists(folder + "/" + kPickledWeights)) {
    throw Error(ErrorCode::kBadInput, folder,
                std::string("holds ") + kPickledWeights + " and no " + kAdapterWeightsFileName, "",
                "load it with peft (PeftModel.from_pretrained) and save it again (save_pretrained), which "
                "writes safetensors");
  }
  return config;  // other files that are not there are told when they are read
}

void RequireModulesOfModel(const std::string& folder, const LoraOptions& lora, const ModelConfig& model) {
  const FamilyDescription& family = FamilyOf(model);
  const auto require = [&](const char* field, const std::string& hint, const auto& choose) {
    try {
      choose();
    } catch (const Error& error) {  // of the option that has the same names
      if (error.code() != ErrorCode::kUsage) throw;
      throw Error(ErrorCode::kBadInput, folder + "/" + kAdapterConfigFileName, error.problem(),
                  std::string("field ") + field, hint);
    }
  };
  require("target_modules", kNotOfLayersHint, [&] { ChooseLoraTargets(lora.targets, model); });
  require("modules_to_save",
          model.tie_embeddings ? "train with ensure_weight_tying: true and modules_to_save with both names, "
                                 "or on a base whose head is one of its own"
                               : "modules of layers have adapters, and are not trained whole",
          [&] { ChooseSavedModules(lora.saved_modules, family.outer_modules(), model.tie_embeddings); });
}

void RequireModelOfAdapter(const std::string& folder, const PeftConfig& config, const ModelConfig& model) {
  RequireModulesOfModel(folder, config.lora, model);
  if (config.unused_targets.empty()) return;
  std::istringstream unused(config.unused_targets);
  for (std::string name; std::getline(unused, name, ',');) {
    if (HasModule(model, name)) RefuseWithoutTensors(folder, name, "target_modules", "adapter");
  }
  LogInfo(folder + "/" + kAdapterConfigFileName + ": target_modules names " + config.unused_targets +
          ", which neither the model nor the adapter has");
}

void WritePeftFolder(const std::string& folder, const LanguageModel& model, const std::string& base_model,
                     const at::Tensor& values) {
  const FlatParameters& parameters = model.parameters();
  TRAINWRIGHT_CHECK(parameters.adapters() != nullptr);
  WriteFileAtomically(folder + "/" + kAdapterConfigFileName, AsBytes(EncodePeftConfig(model, base_model)));
  const at::Tensor flat = (values.defined() ? values : parameters.values()).cpu();
  std::vector<at::Tensor> kept;  // while the file is written
  std::vector<SafetensorsTensor> tensors;
  const auto add = [&](const Parameter& parameter, const std::string& name) {
    const at::Tensor ours = flat.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
    kept.push_back(AsInFiles(parameter, ours).contiguous());
    const auto* data = reinterpret_cast<const uint8_t*>(kept.back().const_data_ptr<float>());
    tensors.push_back(
        {kTensorPrefix + name, "F32", parameter.shape, {data, static_cast<size_t>(parameter.size) * 4}});
  };
  for (const Parameter& parameter : parameters.all()) {
    if (IsAdapterParameter(parameter) || IsSavedWhole(parameter)) add(parameter, NameInPeft(parameter));
  }
  for (const TensorAlias& alias : SavedAliases(parameters))
    add(parameters.all()[alias.parameter], alias.name);
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  AtomicFileSink sink(folder + "/" + kAdapterWeightsFileName);
  WriteSafetensors(&sink, tensors, {{"format", "pt"}});
  sink.Commit();
}

namespace {

/// peft's copy of a table of embeddings that is trained whole, for the head that it is, too.
struct TiedCopy {
  size_t parameter;
  at::Tensor values;
};

/// Where peft lets a table and the head go apart, its files lack the copy, or have another one.
/// \param wanted names of the copies and the parameters that these are of
void RequireTied(const std::string& folder, const FlatParameters& parameters,
                 const std::map<std::string, size_t>& wanted, const std::vector<TiedCopy>& copies) {
  for (const auto& [name, index] : wanted) {
    const at::Tensor table = parameters.all()[index].value.cpu();
    const bool is_tied = std::any_of(copies.begin(), copies.end(), [&, i = index](const TiedCopy& copy) {
      return copy.parameter == i && at::equal(copy.values.to(at::kFloat), table);
    });
    if (is_tied) continue;
    throw Error(
        ErrorCode::kBadInput, folder + "/" + kAdapterWeightsFileName,
        "is not that of the embeddings, though the model's head is the same matrix",
        "tensor " + (kTensorPrefix + name),
        "peft untied them: train with ensure_weight_tying: true and modules_to_save with both, or on a "
        "base whose head is one of its own");
  }
}

/// "model." of "model.layers.0...": what the names lack in an adapter of a body alone, as AutoModel opens it.
std::string BodyPrefix(const FlatParameters& parameters) {
  const auto& all = parameters.all();
  const auto of_layer = std::find_if(all.begin(), all.end(), IsAdapterParameter);
  return of_layer == all.end() ? "" : of_layer->name.substr(0, of_layer->name.find('.') + 1);
}

}  // namespace

void LoadPeftWeights(const std::string& folder, FlatParameters* parameters) {
  std::map<std::string, size_t> missing, copied;
  for (size_t i = 0; i < parameters->all().size(); ++i) {
    const Parameter& parameter = parameters->all()[i];
    if (IsAdapterParameter(parameter) || IsSavedWhole(parameter)) missing[NameInPeft(parameter)] = i;
  }
  for (const TensorAlias& alias : SavedAliases(*parameters)) copied[alias.name] = alias.parameter;
  const std::string body_prefix = BodyPrefix(*parameters);
  std::vector<TiedCopy> copies;
  ForEachTensor(folder, [&](const SafetensorsEntry& entry, const uint8_t* data, const std::string& path,
                            const std::string& given) {
    const bool is_older = given == kNeoxHead && missing.contains(kHead);  // by transformers 4
    const bool is_of_body = !missing.contains(given) && missing.contains(body_prefix + given);
    const std::string name = is_older ? kHead : is_of_body ? body_prefix + given : given;
    if (const auto copy = copied.find(name); copy != copied.end()) {
      const std::vector<int64_t>& shape = parameters->all()[copy->second].shape;
      copies.push_back({copy->second, ViewTensor(entry, data, path, shape).clone()});
      return;
    }
    const auto found = missing.find(name);
    if (found == missing.end()) {
      throw Error(ErrorCode::kBadInput, path, "is no adapter of the modules that adapter_config.json names",
                  "tensor " + entry.name);
    }
    // A body has no head that peft could have untied from its table.
    if (is_of_body) std::erase_if(copied, [&](const auto& copy) { return copy.second == found->second; });
    const Parameter& parameter = parameters->all()[found->second];
    parameters->Assign(found->second, AsInModel(parameter, ViewTensor(entry, data, path, parameter.shape)));
    missing.erase(found);
  });
  if (!missing.empty()) {
    throw Error(ErrorCode::kBadInput, folder + "/" + kAdapterWeightsFileName, "lacks a tensor",
                "tensor " + (kTensorPrefix + missing.begin()->first));
  }
  RequireTied(folder, *parameters, copied, copies);
  parameters->RefreshCompute();
}

namespace {

/// Whether modules_to_save names a parameter beside the layers.
bool IsSavedBy(const std::string& saved_modules, const Parameter& parameter) {
  const std::string module = ModuleOf(parameter.name), in_peft = ModuleOf(NameInPeft(parameter));
  if (!NameInLayer(module).empty()) return false;
  std::istringstream names(saved_modules);
  for (std::string name; std::getline(names, name, ',');) {
    if (IsNamedBy(module, name) || IsNamedBy(in_peft, name)) return true;
  }
  return false;
}

/// W with its adapter, in double.
/// \param matrix values of a parameter of the adapters, in double
at::Tensor MergedWeights(const at::Tensor& weight, const LoraModule& module, const LoraOptions& lora,
                         const std::function<at::Tensor(size_t index)>& matrix) {
  const at::Tensor update = matrix(module.b).matmul(matrix(module.a)).mul(lora.scaling());
  at::Tensor merged = weight.cpu().to(at::kDouble).add(update);
  if (!lora.dora) return merged;
  const at::Tensor norms = at::linalg_vector_norm(merged, 2, at::IntArrayRef({1}))
                               .clamp_min(static_cast<double>(std::numeric_limits<float>::min()));
  return merged.mul(matrix(module.magnitude).div(norms).unsqueeze(1));
}

}  // namespace

void MergePeftFolder(const std::string& folder, FlatParameters* parameters) {
  // The adapters of a model of these shapes, alone.
  const PeftConfig config = ReadPeftConfig(folder);
  FlatParameters shapes;
  const auto add = [](const Parameter& parameter, FlatParameters* to) {
    const size_t index = to->Add(parameter.name, parameter.shape, parameter.decay, parameter.rate);
    (*to)[index].file_order = parameter.file_order;
    (*to)[index].num_heads = parameter.num_heads;
    (*to)[index].adaptable = parameter.adaptable;
    return index;
  };
  for (const Parameter& parameter : parameters->all()) add(parameter, &shapes);
  const LoraAdapters adapters(config.lora, /*blocks=*/{}, &shapes);  // peft goes by names alone
  FlatParameters stored;
  std::map<size_t, size_t> indices;  // of shapes, in `stored`
  for (size_t i = 0; i < shapes.all().size(); ++i) {
    const Parameter& parameter = shapes.all()[i];
    if (IsAdapterParameter(parameter) || IsSavedBy(config.lora.saved_modules, parameter)) {
      indices[i] = add(parameter, &stored);
    }
  }
  for (const TensorAlias& alias : parameters->aliases()) {
    if (indices.contains(alias.parameter)) stored.AddAlias(alias.name, indices.at(alias.parameter));
  }
  stored.Allocate({}, at::Device(at::kCPU));
  LoadPeftWeights(folder, &stored);
  const auto value = [&](size_t index) { return stored[indices.at(index)].value; };
  for (const LoraModule& module : adapters.modules()) {
    const Parameter& base = parameters->all()[module.weight];
    TRAINWRIGHT_CHECK(base.trainable);
    const at::Tensor merged = MergedWeights(base.value, module, config.lora,
                                            [&](size_t index) { return value(index).to(at::kDouble); });
    parameters->Assign(module.weight, merged.to(at::kFloat));
  }
  for (size_t i = 0; i < parameters->all().size(); ++i) {
    if (indices.contains(i)) parameters->Assign(i, value(i));
  }
  parameters->RefreshCompute();
}

}  // namespace trainwright

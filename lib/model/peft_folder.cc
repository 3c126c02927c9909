#include "lib/model/peft_folder.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/weights_io.h"
#include "lib/spec/model_files.h"

namespace trainwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr char kTensorPrefix[] = "base_model.model.";
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
                                               "bias",
                                               "init_lora_weights"};
  return fields;
}

std::string TargetsOf(const json& modules, const std::string& path) {
  if (modules == "all-linear") return "all-linear";
  if (!modules.is_array() || modules.empty()) {
    Refuse(path, "target_modules", "is no list of module names");
  }
  std::vector<std::string> names;
  for (const json& name : modules) {
    if (!name.is_string() || name.get<std::string>().find(',') != std::string::npos) {
      Refuse(path, "target_modules", "holds " + name.dump() + ", which is no module's name");
    }
    names.push_back(name.get<std::string>());
  }
  std::sort(names.begin(), names.end());
  std::string targets;
  for (const std::string& name : names) targets += (targets.empty() ? "" : ",") + name;
  return targets;
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
      const std::vector<size_t> chosen = LoraTargets(name, parameters, /*blocks=*/{});  // by names alone
      const bool ours =
          std::all_of(chosen.begin(), chosen.end(), [&](size_t index) { return targeted.contains(index); });
      if (!ours) continue;
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
                         {"fan_in_fan_out", turned},
                         {"inference_mode", true},
                         {"init_lora_weights", true},
                         {"lora_alpha", lora.alpha},
                         {"lora_dropout", lora.dropout},
                         {"modules_to_save", nullptr},
                         {"peft_type", "LORA"},
                         {"r", lora.rank},
                         {"target_modules", TargetNames(parameters)},
                         {"task_type", "CAUSAL_LM"},
                         {"use_dora", false},
                         {"use_rslora", lora.rank_stabilized}};
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

/// Refuses another rank than that of the matrices beside it, and modules that none of them is of, before
/// memory is taken for such adapters.
void RequireThoseOfWeights(const std::string& folder, const LoraOptions& lora) {
  const std::string config = folder + "/" + kAdapterConfigFileName;
  const std::string weights = folder + "/" + kAdapterWeightsFileName;
  if (!std::filesystem::exists(weights)) return;  // told when they are read
  const std::string kind = ".lora_A.weight";
  std::vector<std::string> modules;
  ForEachTensor(folder, [&](const SafetensorsEntry& entry, const uint8_t*, const std::string& path,
                            const std::string& name) {
    if (!name.ends_with(kind) || entry.shape.size() != 2) return;
    modules.push_back(name.substr(0, name.size() - kind.size()));
    if (entry.shape[0] == lora.rank) return;
    Refuse(config, "r",
           "is " + std::to_string(lora.rank) + ", and " + entry.name + " of " + path + " has rank " +
               std::to_string(entry.shape[0]));
  });
  std::istringstream targets(lora.targets == "all-linear" ? "" : lora.targets);
  for (std::string target; std::getline(targets, target, ',');) {
    const bool found = std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
      return module == target || module.ends_with("." + target);
    });
    if (!found)
      Refuse(config, "target_modules", "names " + target + ", of which " + weights + " has no adapter");
  }
}

}  // namespace

bool IsPeftFolder(const std::string& folder) {
  return std::filesystem::exists(folder + "/" + kAdapterConfigFileName);
}

PeftConfig DecodePeftConfig(const std::string& text, const std::string& path) {
  const json config = json::parse(text, nullptr, /*allow_exceptions=*/false);
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
  const json base = value("base_model_name_or_path");
  if (base.is_string()) decoded.base_model = base.get<std::string>();
  return decoded;
}

PeftConfig ReadPeftConfig(const std::string& folder) {
  const std::string path = folder + "/" + kAdapterConfigFileName;
  const std::vector<uint8_t> text = ReadWholeFile(path, kMostConfigBytes);
  PeftConfig config = DecodePeftConfig(std::string(AsText(text)), path);
  RequireThoseOfWeights(folder, config.lora);
  return config;
}

void WritePeftFolder(const std::string& folder, const LanguageModel& model, const std::string& base_model,
                     const at::Tensor& values) {
  const FlatParameters& parameters = model.parameters();
  TRAINWRIGHT_CHECK(parameters.adapters() != nullptr);
  WriteFileAtomically(folder + "/" + kAdapterConfigFileName, AsBytes(EncodePeftConfig(model, base_model)));
  const at::Tensor flat = (values.defined() ? values : parameters.values()).cpu();
  std::vector<at::Tensor> kept;  // while the file is written
  std::vector<SafetensorsTensor> tensors;
  for (const Parameter& parameter : parameters.all()) {
    if (!IsAdapterParameter(parameter)) continue;
    const at::Tensor ours = flat.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
    kept.push_back(AsInFiles(parameter, ours).contiguous());
    const auto* data = reinterpret_cast<const uint8_t*>(kept.back().const_data_ptr<float>());
    tensors.push_back({kTensorPrefix + parameter.name,
                       "F32",
                       parameter.shape,
                       {data, static_cast<size_t>(parameter.size) * 4}});
  }
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  AtomicFileSink sink(folder + "/" + kAdapterWeightsFileName);
  WriteSafetensors(&sink, tensors, {{"format", "pt"}});
  sink.Commit();
}

void LoadPeftWeights(const std::string& folder, FlatParameters* parameters) {
  std::map<std::string, size_t> missing;
  for (size_t i = 0; i < parameters->all().size(); ++i) {
    if (IsAdapterParameter(parameters->all()[i])) missing[parameters->all()[i].name] = i;
  }
  ForEachTensor(folder, [&](const SafetensorsEntry& entry, const uint8_t* data, const std::string& path,
                            const std::string& name) {
    const auto found = missing.find(name);
    if (found == missing.end()) {
      throw Error(ErrorCode::kBadInput, path, "is no adapter of the modules that adapter_config.json names",
                  "tensor " + entry.name);
    }
    const Parameter& parameter = parameters->all()[found->second];
    parameters->Assign(found->second, AsInModel(parameter, ViewTensor(entry, data, path, parameter.shape)));
    missing.erase(found);
  });
  if (!missing.empty()) {
    throw Error(ErrorCode::kBadInput, folder + "/" + kAdapterWeightsFileName, "lacks a tensor",
                "tensor " + (kTensorPrefix + missing.begin()->first));
  }
  parameters->RefreshCompute();
}

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
  FlatParameters low_rank;
  std::map<std::string, size_t> indices;
  for (const Parameter& parameter : shapes.all()) {
    if (IsAdapterParameter(parameter)) {
      indices[parameter.name] = add(parameter, &low_rank);
    }
  }
  low_rank.Allocate({}, at::Device(at::kCPU));
  LoadPeftWeights(folder, &low_rank);
  for (const LoraModule& module : adapters.modules()) {
    const Parameter& base = parameters->all()[module.weight];
    TRAINWRIGHT_CHECK(base.trainable);
    const auto matrix = [&](size_t index) {
      return low_rank[indices.at(shapes.all()[index].name)].value.to(at::kDouble);
    };
    const at::Tensor update = matrix(module.b).matmul(matrix(module.a)).mul(config.lora.scaling());
    parameters->Assign(module.weight, base.value.cpu().to(at::kDouble).add(update).to(at::kFloat));
  }
  parameters->RefreshCompute();
}

}  // namespace trainwright

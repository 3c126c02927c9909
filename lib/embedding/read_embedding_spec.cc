#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/embedding/text_marks.h"
#include "lib/formats/json_fields.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"
#include "lib/model/embedding_projection.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kModulesFile[] = "modules.json", kModuleConfig[] = "config.json";
constexpr uint64_t kMostBytes = 1 << 24;

std::string TextOf(const std::string& path) {
  const std::vector<uint8_t> bytes = ReadWholeFile(path, kMostBytes);
  return std::string(AsText(bytes));
}

/// A file of sentence-transformers; an empty object where there is none.
json ReadObject(const std::string& path) {
  if (!std::filesystem::exists(path)) return json::object();
  json object = ParseJson(TextOf(path), path);
  if (!object.is_object()) throw Error(ErrorCode::kBadInput, path, "is no JSON object");
  return object;
}

/// The way that "pooling_mode" names: a name, or a list of one. Of several the vectors would stand one behind
/// the other.
std::optional<Pooling> NamedPooling(const json& config) {
  json mode = config.value("pooling_mode", json());
  if (mode.is_array() && mode.size() == 1) mode = json(mode.front());
  return mode.is_string() ? FindPooling(mode.get<std::string>()) : std::nullopt;
}

/// \param config names the way as "pooling_mode", or has a switch for each
Pooling PoolingOf(const json& config, const std::string& path) {
  constexpr struct {
    const char* field;
    Pooling pooling;
  } kModes[] = {{"pooling_mode_cls_token", Pooling::kCls},
                {"pooling_mode_mean_tokens", Pooling::kMean},
                {"pooling_mode_weightedmean_tokens", Pooling::kWeightedMean},
                {"pooling_mode_lasttoken", Pooling::kLastToken}};
  std::optional<Pooling> found = NamedPooling(config);
  int modes = found ? 1 : 0;
  for (const auto& [name, value] : config.items()) {
    if (!name.starts_with("pooling_mode_") || value != json(true)) continue;
    ++modes;
    for (const auto& mode : kModes) {
      if (name == mode.field) found = mode.pooling;
    }
  }
  if (modes == 1 && found) return *found;
  throw Error(ErrorCode::kBadInput, path, "names no pooling that is known here, or several", "",
              "known are cls, mean, weightedmean and lasttoken, one of them alone");
}

/// What a linear layer makes of a vector.
int64_t SizeOfDense(const json& config, const std::string& path) {
  const std::string activation =
      config.value("activation_function", std::string("torch.nn.modules.activation.Tanh"));  // theirs
  if (!activation.ends_with(".Identity")) {
    throw Error(ErrorCode::kBadInput, path,
                "has an activation function, and projections here have none: " + activation.substr(0, 80));
  }
  int64_t size = 0;
  ReadField(config, "out_features", path, &size);
  if (size < 1) throw Error(ErrorCode::kBadInput, path, "its out_features is not positive");
  return size;
}

/// Reads the linear layer that a module of `folder` is.
/// \param spec of the modules before it
/// \returns elements of its vectors
int64_t ReadDense(const json& module, const std::string& folder, const EmbeddingSpec& spec, bool pools) {
  const std::string own_folder = module.at("path").get<std::string>();
  const std::string path = folder + "/" + own_folder + "/" + kModuleConfig;
  if (fs::path(own_folder).lexically_normal().string() != kProjectionFolder || spec.projection > 0) {
    throw Error(ErrorCode::kBadInput, path,
                "is a linear layer beside or in place of the one that is read here", "",
                std::string("one is read, in the folder ") + kProjectionFolder);
  }
  if (!pools || spec.normalize) {
    throw Error(ErrorCode::kBadInput, path,
                std::string("is a linear layer ") + (pools ? "after Normalize" : "before the pooling"), "",
                "one between the pooling and Normalize is read here");
  }
  const int64_t size = SizeOfDense(ReadObject(path), path);
  const std::optional<int64_t> rows = ProjectionOf(folder);
  if (rows == size) return size;
  throw Error(ErrorCode::kBadInput, path,
              rows ? "says that the layer makes " + std::to_string(size) +
                         " elements, and its matrix makes " + std::to_string(*rows)
                   : "has no model.safetensors beside it",
              "", rows ? "" : "save the model again by a sentence-transformers that writes safetensors");
}

/// The file of a class that config.json names; empty: transformers' own.
std::string ModuleOf(const json& auto_map, const char* of) {
  const auto found = auto_map.find(of);
  if (found == auto_map.end() || !found->is_string()) return "";
  const std::string name = found->get<std::string>();
  return name.substr(0, name.find('.'));
}

/// transformers' class of the body is one of another file than the language model: that of bidirectional
/// attention. A family that transformers does not have has both in one.
bool HasOwnBody(const json& config) {
  const auto own = config.find("auto_map");
  if (own == config.end() || !own->is_object()) return false;
  const std::string body = ModuleOf(*own, "AutoModel");
  return !body.empty() && body != ModuleOf(*own, "AutoModelForCausalLM");
}

EmbeddingSpec FromModules(const json& modules, const std::string& folder) {
  EmbeddingSpec spec;
  spec.normalize = false;
  bool pools = false, pools_prompt = true, pools_behind_prompt = false;
  for (const json& module : modules) {
    const std::string type = module.at("type").get<std::string>();
    const std::string path = folder + "/" + module.at("path").get<std::string>() + "/" + kModuleConfig;
    if (type.ends_with(".Transformer")) {
      continue;
    } else if (type.ends_with(".Pooling")) {
      const json config = ReadObject(path);
      spec.pooling = PoolingOf(config, path);
      pools_prompt = config.value("include_prompt", true);
      pools = true;
    } else if (type.ends_with(".WeightedMeanBehindPrompt")) {
      spec.pooling = Pooling::kWeightedMean;
      pools = pools_behind_prompt = true;
    } else if (type.ends_with(".Dense")) {
      spec.projection = ReadDense(module, folder, spec, pools);
    } else if (type.ends_with(".Normalize")) {
      spec.normalize = true;
    } else {
      throw Error(ErrorCode::kBadInput, folder + "/" + kModulesFile,
                  "names a module that is unknown here: " + type.substr(0, 80));
    }
  }
  if (!pools) throw Error(ErrorCode::kBadInput, folder + "/" + kModulesFile, "names no pooling");
  // Behind the prompt weights are what they are here; what is pooled is what a mean pools.
  spec.template_text = pools_behind_prompt ? ReadTextTemplate(folder, Pooling::kMean, /*pools_prompt=*/false)
                                           : ReadTextTemplate(folder, spec.pooling, pools_prompt);
  const bool bidirectional = HasOwnBody(ReadObject(folder + "/" + kModuleConfig));
  spec.attention = bidirectional ? "bb" : "cc";
  spec.mask = bidirectional ? AttentionMask::kBidirectional : AttentionMask::kCausal;
  const std::string limits = folder + "/sentence_bert_config.json";
  const json longest = ReadObject(limits);
  if (longest.value("do_lower_case", json()) == json(true)) {
    throw Error(ErrorCode::kBadInput, limits, "says do_lower_case, and texts here stay as they are");
  }
  if (longest.contains("max_seq_length") && !longest["max_seq_length"].is_null()) {
    ReadField(longest, "max_seq_length", limits, &spec.query_max_len);
    spec.passage_max_len = spec.query_max_len;
  }
  return spec;
}

}  // namespace

std::optional<EmbeddingSpec> ReadEmbeddingSpec(const std::string& folder) {
  const std::string own = folder + "/" + kEmbeddingFileName, modules = folder + "/" + kModulesFile;
  if (std::filesystem::exists(own)) return DecodeEmbeddingSpec(TextOf(own), own);
  if (!std::filesystem::exists(modules)) return std::nullopt;
  try {
    return FromModules(ParseJson(TextOf(modules), modules), folder);
  } catch (const json::exception&) {
    throw Error(ErrorCode::kBadInput, modules,
                "or a file that it names lacks a field, or has one of the wrong type");
  }
}

}  // namespace trainwright

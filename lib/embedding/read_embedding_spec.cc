#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/dist/world.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/embedding/similarity.h"
#include "lib/embedding/text_template.h"
#include "lib/formats/json_fields.h"
#include "lib/formats/json_text.h"
#include "lib/formats/text_role.h"
#include "lib/io/byte_source.h"
#include "lib/model/embedding_projection.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kModulesFile[] = "modules.json", kModuleConfig[] = "config.json",
               kConfigOfTokenizer[] = "tokenizer_config.json";
constexpr char kLongestOfTokenizer[] = "model_max_length";
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

/// The longest text of a tokenizer; 0: as long as the model's positions.
/// \param model config.json
int64_t LongestOfTokenizer(const std::string& folder, const json& model) {
  constexpr double kNone = 1e9;  // transformers writes 1e30 for a tokenizer that has no longest text
  const json config = ReadObject(folder + "/" + kConfigOfTokenizer);
  const json longest = config.value(kLongestOfTokenizer, config.value("max_len", json()));
  const json positions = model.value("max_position_embeddings", model.value("n_positions", json()));
  const double most = positions.is_number() ? std::min(kNone, positions.get<double>()) : kNone;
  const double tokens = longest.is_number() ? longest.get<double>() : kNone;
  return tokens >= 1 && tokens < most ? static_cast<int64_t>(tokens) : 0;
}

/// The longest text in tokens, as sentence-transformers finds it: what its own file has for the tokenizer,
/// else its max_seq_length, else what the tokenizer's file has.
/// \param limits the library's file, at `path`
/// \param model config.json
int64_t LongestText(const json& limits, const std::string& path, const std::string& folder,
                    const json& model) {
  // The older name of the same field goes first.
  const json arguments = limits.value("tokenizer_args", limits.value("processor_kwargs", json::object()));
  const bool of_arguments = arguments.is_object() && arguments.contains(kLongestOfTokenizer);
  const json& from = of_arguments ? arguments : limits;
  const char* field = of_arguments ? kLongestOfTokenizer : "max_seq_length";
  if (!from.contains(field) || from.at(field).is_null()) return LongestOfTokenizer(folder, model);
  int64_t longest = 0;
  ReadField(from, field, path, &longest);
  return longest;
}

/// By what the library compares vectors that may have any length.
Similarity SimilarityOf(const std::string& folder, const World& world) {
  const std::string path = folder + "/config_sentence_transformers.json";
  const json name = ReadObject(path).value("similarity_fn_name", json());
  if (!name.is_string()) return Similarity::kCosine;  // the library's own choice
  if (const auto known = FindSimilarity(name.get<std::string>())) return *known;
  if (world.is_writer()) {
    LogWarning(path + ": compares vectors by " + name.dump().substr(0, 40) +
               ": here they are compared by their cosine");
  }
  return Similarity::kCosine;
}

EmbeddingSpec FromModules(const json& modules, const std::string& folder, const std::string& body_folder,
                          const World& world) {
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
  if (!spec.normalize) spec.similarity = SimilarityOf(folder, world);
  // Behind the prompt weights are what they are here; what is pooled is what a mean pools.
  const Pooling pooled = pools_behind_prompt ? Pooling::kMean : spec.pooling;
  if (pools_behind_prompt) pools_prompt = false;
  spec.template_text = ReadTextTemplate(folder, pooled, pools_prompt);
  spec.query_template = ReadRoleTemplate(folder, TextRole::kQuery, pooled, pools_prompt, world);
  spec.passage_template = ReadRoleTemplate(folder, TextRole::kPositive, pooled, pools_prompt, world);
  const json model = ReadObject(body_folder + "/" + kModuleConfig);
  const bool bidirectional = HasOwnBody(model) || model.value("is_causal", json()) == json(false);
  spec.attention = bidirectional ? "bb" : "cc";
  spec.mask = bidirectional ? AttentionMask::kBidirectional : AttentionMask::kCausal;
  const std::string limits = folder + "/sentence_bert_config.json";
  const json read = ReadObject(limits);
  if (read.value("do_lower_case", json()) == json(true)) {
    throw Error(ErrorCode::kBadInput, limits, "says do_lower_case, and texts here stay as they are");
  }
  spec.query_max_len = spec.passage_max_len = LongestText(read, limits, folder, model);
  return spec;
}

}  // namespace

std::optional<EmbeddingSpec> ReadEmbeddingSpec(const std::string& folder) {
  return ReadEmbeddingSpec(folder, folder);
}

std::optional<EmbeddingSpec> ReadEmbeddingSpec(const std::string& folder, const std::string& body_folder,
                                               const World& world) {
  const std::string own = folder + "/" + kEmbeddingFileName, modules = folder + "/" + kModulesFile;
  if (std::filesystem::exists(own)) return DecodeEmbeddingSpec(TextOf(own), own);
  if (!std::filesystem::exists(modules)) return std::nullopt;
  try {
    return FromModules(ParseJson(TextOf(modules), modules), folder, body_folder, world);
  } catch (const json::exception&) {
    throw Error(ErrorCode::kBadInput, modules,
                "or a file that it names lacks a field, or has one of the wrong type");
  }
}

}  // namespace trainwright

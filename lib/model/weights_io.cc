#include "lib/model/weights_io.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/version.h"
#include "lib/codec/checkpoint_encoder.h"
#include "lib/codec/compressed_file.h"
#include "lib/formats/json_text.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_source.h"
#include "lib/model/embedding_projection.h"
#include "lib/model/weight_file.h"
#include "lib/nn/linear/lora.h"
#include "lib/spec/model_files.h"

namespace trainwright {
namespace {

std::string ShapeName(const std::vector<int64_t>& shape) {
  std::string name = "[";
  for (const int64_t extent : shape) name += (name.size() > 1 ? ", " : "") + std::to_string(extent);
  return name + "]";
}

constexpr char kOtherModelHint[] =
    "config.json and the weights must belong to the same model; fetch both again, or correct config.json";
constexpr char kHeadHint[] =
    "save the model with its head, as AutoModelForCausalLM does; embed and train --mode embedding need none";
constexpr char kFetchHint[] = "fetch the model again: its weights are incomplete";

/// The files that hold a folder's weights, and which tensors an index says of each.
using WeightFiles = std::map<std::string, std::set<std::string>>;

WeightFiles ReadIndex(const std::string& folder, const std::string& path) {
  const std::vector<uint8_t> text = ReadWholeFile(path);
  const auto index = JsonOf(AsText(text));
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object() ||
      index["weight_map"].empty()) {
    throw Error(ErrorCode::kBadInput, path, "has no weight_map", "", kFetchHint);
  }
  WeightFiles files;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
      throw Error(ErrorCode::kBadInput, path, "names " + file.dump() + ", which is no file of this folder",
                  "tensor " + tensor, "the index must name files beside it");
    }
    files[name].insert(tensor);
  }
  for (const auto& [name, tensors] : files) {
    if (!std::filesystem::is_regular_file(folder + "/" + name)) {
      throw Error(ErrorCode::kBadInput, folder + "/" + name,
                  std::string("is missing, though ") + kWeightsIndexFileName + " names it",
                  "tensor " + *tensors.begin(), kFetchHint);
    }
  }
  return files;
}

WeightFiles FindWeightFiles(const std::string& folder) {
  if (std::filesystem::exists(folder + "/" + kWeightsFileName)) return {{kWeightsFileName, {}}};
  const std::string index = folder + "/" + kWeightsIndexFileName;
  if (std::filesystem::exists(index)) return ReadIndex(folder, index);
  throw Error(ErrorCode::kBadInput, folder,
              "holds neither model.safetensors nor model.safetensors.index.json", "",
              "weights of other formats (pytorch_model.bin, GGUF) become safetensors by transformers' "
              "save_pretrained");
}

/// Reads a file of weights; what is wrong with it has a hint, the usual one if no other.
void ReadWithHint(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    if (!error.hint().empty() || error.code() != ErrorCode::kBadInput) throw;
    throw Error(error.code(), error.object(), error.problem(), error.place(), kFetchHint);
  }
}

/// Tensors that older tools stored though the model computes them: rotary frequencies, causal masks.
bool Redundant(const std::string& name) {
  constexpr std::string_view kEndings[] = {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                           ".attention.bias", ".attention.masked_bias"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Numbers of decays: where one is not finite a memory is dead, and nothing else in the pass shows it.
bool IsOfDecay(const std::string& name) {
  return name.ends_with(".log_decay") || name.ends_with(".frequency");
}

/// A tensor's name without what PyTorch's wrappers put into it: torch.compile, of a model or of its layers,
/// and data parallel modules.
std::string WithoutWrappers(std::string name) {
  constexpr std::string_view kCompiled = "_orig_mod.", kParallel = "module.";
  while (name.starts_with(kParallel) || name.starts_with(kCompiled)) name.erase(0, name.find('.') + 1);
  for (size_t at = name.find(kCompiled); at != std::string::npos; at = name.find(kCompiled, at)) {
    name.erase(at, kCompiled.size());
  }
  return name;
}

std::vector<int64_t> ShapeInFiles(const Parameter& parameter) {
  if (parameter.file_order != FileOrder::kTransposed) return parameter.shape;
  return {parameter.shape[1], parameter.shape[0]};
}

/// The other order of a fused projection's rows.
/// \param outer, inner how they are nested in `tensor`
at::Tensor SwapRows(const at::Tensor& tensor, int64_t outer, int64_t inner) {
  std::vector<int64_t> sizes = {outer, inner, tensor.size(0) / (outer * inner)};
  if (tensor.dim() == 2) sizes.push_back(tensor.size(1));
  return tensor.view(sizes).transpose(0, 1).reshape(tensor.sizes());
}

}  // namespace

at::Tensor ViewTensor(const SafetensorsEntry& entry, const uint8_t* data, const std::string& path,
                      const std::vector<int64_t>& shape) {
  at::ScalarType type;
  if (entry.dtype == "F32") {
    type = at::kFloat;
  } else if (entry.dtype == "BF16") {
    type = at::kBFloat16;
  } else if (entry.dtype == "F16") {
    type = at::kHalf;
  } else {
    throw Error(ErrorCode::kBadInput, path, "has type " + entry.dtype + ", not F32, BF16 or F16",
                "tensor " + entry.name,
                "convert the model to one of these types with transformers' save_pretrained");
  }
  if (entry.shape != shape) {
    throw Error(ErrorCode::kBadInput, path,
                "has shape " + ShapeName(entry.shape) + ", the config asks for " + ShapeName(shape),
                "tensor " + entry.name, kOtherModelHint);
  }
  // Only read: from_blob takes no pointer to const.
  return at::from_blob(const_cast<uint8_t*>(data), entry.shape, type);
}

namespace {

/// fp32 bytes of a tensor of another type, device or order.
std::vector<uint8_t> Fp32Bytes(const at::Tensor& tensor) {
  std::vector<uint8_t> bytes(tensor.numel() * sizeof(float));
  at::from_blob(bytes.data(), tensor.sizes(), at::kFloat).copy_(tensor);
  return bytes;
}

/// A master of which this rank has a part at most.
at::Tensor ReadMaster(const Parameter& parameter, const WeightsOutput& output) {
  at::Tensor value = at::empty({parameter.size}, at::kFloat);
  output.read_masters(parameter.offset, value);
  return value.view(parameter.shape);
}

/// Whether it is among a model's weights: adapters and the projection of embeddings have files of their own.
bool IsOfModelFiles(const Parameter& parameter) {
  return !IsAdapterParameter(parameter) && !IsProjectionParameter(parameter);
}

/// Loads one folder into one model.
class WeightsLoader {
 public:
  explicit WeightsLoader(FlatParameters* parameters) : parameters_(*parameters) {
    const std::string& first = parameters_.all()[0].name;
    prefix_ = first.substr(0, first.find('.') + 1);
    const auto add = [&](const std::string& name, const Target& target) {
      targets_[name] = target;
      // Of a model's body saved alone; the head, which has no prefix, is no part of it.
      if (name.starts_with(prefix_)) targets_[name.substr(prefix_.size())] = target;
    };
    for (size_t i = 0; i < parameters_.all().size(); ++i)
      add(parameters_.all()[i].name, {Kind::kParameter, i});
    for (size_t i = 0; i < parameters_.zeros().size(); ++i)
      add(parameters_.zeros()[i].name, {Kind::kZeros, i});
    if (parameters_.Find("embed_out.weight") !=
        nullptr) {  // transformers 5.x takes either name of NeoX's head
      targets_["lm_head.weight"] = targets_.at("embed_out.weight");
    }
    for (const TensorAlias& alias : parameters_.aliases()) add(alias.name, {Kind::kAlias, alias.parameter});
    loaded_.resize(parameters_.all().size());
  }

  void Load(const std::string& folder) {
    for (const auto& file : FindWeightFiles(folder)) {
      ReadWithHint([&] { LoadFile(folder + "/" + file.first, file.second); });
    }
    std::erase_if(copies_, [this](const Copy& copy) {
      const bool is_only = loaded_[copy.parameter].empty();
      if (is_only) AssignCopy(copy);
      return is_only;
    });
    RequireAll(folder);
    for (const Copy& copy : copies_) CheckCopy(copy);
    parameters_.RefreshCompute();
  }

 private:
  enum class Kind { kParameter, kZeros, kAlias };
  struct Target {
    Kind kind = Kind::kParameter;
    size_t index = 0;
  };
  /// A stored copy of a parameter.
  struct Copy {
    std::string path, tensor;
    size_t parameter;
  };

  /// Refuses a parameter that has no tensor, but for a head that nothing reads.
  void RequireAll(const std::string& folder) {
    const Parameter* head = nullptr;
    for (size_t i = 0; i < loaded_.size(); ++i) {
      Parameter& parameter = parameters_[i];
      if (!loaded_[i].empty() || !IsOfModelFiles(parameter)) continue;
      parameter.absent = parameter.may_lack;
      if (parameter.absent) continue;
      if (parameter.name.starts_with(prefix_)) {
        throw Error(ErrorCode::kBadInput, folder, "the weights lack a tensor that config.json asks for",
                    "tensor " + parameter.name, kOtherModelHint);
      }
      head = &parameter;
    }
    if (head == nullptr) return;
    throw Error(ErrorCode::kBadInput, folder, "is a body without a head: its weights make vectors, no logits",
                "tensor " + head->name, kHeadHint);
  }

  void LoadFile(const std::string& path, std::set<std::string> listed) {
    const WeightFile mapped(path);
    const SafetensorsHeader header = ParseSafetensors(mapped.bytes(), mapped.path());
    for (const SafetensorsEntry& entry : header.entries) {
      listed.erase(entry.name);
      const ByteSpan data = mapped.bytes().subspan(header.data_offset + entry.begin, entry.end - entry.begin);
      LoadTensor(path, entry, data.data());
      mapped.Release(data);
    }
    if (!listed.empty()) {
      throw Error(ErrorCode::kBadInput, path,
                  std::string("lacks a tensor that ") + kWeightsIndexFileName + " says it has",
                  "tensor " + *listed.begin(), kFetchHint);
    }
  }

  void LoadTensor(const std::string& path, const SafetensorsEntry& entry, const uint8_t* data) {
    if (Redundant(entry.name)) return;
    const std::string place = "tensor " + entry.name;
    const auto found = targets_.find(WithoutWrappers(entry.name));
    if (found == targets_.end()) {
      throw Error(ErrorCode::kBadInput, path, "is not part of the model that config.json describes", place,
                  kOtherModelHint);
    }
    const size_t index = found->second.index;
    if (found->second.kind == Kind::kZeros) {
      if (ViewTensor(entry, data, path, parameters_.zeros()[index].shape).any().item<bool>()) {
        throw Error(ErrorCode::kBadInput, path, "is not zero, though config.json has \"bias\": false", place,
                    kOtherModelHint);
      }
      return;
    }
    const Parameter& parameter = parameters_.all()[index];
    const at::Tensor stored = ViewTensor(entry, data, path, ShapeInFiles(parameter));
    if (found->second.kind == Kind::kAlias) {
      copies_.push_back({path, entry.name, index});
      return;
    }
    if (!loaded_[index].empty()) {
      throw Error(ErrorCode::kBadInput, path, "holds a tensor that is in " + loaded_[index] + " too", place,
                  "delete the files that are not the model's");
    }
    if (IsOfDecay(parameter.name) && !stored.isfinite().all().item<bool>()) {
      throw Error(ErrorCode::kBadInput, path, "holds decays that are not finite", place,
                  "the weights are damaged: fetch the model again, or take an earlier checkpoint");
    }
    parameters_.Assign(index, AsInModel(parameter, stored));
    loaded_[index] = path;
  }

  /// Calls visit(parameter, stored) with what the file has of a copy.
  template <typename Visit>
  void VisitStored(const Copy& copy, const Visit& visit) const {
    const WeightFile mapped(copy.path);
    const SafetensorsHeader header = ParseSafetensors(mapped.bytes(), mapped.path());
    const SafetensorsEntry& entry = *header.Find(copy.tensor);
    const Parameter& parameter = parameters_.all()[copy.parameter];
    const uint8_t* data = mapped.bytes().data() + header.data_offset + entry.begin;
    visit(parameter, ViewTensor(entry, data, copy.path, ShapeInFiles(parameter)));
  }

  /// A shared tensor may be stored under its second name alone.
  void AssignCopy(const Copy& copy) {
    VisitStored(copy, [&](const Parameter& parameter, const at::Tensor& stored) {
      parameters_.Assign(copy.parameter, AsInModel(parameter, stored));
    });
    loaded_[copy.parameter] = copy.path;
  }

  /// Compares in slices: a table of embeddings may be the largest tensor of all.
  void CheckCopy(const Copy& copy) const {
    constexpr int64_t kRows = 1024;
    VisitStored(copy, [&](const Parameter& parameter, const at::Tensor& stored) {
      for (int64_t row = 0; row < stored.size(0); row += kRows) {
        const int64_t rows = std::min(kRows, stored.size(0) - row);
        const at::Tensor ours = parameter.value.narrow(0, row, rows).cpu();
        if (at::equal(parameters_.AsAssigned(parameter, stored.narrow(0, row, rows)), ours)) continue;
        throw Error(ErrorCode::kBadInput, copy.path,
                    "differs from the embeddings, though config.json has \"tie_word_embeddings\": true",
                    "tensor " + copy.tensor,
                    "set tie_word_embeddings to false if the head is one of its own");
      }
    });
  }

  FlatParameters& parameters_;
  std::string prefix_;  // of all names but that of the head
  std::map<std::string, Target> targets_;
  std::vector<std::string> loaded_;  // the file of each parameter
  std::vector<Copy> copies_;
};

}  // namespace

at::Tensor AsInModel(const Parameter& parameter, const at::Tensor& stored) {
  if (parameter.file_order == FileOrder::kTransposed) return stored.t();
  if (parameter.file_order == FileOrder::kHeadsOutside) return SwapRows(stored, parameter.num_heads, 3);
  return stored;
}

at::Tensor AsInFiles(const Parameter& parameter, const at::Tensor& tensor) {
  if (parameter.file_order == FileOrder::kTransposed) return tensor.t();
  if (parameter.file_order == FileOrder::kHeadsOutside) return SwapRows(tensor, 3, parameter.num_heads);
  return tensor;
}

void SaveWeights(const FlatParameters& parameters, OverwritableSink* sink, const WeightsOutput& output) {
  TRAINWRIGHT_CHECK(!output.values.defined() || output.values.numel() == parameters.elements());
  std::vector<SafetensorsTensor> tensors;
  for (const Parameter& parameter : parameters.all()) {
    if (!IsOfModelFiles(parameter) || parameter.absent) continue;
    TRAINWRIGHT_CHECK(!parameter.quantized());
    at::Tensor value = output.reads_all && parameter.trainable ? at::Tensor() : parameter.value;
    if (output.values.defined() && parameter.trainable) {
      value = output.values.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
    }
    if (!value.defined()) {
      TRAINWRIGHT_CHECK(output.read_masters != nullptr);
      tensors.push_back({parameter.name, "F32", ShapeInFiles(parameter), {}, [&parameter, &output] {
                           return Fp32Bytes(AsInFiles(parameter, ReadMaster(parameter, output)));
                         }});
      continue;
    }
    if (parameter.file_order != FileOrder::kSame || !value.is_cpu() || value.scalar_type() != at::kFloat) {
      tensors.push_back({parameter.name, "F32", ShapeInFiles(parameter), {}, [&parameter, value] {
                           return Fp32Bytes(AsInFiles(parameter, value));
                         }});
      continue;
    }
    const auto* data = static_cast<const uint8_t*>(value.const_data_ptr());
    tensors.push_back(
        {parameter.name, "F32", parameter.shape, {data, static_cast<size_t>(parameter.size) * 4}});
  }
  for (const ZeroTensor& zeros : parameters.zeros()) {
    int64_t size = sizeof(float);
    for (const int64_t extent : zeros.shape) size *= extent;
    tensors.push_back({zeros.name, "F32", zeros.shape, {}, [size] { return std::vector<uint8_t>(size); }});
  }
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  if (output.compress) {
    WriteCompressedSafetensors(sink, tensors, {{"format", "pt"}}, CodecLevel::kDefault, output.threads,
                               std::string("train ") + TRAINWRIGHT_VERSION);
  } else {
    WriteSafetensors(sink, tensors, {{"format", "pt"}});
  }
}

std::vector<std::string> WeightFileNames(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& [name, tensors] : FindWeightFiles(folder)) names.push_back(name);
  if (names != std::vector<std::string>{kWeightsFileName}) names.emplace_back(kWeightsIndexFileName);
  return names;
}

void RequireWholeWeightFiles(const std::string& folder) {
  for (const auto& file : FindWeightFiles(folder)) {
    ReadWithHint([&] {
      const MappedFile mapped(folder + "/" + file.first);
      if (!IsStream(mapped.bytes())) ParseSafetensors(mapped.bytes(), mapped.path());
    });
  }
}

void LoadWeights(const std::string& folder, FlatParameters* parameters) {
  WeightsLoader(parameters).Load(folder);
}

}  // namespace trainwright

#include "lib/model/weights_io.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/version.h"
#include "lib/codec/checkpoint_encoder.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_source.h"
#include "lib/model/weight_file.h"
#include "lib/nn/lora.h"

namespace trainwright {
namespace {

constexpr char kWeights[] = "model.safetensors", kIndex[] = "model.safetensors.index.json";

std::string ShapeName(const std::vector<int64_t>& shape) {
  std::string name = "[";
  for (const int64_t extent : shape) name += (name.size() > 1 ? ", " : "") + std::to_string(extent);
  return name + "]";
}

/// The files that hold a folder's weights, sorted.
std::set<std::string> WeightFiles(const std::string& folder) {
  if (std::filesystem::exists(folder + "/" + kWeights)) return {kWeights};
  const std::string path = folder + "/" + kIndex;
  if (!std::filesystem::exists(path)) {
    throw Error(ErrorCode::kBadInput, folder,
                "holds neither model.safetensors nor model.safetensors.index.json");
  }
  const std::vector<uint8_t> text = ReadWholeFile(path);
  const auto index = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw Error(ErrorCode::kBadInput, path, "has no weight_map");
  }
  std::set<std::string> files;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const bool plain = file.is_string() && file.get<std::string>().find('/') == std::string::npos;
    if (!plain) throw Error(ErrorCode::kBadInput, path, "names no file of this folder", "tensor " + tensor);
    files.insert(file.get<std::string>());
  }
  return files;
}

/// Tensors that older tools stored though the model computes them: a copy of the tied head, rotary
/// frequencies, GPT-2's causal masks.
bool Redundant(const std::string& name, bool tied) {
  return (tied && name == "lm_head.weight") || name.ends_with(".rotary_emb.inv_freq") ||
         name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

/// Whether a file's tensor is the model's of that name. Files of GPT-2's body alone, as published, lack a
/// prefix.
bool NamesTensor(const std::string& in_file, const std::string& name) {
  return in_file == name || "transformer." + in_file == name;
}

std::vector<int64_t> ShapeInFiles(const Parameter& parameter) {
  if (!parameter.transposed_in_files) return parameter.shape;
  return {parameter.shape[1], parameter.shape[0]};
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
                "tensor " + entry.name);
  }
  if (entry.shape != shape) {
    throw Error(ErrorCode::kBadInput, path,
                "has shape " + ShapeName(entry.shape) + ", the config asks for " + ShapeName(shape),
                "tensor " + entry.name);
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

}  // namespace

void SaveWeights(const FlatParameters& parameters, OverwritableSink* sink, const WeightsOutput& output) {
  TRAINWRIGHT_CHECK(!output.values.defined() || output.values.numel() == parameters.values().numel());
  std::vector<SafetensorsTensor> tensors;
  for (const Parameter& parameter : parameters.all()) {
    if (IsAdapterParameter(parameter)) continue;
    TRAINWRIGHT_CHECK(!parameter.quantized);
    at::Tensor value = parameter.value;
    if (output.values.defined() && parameter.trainable) {
      value = output.values.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
    }
    if (parameter.transposed_in_files || !value.is_cpu() || value.scalar_type() != at::kFloat) {
      const bool turned = parameter.transposed_in_files;
      tensors.push_back({parameter.name, "F32", ShapeInFiles(parameter), {}, [value, turned] {
                           return Fp32Bytes(turned ? value.t() : value);
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

void LoadWeights(const std::string& folder, FlatParameters* parameters) {
  const bool tied = parameters->Find("lm_head.weight") == nullptr;
  std::set<std::string> loaded;
  for (const std::string& file : WeightFiles(folder)) {
    const WeightFile mapped(folder + "/" + file);
    const SafetensorsHeader header = ParseSafetensors(mapped.bytes(), mapped.path());
    for (const SafetensorsEntry& entry : header.entries) {
      if (Redundant(entry.name, tied)) continue;
      const uint8_t* data = mapped.bytes().data() + header.data_offset + entry.begin;
      const auto named = [&](const auto& tensor) { return NamesTensor(entry.name, tensor.name); };
      const auto found = std::find_if(parameters->all().begin(), parameters->all().end(), named);
      if (found != parameters->all().end()) {
        const at::Tensor stored = ViewTensor(entry, data, mapped.path(), ShapeInFiles(*found));
        parameters->Assign(static_cast<size_t>(found - parameters->all().begin()),
                           found->transposed_in_files ? stored.t() : stored);
        loaded.insert(found->name);
        continue;
      }
      const auto zeros = std::find_if(parameters->zeros().begin(), parameters->zeros().end(), named);
      if (zeros == parameters->zeros().end()) {
        throw Error(ErrorCode::kBadInput, mapped.path(),
                    "is not part of the model that config.json describes", "tensor " + entry.name);
      }
      if (ViewTensor(entry, data, mapped.path(), zeros->shape).any().item<bool>()) {
        throw Error(ErrorCode::kBadInput, mapped.path(),
                    "is not zero, though config.json has \"bias\": false", "tensor " + entry.name);
      }
    }
  }
  for (const Parameter& parameter : parameters->all()) {
    if (IsAdapterParameter(parameter)) continue;
    if (!loaded.contains(parameter.name)) {
      throw Error(ErrorCode::kBadInput, folder, "the weights lack a tensor", "tensor " + parameter.name);
    }
  }
  parameters->RefreshCompute();
}

}  // namespace trainwright

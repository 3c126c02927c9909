#include "lib/model/embedding_projection.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/spec/model_files.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kParameterPrefix[] = "embedding_projection.";
constexpr char kWeightTensor[] = "linear.weight", kBiasTensor[] = "linear.bias";

std::string WeightsPathIn(const std::string& folder) {
  return folder + "/" + kProjectionFolder + "/" + kWeightsFileName;
}

/// The tensor of a parameter, as files name it.
std::string TensorOf(const Parameter& parameter) {
  return parameter.shape.size() == 2 ? kWeightTensor : kBiasTensor;
}

const SafetensorsEntry& EntryOf(const SafetensorsHeader& header, const std::string& tensor,
                                const std::string& path) {
  const SafetensorsEntry* entry = header.Find(tensor);
  if (entry == nullptr) throw Error(ErrorCode::kBadInput, path, "lacks a tensor", "tensor " + tensor);
  return *entry;
}

/// fp32 on the host, in one piece.
at::Tensor ValueOf(const Parameter& parameter, const WeightsOutput& output) {
  at::Tensor value = output.reads_all && parameter.trainable ? at::Tensor() : parameter.value;
  if (output.values.defined() && parameter.trainable) {
    value = output.values.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
  } else if (!value.defined()) {
    TRAINWRIGHT_CHECK(output.read_masters != nullptr);
    value = at::empty({parameter.size}, at::kFloat);
    output.read_masters(parameter.offset, value);
    value = value.view(parameter.shape);
  }
  return value.to(at::kCPU, at::kFloat).contiguous();
}

/// Whether the module's config.json says that it has no bias.
bool SaysNoBias(const std::string& folder) {
  const std::string path = folder + "/" + kProjectionFolder + "/" + kConfigFileName;
  if (!fs::exists(path)) return false;
  constexpr uint64_t kMostConfigBytes = 1 << 20;
  const std::vector<uint8_t> text = ReadWholeFile(path, kMostConfigBytes);
  const auto config = JsonOf(AsText(text));
  return config.is_object() && config.value("bias", nlohmann::json()) == nlohmann::json(false);
}

/// As sentence-transformers describes a Dense module.
std::string DenseConfig(int64_t in, int64_t out) {
  const nlohmann::ordered_json config = {{"in_features", in},
                                         {"out_features", out},
                                         {"bias", true},
                                         {"activation_function", "torch.nn.modules.linear.Identity"}};
  return config.dump(2) + "\n";
}

}  // namespace

size_t AddProjection(int64_t size, int64_t hidden_size, FlatParameters* parameters) {
  TRAINWRIGHT_CHECK(size > 0);
  const std::string prefix = kParameterPrefix;
  const size_t matrix = parameters->Add(prefix + "weight", {size, hidden_size}, true);
  parameters->Add(prefix + "bias", {size}, false);
  return matrix;
}

bool IsProjectionParameter(const Parameter& parameter) {
  return parameter.name.starts_with(kParameterPrefix);
}

void WriteProjection(const std::string& folder, const FlatParameters& parameters,
                     const WeightsOutput& output) {
  std::vector<at::Tensor> kept;  // while the file is written
  std::vector<SafetensorsTensor> tensors;
  for (const Parameter& parameter : parameters.all()) {
    if (!IsProjectionParameter(parameter)) continue;
    kept.push_back(ValueOf(parameter, output));
    const auto* data = static_cast<const uint8_t*>(kept.back().const_data_ptr());
    tensors.push_back({TensorOf(parameter),
                       "F32",
                       parameter.shape,
                       {data, static_cast<size_t>(parameter.size) * sizeof(float)}});
  }
  if (tensors.empty()) return;
  const std::string own_folder = folder + "/" + kProjectionFolder;
  std::error_code error;
  fs::create_directories(own_folder, error);
  if (error) throw SystemError(own_folder, "create the folder", error.value());
  const std::vector<int64_t> shape = tensors[0].shape;  // the matrix was added first
  AtomicFileSink sink(WeightsPathIn(folder));
  WriteSafetensors(&sink, tensors, {{"format", "pt"}});
  sink.Commit();
  WriteFileAtomically(own_folder + "/" + kConfigFileName, AsBytes(DenseConfig(shape[1], shape[0])));
}

std::optional<int64_t> ProjectionOf(const std::string& folder) {
  const std::string path = WeightsPathIn(folder);
  if (!fs::exists(path)) return std::nullopt;
  const MappedFile mapped(path);
  const SafetensorsHeader header = ParseSafetensors(mapped.bytes(), path);
  const SafetensorsEntry& entry = EntryOf(header, kWeightTensor, path);
  if (entry.shape.size() != 2 || entry.shape[0] < 1) {
    throw Error(ErrorCode::kBadInput, path, "is no matrix", "tensor " + entry.name);
  }
  return entry.shape[0];
}

EmbeddingTuning EmbeddingTuningOf(const std::string& folder, bool needs_head) {
  return {.projection = ProjectionOf(folder).value_or(0), .needs_head = needs_head};
}

void LoadProjection(const std::string& folder, FlatParameters* parameters) {
  const std::string path = WeightsPathIn(folder);
  std::optional<MappedFile> mapped;
  SafetensorsHeader header;
  for (size_t i = 0; i < parameters->all().size(); ++i) {
    const Parameter& parameter = parameters->all()[i];
    if (!IsProjectionParameter(parameter)) continue;
    if (!mapped) {
      mapped.emplace(path);
      header = ParseSafetensors(mapped->bytes(), path);
    }
    const std::string tensor = TensorOf(parameter);
    if (tensor == kBiasTensor && header.Find(tensor) == nullptr && SaysNoBias(folder)) {
      parameters->Assign(i, at::zeros(parameter.shape, at::kFloat));
      continue;
    }
    const SafetensorsEntry& entry = EntryOf(header, tensor, path);
    const uint8_t* data = mapped->bytes().data() + header.data_offset + entry.begin;
    parameters->Assign(i, ViewTensor(entry, data, path, parameter.shape));
  }
  if (mapped) parameters->RefreshCompute();
}

}  // namespace trainwright

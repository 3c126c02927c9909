#include "lib/train/train_state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/version.h"
#include "lib/codec/checkpoint_encoder.h"
#include "lib/codec/compressed_checkpoint.h"
#include "lib/formats/json_fields.h"
#include "lib/formats/json_text.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/run/plan_codec.h"
#include "lib/train/outlier_records.h"

namespace trainwright {
namespace {

constexpr char kStateSchema[] = "trainwright.state/2", kFirstStateSchema[] = "trainwright.state/1";

ByteSpan BytesOf(const at::Tensor& tensor) {
  return {static_cast<const uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()};
}

/// The types that an optimizer's states may have, by the names of files.
constexpr std::pair<const char*, at::ScalarType> kStateTypes[] = {
    {"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"F16", at::kHalf},  {"F64", at::kDouble},
    {"I64", at::kLong},  {"I32", at::kInt},       {"I16", at::kShort}, {"I8", at::kChar},
    {"U8", at::kByte},   {"BOOL", at::kBool}};

const char* NameOfType(at::ScalarType type) {
  for (const auto& [name, known] : kStateTypes) {
    if (known == type) return name;
  }
  throw Error(ErrorCode::kInternal, "optimizer", std::string("has a state of type ") + c10::toString(type));
}

/// Every tensor of a file: which of them an optimizer has is its own to say.
/// \param keeper of `file`'s memory, which the tensors then share; null: they have their own
std::vector<OptimizerState> ReadStates(const SafetensorsHeader& header, ByteSpan file,
                                       const std::shared_ptr<const void>& keeper, const std::string& path) {
  std::vector<OptimizerState> states;
  for (const SafetensorsEntry& entry : header.entries) {
    const auto type = std::find_if(std::begin(kStateTypes), std::end(kStateTypes),
                                   [&](const auto& known) { return entry.dtype == known.first; });
    if (type == std::end(kStateTypes)) {
      throw Error(ErrorCode::kBadInput, path,
                  "its tensor '" + entry.name + "' has the type " + entry.dtype + ", which no state has");
    }
    const uint8_t* const data = file.data() + header.data_offset + entry.begin;
    const bool aligned = reinterpret_cast<uintptr_t>(data) % c10::elementSize(type->second) == 0;
    if (keeper != nullptr && entry.end > entry.begin && aligned) {
      // Only read: from_blob takes no pointer to const.
      states.push_back({entry.name, at::from_blob(
                                        const_cast<uint8_t*>(data), entry.shape, [keeper](void*) {},
                                        at::TensorOptions().dtype(type->second))});
      continue;
    }
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(type->second));
    if (entry.end > entry.begin) std::memcpy(tensor.mutable_data_ptr(), data, entry.end - entry.begin);
    states.push_back({entry.name, tensor});
  }
  return states;
}

/// A state by_element that is spread over the ranks, in parts of so many elements.
SafetensorsTensor StreamOf(const TrainState& state, size_t index) {
  static constexpr int64_t kPartElements = int64_t{1} << 22;
  const OptimizerState& own = state.trainer.optimizer[index];
  SafetensorsTensor tensor = {.name = own.name,
                              .dtype = NameOfType(own.value.scalar_type()),
                              .shape = {state.sharded.elements},
                              .data = {}};
  tensor.stream = [&state, index,
                   type = own.value.scalar_type()](const std::function<void(ByteSpan)>& write) {
    const int64_t all = state.sharded.elements;
    const at::Tensor part = at::empty({std::min(all, kPartElements)}, at::TensorOptions().dtype(type));
    for (int64_t begin = 0; begin < all; begin += kPartElements) {
      const at::Tensor read = part.narrow(0, 0, std::min(kPartElements, all - begin));
      state.sharded.read(index, begin, read);
      write(BytesOf(read));
    }
  };
  return tensor;
}

/// Refuses counts that no run can have.
/// \throws Error{kBadInput}
void CheckCounts(const TrainState& state, const std::string& path) {
  const TrainerState& trainer = state.trainer;
  const auto require = [&](bool holds, const std::string& problem) {
    if (!holds) throw Error(ErrorCode::kBadInput, path, "its training state contradicts itself: " + problem);
  };
  require(trainer.step >= 0 && trainer.step <= state.plan.schedule.total_steps,
          "step " + std::to_string(trainer.step) + " of " + std::to_string(state.plan.schedule.total_steps));
  require(trainer.updates >= 0 && trainer.updates <= trainer.step,
          std::to_string(trainer.updates) + " updates in " + std::to_string(trainer.step) + " steps");
  require(trainer.scaler.skipped_steps >= 0 && trainer.scaler.skipped_steps <= trainer.step - trainer.updates,
          std::to_string(trainer.scaler.skipped_steps) + " skipped steps beside " +
              std::to_string(trainer.updates) + " updates in " + std::to_string(trainer.step) + " steps");
  require(std::isfinite(trainer.scaler.scale) && trainer.scaler.scale >= 1 && trainer.scaler.good_steps >= 0,
          "loss scale " + std::to_string(trainer.scaler.scale));
  require(
      trainer.labels_seen >= 0 && trainer.labels_seen <= trainer.tokens_seen,
      std::to_string(trainer.labels_seen) + " labels of " + std::to_string(trainer.tokens_seen) + " tokens");
}

/// Adds what 0.1.0 did not write: it saved between steps only, and had none of the later levers.
void CompleteFirstState(nlohmann::json* json) {
  CompleteFirstPlan(&json->at("plan"));
  json->emplace("accumulation_phase", 0);
  json->emplace("watchdog", nullptr);
  json->at("compute").emplace("attention", "auto");
}

/// \param keeper as of ReadStates
TrainState Decode(ByteSpan file, const std::shared_ptr<const void>& keeper, const std::string& path) {
  const SafetensorsHeader header = ParseSafetensors(file, path);
  TrainState state;
  const auto text = header.metadata.find("state");
  const auto layout = header.metadata.find("layout");
  if (text == header.metadata.end() || layout == header.metadata.end()) {
    throw Error(ErrorCode::kBadInput, path, "holds no training state");
  }
  state.layout = layout->second;
  RefuseDeepJson(text->second, path);
  try {
    nlohmann::json json = nlohmann::json::parse(text->second);
    if (json.at("schema") == kFirstStateSchema) {
      CompleteFirstState(&json);
    } else if (json.at("schema") != kStateSchema) {
      throw Error(ErrorCode::kBadInput, path, "has the unknown schema " + json.at("schema").dump(),
                  "this version reads " + std::string(kStateSchema) + " and " + kFirstStateSchema,
                  "resume with the version that wrote it (see version in its metadata.json)");
    }
    if (json.at("accumulation_phase") != 0) {
      throw Error(ErrorCode::kBadInput, path,
                  "was saved within a step, after " + json.at("accumulation_phase").dump() +
                      " micro-batches; this version continues between steps only");
    }
    state.plan = DecodePlan(json.at("plan"), path);
    TrainerState& trainer = state.trainer;
    ReadField(json, "step", path, &trainer.step);
    ReadField(json, "updates", path, &trainer.updates);
    ReadField(json, "tokens_seen", path, &trainer.tokens_seen);
    ReadField(json, "labels_seen", path, &trainer.labels_seen);
    const nlohmann::json &loss_scaler = json.at("loss_scaler"), &compute = json.at("compute");
    trainer.loaders = DecodeLoaderStates(json, path);
    ReadField(loss_scaler, "scale", path, &trainer.scaler.scale);
    ReadField(loss_scaler, "good_steps", path, &trainer.scaler.good_steps);
    ReadField(loss_scaler, "skipped_steps", path, &trainer.scaler.skipped_steps);
    if (json.contains("outliers")) trainer.outliers = DecodeOutlierState(json.at("outliers"), path);
    ReadField(json, "data_sha256", path, &state.data_sha256);
    state.watchdog = json.at("watchdog");
    if (!state.watchdog.is_null() && !state.watchdog.is_object()) {
      throw Error(ErrorCode::kBadInput, path, "its watchdog is no object");
    }
    ReadField(compute, "device", path, &state.compute.device);
    ReadField(compute, "cpu_capability", path, &state.compute.cpu_capability);
    ReadField(compute, "torch_build", path, &state.compute.torch_build);
    ReadField(compute, "threads", path, &state.compute.threads);
    ReadField(compute, "attention", path, &state.compute.attention);
    if (compute.contains("scan")) ReadField(compute, "scan", path, &state.compute.scan);
    if (compute.contains("tf32")) ReadField(compute, "tf32", path, &state.compute.tf32);
    if (compute.contains("fills_up")) ReadField(compute, "fills_up", path, &state.compute.fills_up);
    if (compute.contains("residual_stream")) {
      ReadField(compute, "residual_stream", path, &state.compute.residual_stream);
    }
    if (compute.contains("choices")) state.compute.choices = DecodeDeviceChoices(compute.at("choices"));
    if (compute.contains("products")) {  // a state of before they were among the choices
      state.compute.choices.products = DecodeProductChoices(compute.at("products").get<std::string>(), path);
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, path,
                std::string("its training state cannot be read: ") + error.what());
  }
  state.trainer.optimizer = ReadStates(header, file, keeper, path);
  state.trainer.origin = path;
  CheckCounts(state, path);
  return state;
}

}  // namespace

void WriteTrainState(const std::string& path, const TrainState& state, const StateCompression& compression) {
  const TrainerState& trainer = state.trainer;
  nlohmann::ordered_json json = {
      {"schema", kStateSchema},
      {"plan", EncodePlan(state.plan)},
      {"step", trainer.step},
      {"updates", trainer.updates},
      {"tokens_seen", trainer.tokens_seen},
      {"labels_seen", trainer.labels_seen},
      {"accumulation_phase", 0},
      {"cursor", nullptr},  // set below, like the order's fingerprint
      {"loss_scaler",
       {{"scale", trainer.scaler.scale},
        {"good_steps", trainer.scaler.good_steps},
        {"skipped_steps", trainer.scaler.skipped_steps}}},
      {"order_fingerprint", nullptr},
      {"data_sha256", state.data_sha256},
      {"watchdog", state.watchdog},
      {"compute",
       {{"device", state.compute.device},
        {"cpu_capability", state.compute.cpu_capability},
        {"torch_build", state.compute.torch_build},
        {"threads", state.compute.threads},
        {"attention", state.compute.attention}}},
  };
  // As states were before there was a choice.
  if (trainer.outliers.limits.any()) json["outliers"] = EncodeOutlierState(trainer.outliers);
  if (state.compute.scan != ComputeIdentity().scan) json["compute"]["scan"] = state.compute.scan;
  if (state.compute.tf32) json["compute"]["tf32"] = true;
  if (state.compute.fills_up) json["compute"]["fills_up"] = true;
  if (state.compute.residual_stream != ComputeIdentity().residual_stream) {
    json["compute"]["residual_stream"] = state.compute.residual_stream;
  }
  if (state.compute.choices.any()) {
    DeviceChoices choices = state.compute.choices;
    choices.attention_times.clear();  // a clock's, which would differ between equal runs
    json["compute"]["choices"] = EncodeDeviceChoices(choices);
  }
  EncodeLoaderStates(trainer.loaders, &json);
  std::vector<at::Tensor> values;
  std::vector<SafetensorsTensor> tensors;
  for (size_t i = 0; i < trainer.optimizer.size(); ++i) {
    const OptimizerState& own = trainer.optimizer[i];
    if (own.by_element && state.sharded.read) {
      TRAINWRIGHT_CHECK(!compression.on);
      tensors.push_back(StreamOf(state, i));
      continue;
    }
    const at::Tensor& value = values.emplace_back(own.value.cpu().contiguous());
    tensors.push_back({.name = own.name,
                       .dtype = NameOfType(value.scalar_type()),
                       .shape = value.sizes().vec(),
                       .data = BytesOf(value)});
  }
  std::map<std::string, std::string> metadata = {
      {"format", "trainwright"}, {"state", json.dump()}, {"layout", state.layout}};
  AtomicFileSink sink(path);
  if (compression.on) {
    if (!state.matrices.empty()) metadata["matrices"] = state.matrices;
    WriteCompressedSafetensors(&sink, tensors, metadata, CodecLevel::kDefault, compression.threads,
                               std::string("train ") + TRAINWRIGHT_VERSION);
  } else {
    WriteSafetensors(&sink, tensors, metadata);
  }
  sink.Commit();
}

TrainState ReadTrainState(const std::string& path, StateTensors tensors) {
  if (!IsCompressedCheckpoint(*OpenRandomReader(path))) {
    const auto mapped = std::make_shared<const MappedFile>(path);
    return Decode(mapped->bytes(), tensors == StateTensors::kMapped ? mapped : nullptr, path);
  }
  BufferedReader reader(OpenSource(path));
  MemorySink plain;
  DecodeCheckpoint(&reader, &plain, {});
  return DecodeTrainState(plain.bytes(), path);
}

TrainState DecodeTrainState(ByteSpan file, const std::string& path) {
  return Decode(file, nullptr, path);
}

}  // namespace trainwright

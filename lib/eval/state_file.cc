#include "lib/eval/state_file.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/formats/safetensors.h"

namespace trainwright {
namespace {

constexpr char kStateFormat[] = "trainwright.state/1";
/// Of the bytes of all tensors; files of older versions lack it.
constexpr char kDataDigest[] = "sha256";
constexpr char kConfigSha256[] = "config_sha256";
/// More than any sequence has, and far from the end of int64.
constexpr int64_t kMostStateTokens = int64_t{1} << 48;
/// Beyond it not every whole number is a float.
constexpr float kMostSeen = 1 << 24;

[[noreturn]] void RefuseStateFile(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::kBadInput, path, problem, "",
              "make the state again with generate --state-out, by the same model and precision");
}

std::string LayerPrefix(size_t layer) {
  return "layers." + std::to_string(layer) + ".";
}
std::string WindowPrefix(size_t layer, size_t window) {
  return LayerPrefix(layer) + "windows." + std::to_string(window) + ".";
}

/// The tensors of a file, each taken once.
class StateReader {
 public:
  StateReader(ByteSpan file, const std::string& path)
      : file_(file), path_(path), header_(ParseSafetensors(file, path)) {}

  RecurrentState Read(const ContextIdentity& identity) {
    if (Said("format") != kStateFormat) RefuseStateFile(path_, "is no state of a recurrent model");
    if (Said("model_sha256") != identity.model_sha256) RefuseStateFile(path_, "is of another model");
    if (identity.HasOtherConfig(Said(kConfigSha256))) {
      RefuseStateFile(path_, "was made with another config.json, or another scale of the adapter");
    }
    if (Said("precision") != identity.precision) {
      RefuseStateFile(path_, "is of precision " + Said("precision") + ", not " + identity.precision);
    }
    CheckDigest();
    RecurrentState state;
    state.init = Said("init");
    state.tokens = Tokens();
    while (Has(LayerPrefix(state.layers.size()) + "scan")) ReadLayer(&state.layers);
    if (state.layers.empty()) RefuseStateFile(path_, "holds no layer");
    state.hidden_d = Take("hidden");
    if (taken_ != header_.entries.size()) RefuseStateFile(path_, "holds a tensor that no state has");
    return state;
  }

 private:
  std::string Said(const char* name) const {
    const auto value = header_.metadata.find(name);
    return value != header_.metadata.end() ? value->second : "";
  }

  void CheckDigest() const {
    if (!header_.metadata.contains(kDataDigest)) return;
    if (Said(kDataDigest) != HexEncode(Sha256Of(file_.subspan(header_.data_offset)))) {
      RefuseStateFile(path_, "is damaged: its numbers have another SHA-256 than they were written with");
    }
  }

  int64_t Tokens() const {
    const std::string said = Said("tokens");
    int64_t tokens = 0;
    const auto [end, status] = std::from_chars(said.data(), said.data() + said.size(), tokens);
    const bool whole = status == std::errc() && end == said.data() + said.size();
    if (!whole || tokens < 1 || tokens > kMostStateTokens) {
      RefuseStateFile(path_, "does not say how many tokens it is of");
    }
    return tokens;
  }

  bool Has(const std::string& name) const { return header_.Find(name) != nullptr; }

  at::Tensor Take(const std::string& name) {
    const SafetensorsEntry* entry = header_.Find(name);
    if (entry == nullptr) RefuseStateFile(path_, "lacks the tensor " + name);
    if (entry->dtype != "F32") RefuseStateFile(path_, "holds " + name + " as " + entry->dtype + ", not F32");
    const std::vector<int64_t>& shape = entry->shape;
    const bool small =
        std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size <= INT32_MAX; });
    if (shape.size() > 2 || !small) RefuseStateFile(path_, "holds " + name + " in a shape that no state has");
    ++taken_;
    at::Tensor tensor = at::empty(shape, at::kFloat);
    const ByteSpan data = file_.subspan(header_.data_offset + entry->begin, entry->end - entry->begin);
    auto* numbers = tensor.mutable_data_ptr<float>();
    if (!data.empty()) std::memcpy(numbers, data.data(), data.size());
    if (!std::all_of(numbers, numbers + tensor.numel(), [](float number) { return std::isfinite(number); })) {
      RefuseStateFile(path_, "holds " + name + " with numbers that are not finite");
    }
    return tensor;
  }

  /// Real parts, then imaginary parts.
  at::Tensor TakeScan(const std::string& name) {
    const at::Tensor tensor_2k = Take(name);
    if (tensor_2k.dim() != 2 || tensor_2k.size(0) != 2) {
      RefuseStateFile(path_, "holds " + name + " in another shape than that of complex numbers");
    }
    return tensor_2k.reshape({tensor_2k.numel()});
  }

  int64_t TakeCount(const std::string& name) {
    const at::Tensor tensor = Take(name);
    const float count = tensor.numel() == 1 ? *tensor.const_data_ptr<float>() : -1;
    if (!(count >= 0 && count <= kMostSeen) || count != static_cast<float>(static_cast<int64_t>(count))) {
      RefuseStateFile(path_, "holds " + name + ", which is no count");
    }
    return static_cast<int64_t>(count);
  }

  void ReadLayer(LayerStates* layers) {
    const size_t number = layers->size();
    LayerState layer;
    layer.scan_z = TakeScan(LayerPrefix(number) + "scan");
    if (const std::string conv = LayerPrefix(number) + "conv"; Has(conv)) layer.conv_3z = Take(conv);
    while (Has(WindowPrefix(number, layer.windows.size()) + "scan")) {
      const std::string prefix = WindowPrefix(number, layer.windows.size());
      WindowState window;
      window.scan_z = TakeScan(prefix + "scan");
      window.sum_d = Take(prefix + "sum");
      window.seen = TakeCount(prefix + "seen");
      layer.windows.push_back(std::move(window));
    }
    layers->push_back(std::move(layer));
  }

  ByteSpan file_;
  const std::string& path_;
  SafetensorsHeader header_;
  size_t taken_ = 0;
};

}  // namespace

void WriteState(ByteSink* sink, const ContextIdentity& identity, const RecurrentState& state) {
  TRAINWRIGHT_CHECK(state.tokens > 0 && state.hidden_d.defined());
  std::vector<SafetensorsTensor> tensors;
  ForEachTensor(state, [&](const std::string& name, const at::Tensor& tensor) {
    TRAINWRIGHT_CHECK(tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous());
    std::vector<int64_t> shape = tensor.sizes().vec();
    if (name.ends_with(".scan")) shape = {2, tensor.numel() / 2};
    const auto* data = reinterpret_cast<const uint8_t*>(tensor.const_data_ptr<float>());
    tensors.push_back({name, "F32", shape, {data, tensor.nbytes()}});
  });
  std::deque<float> counts;  // stay where they are
  for (size_t layer = 0; layer < state.layers.size(); ++layer) {
    const std::vector<WindowState>& windows = state.layers[layer].windows;
    for (size_t i = 0; i < windows.size(); ++i) {
      const float& count = counts.emplace_back(static_cast<float>(windows[i].seen));
      const auto* data = reinterpret_cast<const uint8_t*>(&count);
      tensors.push_back({WindowPrefix(layer, i) + "seen", "F32", {1}, {data, sizeof(count)}});
    }
  }
  Sha256 digest;
  for (const SafetensorsTensor& tensor : tensors) digest.Update(tensor.data);
  std::map<std::string, std::string> metadata = {{"format", kStateFormat},
                                                 {kDataDigest, HexEncode(digest.Digest())},
                                                 {"model_sha256", identity.model_sha256},
                                                 {"precision", identity.precision},
                                                 {"init", state.init},
                                                 {"tokens", std::to_string(state.tokens)}};
  if (!identity.config_sha256.empty()) metadata.emplace(kConfigSha256, identity.config_sha256);
  WriteSafetensors(sink, tensors, metadata);
}

RecurrentState DecodeState(ByteSpan file, const std::string& path, const ContextIdentity& identity) {
  return StateReader(file, path).Read(identity);
}

}  // namespace trainwright

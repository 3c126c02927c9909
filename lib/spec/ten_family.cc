#include "lib/spec/ten_family.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "lib/spec/shared_fields.h"

namespace trainwright {
namespace {

/// Its square is still a double.
constexpr double kLeastModulus = 1e-100;
constexpr int64_t kMostTaps = 64, kLongestWindow = 1 << 20, kLongestChunk = 1 << 20;

// Names of config.json.
constexpr char kEigenstates[] = "num_eigenstates", kHeads[] = "num_heads", kInit[] = "init",
               kMinModulus[] = "min_modulus", kMaxModulus[] = "max_modulus", kMaxAngle[] = "max_angle",
               kSelective[] = "selective", kTaps[] = "conv_kernel", kDepthDecay[] = "depth_decay",
               kLayerMemory[] = "layer_memory", kWindows[] = "windows", kScanChunk[] = "scan_chunk",
               kDynamicsRate[] = "dynamics_rate";

// Names of what can be chosen of a preset.
constexpr char kInitOption[] = "ten_init", kChunkOption[] = "ten_chunk", kSelectiveOption[] = "selective";

TenInit ReadTenInit(const ConfigFields& fields) {
  const nlohmann::json& value = fields.Field(kInit);
  if (value.is_null()) return TenInit::kLru;
  for (const TenInit init : {TenInit::kLru, TenInit::kCompat}) {
    if (value.is_string() && value.get<std::string>() == TenInitName(init)) return init;
  }
  fields.Refuse(kInit, value.dump() + " is neither \"lru\" nor \"compat\"");
}

std::vector<int64_t> ReadTenWindows(const ConfigFields& fields) {
  const nlohmann::json& value = fields.Field(kWindows);
  if (value.is_null()) return {};
  const auto is_integer = [](const nlohmann::json& window) { return window.is_number_integer(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_integer)) {
    fields.Refuse(kWindows, "is no list of integers");
  }
  return value.get<std::vector<int64_t>>();
}

TenFields ReadTenFields(const ConfigFields& fields) {
  const TenFields absent;
  return {.eigenstates = fields.RequiredInteger(kEigenstates),
          .heads = fields.Integer(kHeads, absent.heads),
          .init = ReadTenInit(fields),
          .min_modulus = fields.Number(kMinModulus, absent.min_modulus),
          .max_modulus = fields.Number(kMaxModulus, absent.max_modulus),
          .max_angle = fields.Number(kMaxAngle, absent.max_angle),
          .selective = fields.Flag(kSelective, absent.selective),
          .convolution = fields.Integer(kTaps, absent.convolution),
          .depth_decay = fields.Flag(kDepthDecay, absent.depth_decay),
          .layer_memory = fields.Flag(kLayerMemory, absent.layer_memory),
          .windows = ReadTenWindows(fields),
          .scan_chunk = fields.Integer(kScanChunk, absent.scan_chunk),
          .dynamics_rate = fields.Number(kDynamicsRate, absent.dynamics_rate)};
}

/// "1, 2 or 4": those up to 64.
std::string SmallDivisors(int64_t number) {
  std::string list, last = "1";
  for (int64_t divisor = 2; divisor <= std::min<int64_t>(number, 64); ++divisor) {
    if (number % divisor != 0) continue;
    list += (list.empty() ? "" : ", ") + last;
    last = std::to_string(divisor);
  }
  return list.empty() ? last : list + " or " + last;
}

TenProblem ProblemOfDecays(const TenFields& fields) {
  const auto inside = [](double modulus) { return modulus > 0 && modulus < 1; };
  constexpr char kInside[] = "must lie within the unit circle: above 0 and below 1";
  if (!inside(fields.min_modulus)) return {kMinModulus, kInside};
  if (!inside(fields.max_modulus)) return {kMaxModulus, kInside};
  if (fields.min_modulus < kLeastModulus) return {kMinModulus, "must be at least 1e-100"};
  if (fields.max_modulus < fields.min_modulus) return {kMaxModulus, "must be at least min_modulus"};
  if (fields.max_modulus > std::exp(kLargestLogModulus)) {
    return {kMaxModulus, "must be at most 0.999999, beyond which no decay goes"};
  }
  if (!(fields.max_angle > 0 && fields.max_angle <= 2 * std::numbers::pi)) {
    return {kMaxAngle, "must be above 0 and at most 2 pi"};
  }
  if (!(fields.dynamics_rate > 0 && std::isfinite(fields.dynamics_rate))) {
    return {kDynamicsRate, "must be a number above 0"};
  }
  return {};
}

TenProblem ProblemOfWindows(const TenFields& fields) {
  const std::vector<int64_t>& windows = fields.windows;
  if (windows.empty()) return {};
  if (windows.front() < 1 || windows.back() > kLongestWindow) {
    return {kWindows, "must be from 1 to " + std::to_string(kLongestWindow)};
  }
  if (std::adjacent_find(windows.begin(), windows.end(), std::greater_equal<>()) != windows.end()) {
    return {kWindows, "must rise"};
  }
  for (const int64_t window : windows) {
    if (windows.back() % window == 0) continue;
    return {kWindows,
            std::to_string(window) + " does not divide the largest, " + std::to_string(windows.back())};
  }
  const auto count = static_cast<int64_t>(windows.size());
  if (fields.eigenstates % count == 0) return {};
  return {kWindows, "are " + std::to_string(count) + ", which does not divide the " +
                        std::to_string(fields.eigenstates) + " of num_eigenstates"};
}

class TenDescription final : public FamilyDescription {
 public:
  const char* model_type() const override { return "ten"; }

  void Decode(const ConfigFields& fields, ModelConfig* config) const override {
    ReadShared(fields, config);
    fields.RequireFlag("is_causal", true);
    config->hidden_size = fields.RequiredInteger("hidden_size");
    config->intermediate_size = fields.RequiredInteger("intermediate_size");
    config->num_layers = ReadLayers(fields, "num_hidden_layers");
    config->max_positions = fields.RequiredInteger("max_position_embeddings");
    config->rms_norm_eps = fields.Number("layer_norm_eps", 1e-5);
    config->tie_embeddings = fields.Flag("tie_word_embeddings", true);
    config->own = FamilyFields::Of(ReadTenFields(fields));
    const TenProblem found = ProblemOfTen(*config);
    if (!found.field.empty()) fields.RefuseValue(found.field, found.problem, found.hint);
  }

  nlohmann::ordered_json Encode(const ModelConfig& config) const override {
    const TenFields& own = TenFieldsOf(config);
    nlohmann::ordered_json out;
    WriteShared(config, "TenForCausalLM", &out);
    out["auto_map"] = {{"AutoConfig", "configuration_ten.TenConfig"},
                       {"AutoModel", "modeling_ten.TenModel"},
                       {"AutoModelForCausalLM", "modeling_ten.TenForCausalLM"}};
    out["hidden_size"] = config.hidden_size;
    out["intermediate_size"] = config.intermediate_size;
    out["layer_norm_eps"] = config.rms_norm_eps;
    out["max_position_embeddings"] = config.max_positions;
    out["num_hidden_layers"] = config.num_layers;
    out[kEigenstates] = own.eigenstates;
    out[kHeads] = own.heads;
    out[kInit] = TenInitName(own.init);
    out[kMinModulus] = own.min_modulus;
    out[kMaxModulus] = own.max_modulus;
    out[kMaxAngle] = own.max_angle;
    out[kSelective] = own.selective;
    out[kTaps] = own.convolution;
    out[kDepthDecay] = own.depth_decay;
    out[kLayerMemory] = own.layer_memory;
    out[kWindows] = own.windows;
    out[kScanChunk] = own.scan_chunk;
    out[kDynamicsRate] = own.dynamics_rate;
    return out;
  }

  std::vector<ModelPreset> Presets() const override { return TenPresets(); }

  std::vector<OwnOption> options() const override {
    const TenFields usual;
    return {
        {.name = kInitOption,
         .initial = TenInitName(usual.init),
         .choices = {TenInitName(TenInit::kLru), TenInitName(TenInit::kCompat)},
         .help = "how decays are written as trained numbers, and where they start. lru: |lambda| = "
                 "exp(-e^a), from 0.9 to 0.999, for long memory; compat: |lambda| = sigmoid(a), as "
                 "TEN was published"},
        {.name = kChunkOption,
         .initial = usual.scan_chunk,
         .least = 1,
         .most = static_cast<double>(kLongestChunk),
         .whole = true,
         .type_name = "N",
         .help = "tokens of a chunk of the recurrence; another number changes speed, memory and rounding"},
        {.name = kSelectiveOption,
         .initial = "off",
         .choices = {"off", "on"},
         .help = "whether decays follow the input, too"}};
  }

  void Apply(const OwnOptions& chosen, ModelConfig* config) const override {
    TenFields fields = TenFieldsOf(*config);
    for (const auto& [name, value] : chosen) {
      if (name == kInitOption) fields.init = ParseTenInit(value.text(), "--ten-init");
      if (name == kChunkOption) fields.scan_chunk = static_cast<int64_t>(value.number());
      if (name == kSelectiveOption) fields.selective = value.text() == "on";
    }
    config->own = FamilyFields::Of(std::move(fields));
  }

  OwnOptions OptionsOf(const ModelConfig& config) const override {
    const TenFields& fields = TenFieldsOf(config);
    return {{kInitOption, TenInitName(fields.init)},
            {kChunkOption, fields.scan_chunk},
            {kSelectiveOption, fields.selective ? "on" : "off"}};
  }

  int64_t CountParameters(const ModelConfig& config) const override {
    const TenFields& own = TenFieldsOf(config);
    const int64_t width = config.hidden_size, states = own.eigenstates, norm = 2 * width;
    const int64_t gate = width * width + width, cell = 4 * states * width + 2 * states;
    int64_t layer = norm + cell + 2 * states * own.convolution + states * states / own.heads + gate + norm +
                    2 * width * config.intermediate_size;
    if (own.selective) layer += 2 * states * width;
    if (own.multi_scale()) layer += norm + cell + gate;  // of all windows, which divide the eigenstates
    const int64_t memory = own.layer_memory ? states * states + 1 : 0;
    return config.num_layers * layer + (config.num_layers - 1) * memory + norm +
           (config.tie_embeddings ? 1 : 2) * config.vocab_size * width;
  }

  StepFlops CountStepFlops(const ModelConfig& config, const FineTuning& tuning) const override {
    return CountTenFlops(config, tuning);
  }

  int64_t LongestSequence(const ModelConfig& /*config*/) const override {
    return std::numeric_limits<int64_t>::max();
  }
  bool always_causal() const override { return true; }
  bool scans() const override { return true; }
  bool carries_state() const override { return true; }
  bool runs_on_gpu() const override { return true; }

  std::vector<LayerMatrix> LayerMatrices(const ModelConfig& config) const override {
    const TenFields& own = TenFieldsOf(config);
    const int64_t width = config.hidden_size, states = own.eigenstates, wide = config.intermediate_size;
    std::vector<LayerMatrix> matrices;
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      const auto add = [&](const char* name, int64_t outputs, int64_t inputs, double token_rows = 1) {
        matrices.push_back({.module = "ten.layers." + std::to_string(layer) + "." + name,
                            .outputs = outputs,
                            .inputs = inputs,
                            .layer = layer,
                            .token_rows = token_rows});
      };
      add("cell.in_proj", 2 * states, width);
      if (own.selective) add("cell.selective_proj", 2 * states, width);
      if (own.layer_memory && layer > 0) add("cell.memory", states, states, 2);
      add("cell.out_proj", width, 2 * states);
      add("cell.gate_proj", width, width);
      add("mlp.up_proj", wide, width);
      add("mlp.down_proj", width, wide);
    }
    return matrices;
  }

  LoraBlocks lora_blocks() const override { return {.attention = {"cell"}, .mlp = {"mlp"}}; }
  OuterModules outer_modules() const override {
    return {.tables = {"ten.embed_tokens"}, .head = "lm_head", .norms = {"ten.norm"}};
  }
};

}  // namespace

const FamilyDescription& TenFamily() {
  static const TenDescription family;
  return family;
}

const TenFields& TenFieldsOf(const ModelConfig& config) {
  return config.own.As<TenFields>();
}

TenProblem ProblemOfTen(const ModelConfig& config) {
  const TenFields& fields = TenFieldsOf(config);
  if (!(config.rms_norm_eps >= 0)) return {"layer_norm_eps", "must be at least 0"};
  if (fields.eigenstates < 1) return {kEigenstates, "must be at least 1"};
  if (fields.heads < 1 || fields.eigenstates % fields.heads != 0) {
    return {kHeads,
            std::to_string(fields.heads) + " does not divide the " + std::to_string(fields.eigenstates) +
                " of num_eigenstates",
            "give num_heads " + SmallDivisors(fields.eigenstates)};
  }
  if (fields.convolution < 0 || fields.convolution > kMostTaps) {
    return {kTaps, "must be from 0 (none) to " + std::to_string(kMostTaps)};
  }
  if (fields.scan_chunk < 1 || fields.scan_chunk > kLongestChunk) {
    return {kScanChunk, "must be from 1 to " + std::to_string(kLongestChunk)};
  }
  if (TenProblem found = ProblemOfDecays(fields); !found.field.empty()) return found;
  return ProblemOfWindows(fields);
}

}  // namespace trainwright

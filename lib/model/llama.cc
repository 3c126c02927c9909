#include "lib/model/llama.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <initializer_list>
#include <string>

#include "lib/base/error.h"
#include "lib/device/upload.h"
#include "lib/model/gpt2.h"
#include "lib/model/initialize.h"
#include "lib/nn/attention.h"
#include "lib/nn/elementwise.h"
#include "lib/nn/embedding.h"
#include "lib/nn/rms_norm.h"
#include "lib/nn/swiglu.h"

namespace trainwright {
namespace {

[[noreturn]] void Refuse(const std::string& field, const std::string& problem) {
  throw Error(ErrorCode::kUsage, "model config", field + " " + problem);
}

void CheckConfig(const ModelConfig& config) {
  const auto positive = [](int64_t value, const char* field) {
    if (value <= 0) Refuse(field, "must be positive, not " + std::to_string(value));
  };
  positive(config.vocab_size, "vocab_size");
  positive(config.hidden_size, "hidden_size");
  positive(config.intermediate_size, "intermediate_size");
  positive(config.num_layers, "num_hidden_layers");
  positive(config.num_heads, "num_attention_heads");
  positive(config.num_kv_heads, "num_key_value_heads");
  positive(config.head_dim, "head_dim");
  positive(config.max_positions, "max_position_embeddings");
  if (config.num_heads % config.num_kv_heads != 0) {
    Refuse("num_attention_heads", "(" + std::to_string(config.num_heads) +
                                      ") is no multiple of num_key_value_heads (" +
                                      std::to_string(config.num_kv_heads) + ")");
  }
  if (config.head_dim % 2 != 0) Refuse("head_dim", "must be even for rotary positions");
}

}  // namespace

Llama::Llama(const ModelConfig& config, const Numerics& numerics, at::Device device,
             std::optional<uint64_t> seed)
    : config_(config),
      numerics_(numerics),
      device_(device),
      rope_(config.rope_theta, config.head_dim, device),
      loss_(numerics) {
  CheckConfig(config);
  ResolveAttentionBackend(numerics.attention, config.head_dim, numerics.storage, device);  // refuses early
  struct Indices {
    size_t attention_norm, q, k, v, o, mlp_norm, gate, up, down;
  };
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const int64_t query = config.num_heads * config.head_dim, key = config.num_kv_heads * config.head_dim;
  embedding_ = parameters_.Add("model.embed_tokens.weight", {config.vocab_size, width}, true);
  std::vector<Indices> indices;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const auto matrix = [&](const char* name, int64_t rows, int64_t columns) {
      return parameters_.Add(prefix + name + ".weight", {rows, columns}, true);
    };
    const auto norm = [&](const char* name) {
      return parameters_.Add(prefix + name + ".weight", {width}, false);
    };
    Indices i{};
    i.attention_norm = norm("input_layernorm");
    i.q = matrix("self_attn.q_proj", query, width);
    i.k = matrix("self_attn.k_proj", key, width);
    i.v = matrix("self_attn.v_proj", key, width);
    i.o = matrix("self_attn.o_proj", width, query);
    i.mlp_norm = norm("post_attention_layernorm");
    i.gate = matrix("mlp.gate_proj", wide, width);
    i.up = matrix("mlp.up_proj", wide, width);
    i.down = matrix("mlp.down_proj", width, wide);
    indices.push_back(i);
  }
  final_norm_ = parameters_.Add("model.norm.weight", {width}, false);
  head_ = config.tie_embeddings ? embedding_
                                : parameters_.Add("lm_head.weight", {config.vocab_size, width}, true);
  parameters_.Allocate(numerics, device);
  for (const Indices& i : indices) {
    layers_.push_back({i.attention_norm, i.mlp_norm, Linear(&parameters_, {i.q, i.k, i.v}),
                       Linear(&parameters_, {i.o}), Linear(&parameters_, {i.gate, i.up}),
                       Linear(&parameters_, {i.down})});
  }
  saved_.resize(config.num_layers);
  if (seed) {
    const auto into_residual = [](const std::string& name) {
      return name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
    };
    InitializeWeights(*seed, config.num_layers, into_residual, &parameters_);
  }
}

AttentionShape Llama::ShapeOf(int64_t num_tokens) const {
  return {num_tokens, config_.num_heads, config_.num_kv_heads, config_.head_dim};
}

at::Tensor Llama::Temporary(Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer.Get({rows, columns}, numerics_.storage, device_);
}
at::Tensor Llama::TemporaryFp32(Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer.Get({rows, columns}, at::kFloat, device_);
}

Llama::Views Llama::ViewsOf(size_t slot, int64_t num_tokens) {
  Saved& saved = saved_[slot];
  const AttentionShape shape = ShapeOf(num_tokens);
  Views views;
  views.input_nd = TemporaryFp32(saved.input, num_tokens, config_.hidden_size);
  views.middle_nd = TemporaryFp32(saved.middle, num_tokens, config_.hidden_size);
  views.input_rstd_n = saved.input_rstd.Get({num_tokens}, at::kFloat, device_);
  views.middle_rstd_n = saved.middle_rstd.Get({num_tokens}, at::kFloat, device_);
  views.qkv = Temporary(saved.qkv, num_tokens, shape.row());
  views.attention = Temporary(saved.attention, num_tokens, shape.num_heads * shape.head_dim);
  views.lse_hn = TemporaryFp32(saved.lse, shape.num_heads, num_tokens);
  views.gate_up = Temporary(saved.gate_up, num_tokens, 2 * config_.intermediate_size);
  return views;
}

at::Tensor Llama::Forward(const DeviceInput& input, bool keep) {
  const int64_t num_tokens = input.num_tokens(), width = config_.hidden_size;
  const AttentionShape shape = ShapeOf(num_tokens);
  rope_.Reserve(input.positions_end);
  at::Tensor normed = Temporary(normed_, num_tokens, width), update = Temporary(update_, num_tokens, width);
  at::Tensor activation = Temporary(activation_, num_tokens, config_.intermediate_size);
  at::Tensor stream = TemporaryFp32(saved_[0].input, num_tokens, width), pending;
  Embed(Weight(embedding_), input.tokens_n, stream);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    Views saved = ViewsOf(keep ? i : 0, num_tokens);
    AddRmsNorm(numerics_, stream, pending, Weight(layer.attention_norm), config_.rms_norm_eps, saved.input_nd,
               normed, saved.input_rstd_n);
    layer.qkv.Forward(normed, saved.qkv);
    ApplyRope(numerics_, rope_, shape, input.positions_n, /*backward=*/false, saved.qkv);
    PackedAttention(numerics_, shape, saved.qkv, input.spans, saved.attention, saved.lse_hn);
    layer.attention_out.Forward(saved.attention, update);
    AddRmsNorm(numerics_, saved.input_nd, update, Weight(layer.mlp_norm), config_.rms_norm_eps,
               saved.middle_nd, normed, saved.middle_rstd_n);
    layer.gate_up.Forward(normed, saved.gate_up);
    Swiglu(numerics_, saved.gate_up, activation);
    layer.down.Forward(activation, update);
    stream = saved.middle_nd;
    pending = update;
  }
  at::Tensor output = TemporaryFp32(output_, num_tokens, width);
  at::Tensor output_rstd = output_rstd_.Get({num_tokens}, at::kFloat, device_);
  AddRmsNorm(numerics_, stream, pending, Weight(final_norm_), config_.rms_norm_eps, output, normed,
             output_rstd);
  return normed;
}

void Llama::Backward(const DeviceInput& input, const at::Tensor& d_hidden_nd) {
  const int64_t num_tokens = input.num_tokens(), width = config_.hidden_size;
  const AttentionShape shape = ShapeOf(num_tokens);
  at::Tensor normed = Temporary(normed_, num_tokens, width),
             d_normed = Temporary(d_normed_, num_tokens, width);
  at::Tensor activation = Temporary(activation_, num_tokens, config_.intermediate_size);
  at::Tensor d_activation = Temporary(d_activation_, num_tokens, config_.intermediate_size);
  at::Tensor d_attention = Temporary(d_attention_, num_tokens, shape.num_heads * shape.head_dim);
  at::Tensor d_qkv = Temporary(d_qkv_, num_tokens, shape.row());
  at::Tensor d_stream = TemporaryFp32(d_stream_, num_tokens, width);
  d_stream.zero_();
  // The stream's gradient as the products read it: itself under fp32, else rounded.
  at::Tensor d_short =
      numerics_.precision == Precision::kFp32 ? d_stream : Temporary(d_short_, num_tokens, width);
  const auto refresh_short = [&] {
    if (numerics_.precision != Precision::kFp32) RoundInto(numerics_, d_stream, d_short);
  };
  const auto norm_backward = [&](const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& rstd,
                                 size_t weight) {
    at::Tensor d_weight = parameters_[weight].gradient;
    RmsNormBackward(numerics_, d_out, x, rstd, Weight(weight), d_stream, d_weight);
  };
  norm_backward(d_hidden_nd, TemporaryFp32(output_, num_tokens, width),
                output_rstd_.Get({num_tokens}, at::kFloat, device_), final_norm_);
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    Views saved = ViewsOf(i, num_tokens);

    refresh_short();
    Swiglu(numerics_, saved.gate_up, activation);
    layer.down.Backward(d_short, activation, d_activation);
    SwigluBackward(numerics_, d_activation, saved.gate_up);
    RmsNormAgain(numerics_, saved.middle_nd, saved.middle_rstd_n, Weight(layer.mlp_norm), normed);
    layer.gate_up.Backward(saved.gate_up, normed, d_normed);
    norm_backward(d_normed, saved.middle_nd, saved.middle_rstd_n, layer.mlp_norm);

    refresh_short();
    layer.attention_out.Backward(d_short, saved.attention, d_attention);
    if (numerics_.emulated()) RoundInto(numerics_, d_attention, d_attention);
    PackedAttentionBackward(numerics_, shape, d_attention, saved.qkv, saved.attention, saved.lse_hn,
                            input.spans, d_qkv);
    ApplyRope(numerics_, rope_, shape, input.positions_n, /*backward=*/true, d_qkv);
    RmsNormAgain(numerics_, saved.input_nd, saved.input_rstd_n, Weight(layer.attention_norm), normed);
    layer.qkv.Backward(d_qkv, normed, d_normed);
    norm_backward(d_normed, saved.input_nd, saved.input_rstd_n, layer.attention_norm);
  }
  at::Tensor d_table = parameters_[embedding_].gradient;
  EmbedBackward(d_stream, input.tokens_n, d_table);
}

LossSum Llama::Loss(const ModelInput& input) {
  CheckInput(input, config_.vocab_size);
  return loss_.Loss(Forward(ToDevice(input, device_), /*keep=*/false), Head().compute, input.labels_n,
                    input.pin);
}

LossSum Llama::LossAndGradients(const ModelInput& input, const GradientScale& scale) {
  CheckInput(input, config_.vocab_size);
  parameters_.gradients();
  const DeviceInput on_device = ToDevice(input, device_);
  const at::Tensor hidden = Forward(on_device, /*keep=*/true);
  at::Tensor d_hidden = Temporary(d_normed_, hidden.size(0), hidden.size(1));
  const LossSum loss = loss_.LossAndGradients(hidden, Head().compute, input.labels_n, loss_terms(), scale,
                                              d_hidden, Head().gradient, input.pin);
  Backward(on_device, d_hidden);
  return loss;
}

at::Tensor Llama::Logits(const ModelInput& input) {
  CheckInput(input, config_.vocab_size);
  at::Tensor logits = at::mm(Forward(ToDevice(input, device_), /*keep=*/false), Head().compute.t());
  if (numerics_.emulated()) RoundInto(numerics_, logits, logits);
  return logits.to(at::kFloat);
}

/// Appends through Llama's layers; only the attention differs, which reads the cache.
class LlamaDecoder final : public Decoder {
 public:
  LlamaDecoder(Llama* model, int64_t max_tokens) : model_(*model), max_tokens_(max_tokens) {
    const ModelConfig& config = model->config();
    const auto options = at::TensorOptions().dtype(model->numerics_.storage).device(model->device_);
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      keys_.push_back(at::empty({max_tokens, config.num_kv_heads * config.head_dim}, options));
      values_.push_back(at::empty({max_tokens, config.num_kv_heads * config.head_dim}, options));
    }
  }

  at::Tensor Append(const std::vector<int64_t>& tokens) override;
  int64_t length() const override { return length_; }

 private:
  Llama& model_;
  int64_t max_tokens_, length_ = 0;
  std::vector<at::Tensor> keys_, values_;  // storage type [max_tokens, G K] a layer
};

at::Tensor LlamaDecoder::Append(const std::vector<int64_t>& tokens) {
  Llama& m = model_;
  const auto count = static_cast<int64_t>(tokens.size());
  TRAINWRIGHT_CHECK(count > 0 && length_ + count <= max_tokens_);
  const ModelConfig& config = m.config_;
  const AttentionShape shape = m.ShapeOf(count);
  const auto longs = at::TensorOptions().dtype(at::kLong);
  at::Tensor tokens_n = at::empty({count}, longs), positions_n = at::empty({count}, longs);
  for (int64_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || tokens[i] >= config.vocab_size) {
      throw Error(ErrorCode::kBadInput, "prompt",
                  "id " + std::to_string(tokens[i]) + " is outside the model's vocabulary");
    }
    tokens_n.mutable_data_ptr<int64_t>()[i] = tokens[i];
    positions_n.mutable_data_ptr<int64_t>()[i] = length_ + i;
  }
  tokens_n = Upload(tokens_n, m.device_);
  positions_n = Upload(positions_n, m.device_);
  const SpanTable span(std::vector<int32_t>{0, static_cast<int32_t>(count)}, m.device_);
  m.rope_.Reserve(length_ + count);
  const int64_t width = config.hidden_size, queries = shape.num_heads * shape.head_dim,
                cached = shape.num_kv_heads * shape.head_dim;
  at::Tensor normed = m.Temporary(m.normed_, count, width), update = m.Temporary(m.update_, count, width);
  at::Tensor activation = m.Temporary(m.activation_, count, config.intermediate_size);
  at::Tensor stream = m.TemporaryFp32(m.saved_[0].input, count, width), pending;
  Embed(m.Weight(m.embedding_), tokens_n, stream);
  for (size_t i = 0; i < m.layers_.size(); ++i) {
    const Llama::Layer& layer = m.layers_[i];
    Llama::Views saved = m.ViewsOf(0, count);
    AddRmsNorm(m.numerics_, stream, pending, m.Weight(layer.attention_norm), config.rms_norm_eps,
               saved.input_nd, normed, saved.input_rstd_n);
    layer.qkv.Forward(normed, saved.qkv);
    ApplyRope(m.numerics_, m.rope_, shape, positions_n, /*backward=*/false, saved.qkv);
    keys_[i].narrow(0, length_, count).copy_(saved.qkv.narrow(1, queries, cached));
    values_[i].narrow(0, length_, count).copy_(saved.qkv.narrow(1, queries + cached, cached));
    if (length_ == 0) {
      PackedAttention(m.numerics_, shape, saved.qkv, span, saved.attention, saved.lse_hn);
    } else {
      for (int64_t row = 0; row < count; ++row) {
        at::Tensor out = saved.attention[row];
        DecodeAttention(m.numerics_, shape, saved.qkv[row], keys_[i], values_[i], length_ + row + 1, out);
      }
    }
    layer.attention_out.Forward(saved.attention, update);
    AddRmsNorm(m.numerics_, saved.input_nd, update, m.Weight(layer.mlp_norm), config.rms_norm_eps,
               saved.middle_nd, normed, saved.middle_rstd_n);
    layer.gate_up.Forward(normed, saved.gate_up);
    Swiglu(m.numerics_, saved.gate_up, activation);
    layer.down.Forward(activation, update);
    stream = saved.middle_nd;
    pending = update;
  }
  length_ += count;
  at::Tensor last = m.TemporaryFp32(m.output_, 1, width), last_normed = m.Temporary(m.normed_, 1, width);
  at::Tensor rstd = m.output_rstd_.Get({1}, at::kFloat, m.device_);
  AddRmsNorm(m.numerics_, stream.narrow(0, count - 1, 1), pending.narrow(0, count - 1, 1),
             m.Weight(m.final_norm_), config.rms_norm_eps, last, last_normed, rstd);
  at::Tensor logits = at::mm(last_normed, m.Head().compute.t());
  if (m.numerics_.emulated()) RoundInto(m.numerics_, logits, logits);
  return logits[0].to(at::kFloat);
}

ModelMemory Llama::memory() const {
  ModelMemory memory{.logits_bytes = loss_.workspace_bytes()};
  const auto add = [&](std::initializer_list<const Buffer*> buffers) {
    for (const Buffer* buffer : buffers) memory.activation_bytes += buffer->bytes();
  };
  for (const Saved& saved : saved_) {
    add({&saved.input, &saved.middle, &saved.input_rstd, &saved.middle_rstd, &saved.qkv, &saved.attention,
         &saved.lse, &saved.gate_up});
  }
  add({&output_, &output_rstd_, &normed_, &update_, &activation_, &d_stream_, &d_short_, &d_normed_,
       &d_activation_, &d_attention_, &d_qkv_});
  return memory;
}

std::unique_ptr<Decoder> Llama::NewDecoder(int64_t max_tokens) {
  return std::make_unique<LlamaDecoder>(this, max_tokens);
}

std::unique_ptr<LanguageModel> MakeModel(const ModelConfig& config, Precision precision, at::Device device,
                                         std::optional<uint64_t> seed, AttentionBackend attention) {
  const Numerics numerics = ChooseNumerics(precision, device, attention);
  if (config.family == ModelFamily::kGpt2) {
    if (device.is_cuda()) {
      throw Error(ErrorCode::kDevice, "model", "the GPT-2 family runs on the CPU only so far", "",
                  "use --device cpu");
    }
    return std::make_unique<Gpt2>(config, numerics, device, seed);
  }
  return std::make_unique<Llama>(config, numerics, device, seed);
}

}  // namespace trainwright

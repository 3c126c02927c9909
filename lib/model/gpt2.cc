#include "lib/model/gpt2.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <initializer_list>
#include <string>

#include "lib/base/error.h"
#include "lib/model/initialize.h"
#include "lib/nn/bias.h"
#include "lib/nn/elementwise.h"
#include "lib/nn/embedding.h"

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
  positive(config.hidden_size, "n_embd");
  positive(config.intermediate_size, "n_inner");
  positive(config.num_layers, "n_layer");
  positive(config.num_heads, "n_head");
  positive(config.max_positions, "n_positions");
  if (config.hidden_size % config.num_heads != 0) Refuse("n_head", "must divide n_embd");
  TRAINWRIGHT_CHECK(config.family == ModelFamily::kGpt2 && config.activation != Activation::kSwiglu &&
                    config.num_kv_heads == config.num_heads &&
                    config.head_dim * config.num_heads == config.hidden_size);
}

}  // namespace

Gpt2::Gpt2(const ModelConfig& config, const Numerics& numerics, at::Device device,
           std::optional<uint64_t> seed)
    : config_(config), numerics_(numerics), device_(device), loss_(numerics) {
  CheckConfig(config);
  if (device.is_cuda()) {
    throw Error(ErrorCode::kUsage, "--device", "this build computes GPT-2 on the CPU alone", "",
                "use --device cpu, or a model of the Llama family");
  }
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const auto bias = [&](const std::string& name, int64_t size) -> std::optional<size_t> {
    if (config.bias) return parameters_.Add(name + ".bias", {size}, false);
    parameters_.AddZeros(name + ".bias", {size});
    return std::nullopt;
  };
  const auto norm = [&](const std::string& name) {
    const size_t weight = parameters_.Add(name + ".weight", {width}, false);
    return Pair{weight, bias(name, width)};
  };
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
    const size_t weight = parameters_.Add(name + ".weight", {rows, columns}, true);
    parameters_[weight].transposed_in_files = true;
    return Pair{weight, bias(name, rows)};
  };
  struct Indices {
    Pair attention_norm, qkv, attention_out, mlp_norm, up, down;
  };
  std::vector<Indices> indices;
  tokens_ = parameters_.Add("transformer.wte.weight", {config.vocab_size, width}, true);
  positions_ = parameters_.Add("transformer.wpe.weight", {config.max_positions, width}, true);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
    Indices i;
    i.attention_norm = norm(prefix + "ln_1");
    i.qkv = matrix(prefix + "attn.c_attn", 3 * width, width);
    i.attention_out = matrix(prefix + "attn.c_proj", width, width);
    i.mlp_norm = norm(prefix + "ln_2");
    i.up = matrix(prefix + "mlp.c_fc", wide, width);
    i.down = matrix(prefix + "mlp.c_proj", width, wide);
    indices.push_back(i);
  }
  final_norm_ = norm("transformer.ln_f");
  head_ =
      config.tie_embeddings ? tokens_ : parameters_.Add("lm_head.weight", {config.vocab_size, width}, true);
  parameters_.Allocate(numerics, device);
  const auto projection = [&](const Pair& pair) {
    return Projection{Linear(&parameters_, {pair.weight}), pair.bias};
  };
  for (const Indices& i : indices) {
    layers_.push_back({i.attention_norm, i.mlp_norm, projection(i.qkv), projection(i.attention_out),
                       projection(i.up), projection(i.down)});
  }
  saved_.resize(config.num_layers);
  if (seed) {
    InitializeWeights(
        *seed, config.num_layers, [](const std::string& name) { return name.ends_with(".c_proj.weight"); },
        &parameters_);
  }
}

void Gpt2::Check(const ModelInput& input) const {
  const int64_t num_tokens = input.tokens_n.numel();
  TRAINWRIGHT_CHECK(num_tokens > 0 && input.positions_n.numel() == num_tokens &&
                    input.labels_n.numel() == num_tokens);
  const auto *tokens = input.tokens_n.const_data_ptr<int64_t>(),
             *labels = input.labels_n.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < num_tokens; ++i) {
    const int64_t id = tokens[i] < 0 || tokens[i] >= config_.vocab_size ? tokens[i] : labels[i];
    if (tokens[i] < 0 || id >= config_.vocab_size) {
      throw Error(ErrorCode::kBadInput, "tokens",
                  "id " + std::to_string(id) + " is outside the model's vocabulary of " +
                      std::to_string(config_.vocab_size),
                  "position " + std::to_string(i), "the data and the model must use the same tokenizer");
    }
  }
  const auto* positions = input.positions_n.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < num_tokens; ++i) {
    TRAINWRIGHT_CHECK(positions[i] >= 0);
    if (positions[i] >= config_.max_positions) {
      throw Error(ErrorCode::kBadInput, "tokens",
                  "a sample is longer than the " + std::to_string(config_.max_positions) +
                      " positions that the model learned",
                  "position " + std::to_string(positions[i]), "use a smaller --seq");
    }
  }
}

AttentionShape Gpt2::ShapeOf(int64_t num_tokens) const {
  return {num_tokens, config_.num_heads, config_.num_heads, config_.head_dim};
}

GeluKind Gpt2::gelu_kind() const {
  return config_.activation == Activation::kGelu ? GeluKind::kErf : GeluKind::kTanh;
}

at::Tensor Gpt2::Temporary(Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer.Get({rows, columns}, numerics_.storage, device_);
}
at::Tensor Gpt2::TemporaryFp32(Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer.Get({rows, columns}, at::kFloat, device_);
}

LayerNormStatistics Gpt2::StatisticsOf(Buffer& buffer, int64_t num_tokens) {
  const at::Tensor both = TemporaryFp32(buffer, 2, num_tokens);
  return {both[0], both[1]};
}

Gpt2::Views Gpt2::ViewsOf(size_t slot, int64_t num_tokens) {
  Saved& saved = saved_[slot];
  const AttentionShape shape = ShapeOf(num_tokens);
  Views views;
  views.input_nd = TemporaryFp32(saved.input, num_tokens, config_.hidden_size);
  views.middle_nd = TemporaryFp32(saved.middle, num_tokens, config_.hidden_size);
  views.input_statistics = StatisticsOf(saved.input_statistics, num_tokens);
  views.middle_statistics = StatisticsOf(saved.middle_statistics, num_tokens);
  views.qkv = Temporary(saved.qkv, num_tokens, shape.row());
  views.attention = Temporary(saved.attention, num_tokens, config_.hidden_size);
  views.lse_hn = TemporaryFp32(saved.lse, shape.num_heads, num_tokens);
  views.up_nf = Temporary(saved.up, num_tokens, config_.intermediate_size);
  return views;
}

void Gpt2::EmbedInto(const at::Tensor& tokens_n, const at::Tensor& positions_n, at::Tensor& stream_nd) const {
  Embed(Value(tokens_), tokens_n, stream_nd);
  AddEmbedding(Value(positions_), positions_n, stream_nd);
}

void Gpt2::RunMlp(const Layer& layer, Views& saved, at::Tensor& normed, at::Tensor& activation,
                  at::Tensor& update) {
  layer.attention_out.linear.Forward(saved.attention, update);
  AddLayerNorm(numerics_, saved.input_nd, update, Value(layer.attention_out.bias), Norm(layer.mlp_norm),
               config_.rms_norm_eps, saved.middle_nd, normed, saved.middle_statistics);
  layer.up.linear.Forward(normed, saved.up_nf);
  Gelu(numerics_, gelu_kind(), saved.up_nf, Value(layer.up.bias), activation);
  layer.down.linear.Forward(activation, update);
}

at::Tensor Gpt2::Forward(const ModelInput& input, bool keep) {
  Check(input);
  const int64_t num_tokens = input.tokens_n.numel(), width = config_.hidden_size;
  const AttentionShape shape = ShapeOf(num_tokens);
  const SpanTable spans(input.span_starts);
  at::Tensor normed = Temporary(normed_, num_tokens, width), update = Temporary(update_, num_tokens, width);
  at::Tensor activation = Temporary(activation_, num_tokens, config_.intermediate_size);
  at::Tensor stream = TemporaryFp32(saved_[0].input, num_tokens, width), pending, pending_bias;
  EmbedInto(input.tokens_n, input.positions_n, stream);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    Views saved = ViewsOf(keep ? i : 0, num_tokens);
    AddLayerNorm(numerics_, stream, pending, pending_bias, Norm(layer.attention_norm), config_.rms_norm_eps,
                 saved.input_nd, normed, saved.input_statistics);
    layer.qkv.linear.Forward(normed, saved.qkv);
    AddBias(numerics_, Value(layer.qkv.bias), saved.qkv);
    PackedAttention(numerics_, shape, saved.qkv, spans, saved.attention, saved.lse_hn);
    RunMlp(layer, saved, normed, activation, update);
    stream = saved.middle_nd;
    pending = update;
    pending_bias = Value(layer.down.bias);
  }
  at::Tensor output = TemporaryFp32(output_, num_tokens, width);
  LayerNormStatistics statistics = StatisticsOf(output_statistics_, num_tokens);
  AddLayerNorm(numerics_, stream, pending, pending_bias, Norm(final_norm_), config_.rms_norm_eps, output,
               normed, statistics);
  return normed;
}

void Gpt2::Backward(const ModelInput& input, const at::Tensor& d_hidden_nd) {
  const int64_t num_tokens = input.tokens_n.numel(), width = config_.hidden_size;
  const AttentionShape shape = ShapeOf(num_tokens);
  const SpanTable spans(input.span_starts);
  at::Tensor normed = Temporary(normed_, num_tokens, width),
             d_normed = Temporary(d_normed_, num_tokens, width);
  at::Tensor activation = Temporary(activation_, num_tokens, config_.intermediate_size);
  at::Tensor d_activation = Temporary(d_activation_, num_tokens, config_.intermediate_size);
  at::Tensor d_attention = Temporary(d_attention_, num_tokens, width);
  at::Tensor d_qkv = Temporary(d_qkv_, num_tokens, shape.row());
  at::Tensor d_stream = TemporaryFp32(d_stream_, num_tokens, width);
  d_stream.zero_();
  // The stream's gradient as the products read it: itself under fp32, else rounded.
  at::Tensor d_short =
      numerics_.precision == Precision::kFp32 ? d_stream : Temporary(d_short_, num_tokens, width);
  const auto refresh_short = [&] {
    if (numerics_.precision != Precision::kFp32) RoundInto(numerics_, d_stream, d_short);
  };
  const auto norm_backward = [&](const at::Tensor& d_out, const at::Tensor& x,
                                 const LayerNormStatistics& statistics, const Pair& norm) {
    at::Tensor d_weight = Gradient(norm.weight), d_bias = Gradient(norm.bias);
    LayerNormBackward(numerics_, d_out, x, statistics, Value(norm.weight), d_stream, d_weight, d_bias);
  };
  const auto linear_backward = [&](const Projection& projection, const at::Tensor& dy, const at::Tensor& x,
                                   at::Tensor& d_x) {
    projection.linear.Backward(dy, x, d_x);
    at::Tensor d_bias = Gradient(projection.bias);
    if (d_bias.defined()) AccumulateBiasGradient(numerics_, dy, d_bias);
  };
  norm_backward(d_hidden_nd, TemporaryFp32(output_, num_tokens, width),
                StatisticsOf(output_statistics_, num_tokens), final_norm_);
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    Views saved = ViewsOf(i, num_tokens);

    refresh_short();
    Gelu(numerics_, gelu_kind(), saved.up_nf, Value(layer.up.bias), activation);
    linear_backward(layer.down, d_short, activation, d_activation);
    GeluBackward(numerics_, gelu_kind(), d_activation, Value(layer.up.bias), saved.up_nf);
    LayerNormAgain(numerics_, saved.middle_nd, saved.middle_statistics, Norm(layer.mlp_norm), normed);
    linear_backward(layer.up, saved.up_nf, normed, d_normed);
    norm_backward(d_normed, saved.middle_nd, saved.middle_statistics, layer.mlp_norm);

    refresh_short();
    linear_backward(layer.attention_out, d_short, saved.attention, d_attention);
    if (numerics_.emulated()) RoundInto(numerics_, d_attention, d_attention);
    PackedAttentionBackward(numerics_, shape, d_attention, saved.qkv, saved.attention, saved.lse_hn, spans,
                            d_qkv);
    if (numerics_.emulated()) RoundInto(numerics_, d_qkv, d_qkv);
    LayerNormAgain(numerics_, saved.input_nd, saved.input_statistics, Norm(layer.attention_norm), normed);
    linear_backward(layer.qkv, d_qkv, normed, d_normed);
    norm_backward(d_normed, saved.input_nd, saved.input_statistics, layer.attention_norm);
  }
  at::Tensor d_tokens = Gradient(tokens_), d_positions = Gradient(positions_);
  EmbedBackward(d_stream, input.tokens_n, d_tokens);
  EmbedBackward(d_stream, input.positions_n, d_positions);
}

LossSum Gpt2::Loss(const ModelInput& input) {
  return loss_.Loss(Forward(input, /*keep=*/false), Head().compute, input.labels_n,
                    input.pin);
}

LossSum Gpt2::LossAndGradients(const ModelInput& input, const GradientScale& scale) {
  parameters_.gradients();
  const at::Tensor hidden = Forward(input, /*keep=*/true);
  at::Tensor d_hidden = Temporary(d_normed_, hidden.size(0), hidden.size(1));
  const LossSum loss = loss_.LossAndGradients(hidden, Head().compute, input.labels_n, loss_terms(), scale,
                                              d_hidden, Head().gradient, input.pin);
  Backward(input, d_hidden);
  return loss;
}

at::Tensor Gpt2::Logits(const ModelInput& input) {
  at::Tensor logits = at::mm(Forward(input, /*keep=*/false), Head().compute.t());
  if (numerics_.emulated()) RoundInto(numerics_, logits, logits);
  return logits.to(at::kFloat);
}

/// Appends through the model's layers; only the attention differs, which reads the cache.
class Gpt2Decoder final : public Decoder {
 public:
  Gpt2Decoder(Gpt2* model, int64_t max_tokens) : model_(*model), max_tokens_(max_tokens) {
    TRAINWRIGHT_CHECK(max_tokens <= model->config_.max_positions);
    const auto options = at::TensorOptions().dtype(model->numerics_.storage).device(model->device_);
    for (int64_t layer = 0; layer < model->config_.num_layers; ++layer) {
      keys_.push_back(at::empty({max_tokens, model->config_.hidden_size}, options));
      values_.push_back(at::empty({max_tokens, model->config_.hidden_size}, options));
    }
  }

  at::Tensor Append(const std::vector<int64_t>& tokens) override;
  int64_t length() const override { return length_; }

 private:
  Gpt2& model_;
  int64_t max_tokens_, length_ = 0;
  std::vector<at::Tensor> keys_, values_;  // storage type [max_tokens, H K] a layer
};

at::Tensor Gpt2Decoder::Append(const std::vector<int64_t>& tokens) {
  Gpt2& m = model_;
  const auto count = static_cast<int64_t>(tokens.size());
  TRAINWRIGHT_CHECK(count > 0 && length_ + count <= max_tokens_);
  const AttentionShape shape = m.ShapeOf(count);
  const auto longs = at::TensorOptions().dtype(at::kLong);
  const at::Tensor tokens_n = at::empty({count}, longs), positions_n = at::empty({count}, longs);
  for (int64_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || tokens[i] >= m.config_.vocab_size) {
      throw Error(ErrorCode::kBadInput, "prompt",
                  "id " + std::to_string(tokens[i]) + " is outside the model's vocabulary");
    }
    tokens_n.mutable_data_ptr<int64_t>()[i] = tokens[i];
    positions_n.mutable_data_ptr<int64_t>()[i] = length_ + i;
  }
  const SpanTable span(std::vector<int32_t>{0, static_cast<int32_t>(count)});
  const int64_t width = m.config_.hidden_size;
  at::Tensor normed = m.Temporary(m.normed_, count, width), update = m.Temporary(m.update_, count, width);
  at::Tensor activation = m.Temporary(m.activation_, count, m.config_.intermediate_size);
  at::Tensor stream = m.TemporaryFp32(m.saved_[0].input, count, width), pending, pending_bias;
  m.EmbedInto(tokens_n, positions_n, stream);
  for (size_t i = 0; i < m.layers_.size(); ++i) {
    const Gpt2::Layer& layer = m.layers_[i];
    Gpt2::Views saved = m.ViewsOf(0, count);
    AddLayerNorm(m.numerics_, stream, pending, pending_bias, m.Norm(layer.attention_norm),
                 m.config_.rms_norm_eps, saved.input_nd, normed, saved.input_statistics);
    layer.qkv.linear.Forward(normed, saved.qkv);
    AddBias(m.numerics_, m.Value(layer.qkv.bias), saved.qkv);
    keys_[i].narrow(0, length_, count).copy_(saved.qkv.narrow(1, width, width));
    values_[i].narrow(0, length_, count).copy_(saved.qkv.narrow(1, 2 * width, width));
    if (length_ == 0) {
      PackedAttention(m.numerics_, shape, saved.qkv, span, saved.attention, saved.lse_hn);
    } else {
      for (int64_t row = 0; row < count; ++row) {
        at::Tensor out = saved.attention[row];
        DecodeAttention(m.numerics_, shape, saved.qkv[row], keys_[i], values_[i], length_ + row + 1, out);
      }
    }
    m.RunMlp(layer, saved, normed, activation, update);
    stream = saved.middle_nd;
    pending = update;
    pending_bias = m.Value(layer.down.bias);
  }
  length_ += count;
  at::Tensor last = m.TemporaryFp32(m.output_, 1, width), last_normed = m.Temporary(m.normed_, 1, width);
  LayerNormStatistics statistics = m.StatisticsOf(m.output_statistics_, 1);
  AddLayerNorm(m.numerics_, stream.narrow(0, count - 1, 1), pending.narrow(0, count - 1, 1), pending_bias,
               m.Norm(m.final_norm_), m.config_.rms_norm_eps, last, last_normed, statistics);
  at::Tensor logits = at::mm(last_normed, m.Head().compute.t());
  if (m.numerics_.emulated()) RoundInto(m.numerics_, logits, logits);
  return logits[0].to(at::kFloat);
}

ModelMemory Gpt2::memory() const {
  ModelMemory memory{.logits_bytes = loss_.workspace_bytes()};
  const auto add = [&](std::initializer_list<const Buffer*> buffers) {
    for (const Buffer* buffer : buffers) memory.activation_bytes += buffer->bytes();
  };
  for (const Saved& saved : saved_) {
    add({&saved.input, &saved.middle, &saved.input_statistics, &saved.middle_statistics, &saved.qkv,
         &saved.attention, &saved.lse, &saved.up});
  }
  add({&output_, &output_statistics_, &normed_, &update_, &activation_, &d_stream_, &d_short_, &d_normed_,
       &d_activation_, &d_attention_, &d_qkv_});
  return memory;
}

std::unique_ptr<Decoder> Gpt2::NewDecoder(int64_t max_tokens) {
  return std::make_unique<Gpt2Decoder>(this, max_tokens);
}

}  // namespace trainwright

#include "tests/model/toy_family.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lib/base/error.h"
#include "lib/model/initialize.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/embedding/embedding.h"
#include "lib/nn/norm/rms_norm.h"
#include "tests/spec/toy_recurrent_family.h"

namespace trainwright::test {
namespace {

/// Keeps of each sequence its state, and its tokens, so that it can go back to an earlier one.
class ToyDecoder final : public BodyDecoder {
 public:
  ToyDecoder(ToyBody* body, int64_t max_tokens, int64_t sequences)
      : body_(*body),
        max_tokens_(max_tokens),
        states_(static_cast<size_t>(sequences), body->NewState()),
        seen_(static_cast<size_t>(sequences)) {}

  at::Tensor AppendToEach(const std::vector<Continuation>& next, int64_t) override {
    std::vector<int64_t> tokens, last_rows;
    std::vector<int32_t> starts = {0};
    std::vector<ToyBody::State*> states;
    for (const auto& [sequence, appended] : next) {
      std::vector<int64_t>& seen = seen_[static_cast<size_t>(sequence)];
      TRAINWRIGHT_CHECK(!appended.empty() && length(sequence) + std::ssize(appended) <= max_tokens_);
      for (const int64_t token : appended) {
        if (token >= 0 && token < body_.config().vocab_size) continue;
        throw Error(ErrorCode::kBadInput, "prompt",
                    "id " + std::to_string(token) + " is outside the model's vocabulary");
      }
      seen.insert(seen.end(), appended.begin(), appended.end());
      tokens.insert(tokens.end(), appended.begin(), appended.end());
      last_rows.push_back(std::ssize(tokens) - 1);
      starts.push_back(static_cast<int32_t>(tokens.size()));
      states.push_back(&states_[static_cast<size_t>(sequence)]);
    }
    return Run(tokens, starts, states).index_select(0, Longs(last_rows));
  }

  void Fork(int64_t from, int64_t to, int64_t length) override {
    TRAINWRIGHT_CHECK(length <= this->length(from));
    std::vector<int64_t> seen = seen_[static_cast<size_t>(from)];
    ToyBody::State state = states_[static_cast<size_t>(from)];
    if (length < std::ssize(seen)) {
      seen.resize(static_cast<size_t>(length));
      state = body_.NewState();
      if (length > 0) Run(seen, {0, static_cast<int32_t>(length)}, {&state});
    }
    states_[static_cast<size_t>(to)] = std::move(state);
    seen_[static_cast<size_t>(to)] = std::move(seen);
  }

  int64_t length(int64_t sequence) const override { return std::ssize(seen_[static_cast<size_t>(sequence)]); }

 private:
  static at::Tensor Longs(const std::vector<int64_t>& values) {
    const at::Tensor tensor = at::empty({std::ssize(values)}, at::TensorOptions().dtype(at::kLong));
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
    return tensor;
  }

  at::Tensor Run(const std::vector<int64_t>& tokens, const std::vector<int32_t>& starts,
                 const std::vector<ToyBody::State*>& states) {
    const at::Tensor ids = Longs(tokens);
    return body_.ForwardFrom({ids, ids, ids, SpanTable(starts)}, states);  // it has no positions
  }

  ToyBody& body_;
  int64_t max_tokens_;
  std::vector<ToyBody::State> states_;
  std::vector<std::vector<int64_t>> seen_;
};

}  // namespace

/// A layer keeps its input and h.
class ToyBody::Pass final : public LayerPass {
 public:
  /// \param states of each span, or empty: h_0 is zero
  Pass(ToyBody* body, const DeviceInput& input, std::vector<State*> states)
      : body_(*body),
        numerics_(body->numerics()),
        rows_(input.num_tokens()),
        width_(body->config().hidden_size),
        input_(input),
        states_(std::move(states)) {}

  void Embed(at::Tensor& stream_nd) override {
    trainwright::Embed(body_.Value(body_.embedding_), input_.tokens_n, stream_nd);
  }

  void Forward(size_t layer, LayerViews& views, Residual& residual) override {
    views[0].copy_(residual.stream_nd);
    if (residual.update_nd.defined()) views[0].add_(residual.update_nd);
    RunRecurrence(layer, views);
    at::Tensor update_nd = body_.Temporary(body_.update_, rows_, width_);
    RoundInto(numerics_, views[1], update_nd);
    residual = {.stream_nd = views[0], .update_nd = update_nd};
  }

  at::Tensor Finish(const Residual& residual) override {
    at::Tensor output = body_.TemporaryFp32(body_.output_, rows_, width_),
               rstd = body_.TemporaryFp32(body_.output_rstd_, 1, rows_)[0],
               normed_nd = body_.Temporary(body_.normed_, rows_, width_);
    AddRmsNorm(numerics_, residual.stream_nd, residual.update_nd, body_.Value(body_.final_norm_),
               body_.config().rms_norm_eps, output, normed_nd, rstd);
    return normed_nd;
  }

  void BeginBackward(const at::Tensor& d_hidden_nd) override {
    d_stream_nd_ = body_.TemporaryFp32(body_.d_stream_, rows_, width_).zero_();
    at::Tensor d_weight = body_.Gradient(body_.final_norm_), unwanted;
    RmsNormBackward(numerics_, d_hidden_nd, body_.TemporaryFp32(body_.output_, rows_, width_),
                    body_.TemporaryFp32(body_.output_rstd_, 1, rows_)[0], body_.Value(body_.final_norm_),
                    d_stream_nd_, d_weight, unwanted);
  }

  void ForwardAgain(size_t layer, LayerViews& views) override {
    if (!body_.Keeps(Stays::kUnlessFull, layer)) RunRecurrence(layer, views);
  }

  void Backward(size_t layer, LayerViews& views, bool below) override {
    at::Tensor d_mixed_nd = body_.TemporaryFp32(body_.d_mixed_, rows_, width_);
    RunRecurrenceBackward(layer, views[1], d_mixed_nd);
    at::Tensor d_short_nd = body_.Temporary(body_.mixed_, rows_, width_), d_input_nd;
    RoundInto(numerics_, d_mixed_nd, d_short_nd);
    if (below) d_input_nd = body_.Temporary(body_.d_input_, rows_, width_);
    body_.layers_[layer].mix.Backward(d_short_nd, ShortInput(views[0]), d_input_nd);
    if (below) d_stream_nd_.add_(d_input_nd);
  }

  void EmbedBackward() override {
    at::Tensor d_table = body_.Gradient(body_.embedding_);
    trainwright::EmbedBackward(d_stream_nd_, input_.tokens_n, d_table);
  }

 private:
  at::Tensor ShortInput(const at::Tensor& input_nd) {
    at::Tensor short_nd = body_.Temporary(body_.normed_, rows_, width_);
    RoundInto(numerics_, input_nd, short_nd);
    return short_nd;
  }

  /// Calls function(span, row) with the rows of each span in order.
  template <typename Function>
  void ForRows(const Function& function) const {
    const std::vector<int32_t>& starts = input_.spans.starts;
    for (size_t span = 0; span + 1 < starts.size(); ++span) {
      for (int64_t row = starts[span]; row < starts[span + 1]; ++row) function(span, row);
    }
  }

  void RunRecurrence(size_t layer, LayerViews& views) {
    at::Tensor mixed = body_.Temporary(body_.mixed_, rows_, width_);
    body_.layers_[layer].mix.Forward(ShortInput(views[0]), mixed);
    if (mixed.is_meta()) return;
    const at::Tensor mixed_nd = mixed.to(at::kFloat), u = body_.Value(body_.layers_[layer].recurrence);
    const auto *x = mixed_nd.const_data_ptr<float>(), *weight = u.const_data_ptr<float>();
    auto* h = views[1].mutable_data_ptr<float>();
    const std::vector<float> zeros(static_cast<size_t>(width_), 0.0f);
    ForRows([&](size_t span, int64_t row) {
      const bool first = row == input_.spans.starts[span];
      const float* before = !first            ? h + (row - 1) * width_
                            : states_.empty() ? zeros.data()
                                              : (*states_[span])[layer].data();
      for (int64_t i = 0; i < width_; ++i)
        h[row * width_ + i] = std::tanh(x[row * width_ + i] + weight[i] * before[i]);
      if (!states_.empty() && row + 1 == input_.spans.starts[span + 1]) {
        std::copy_n(h + row * width_, width_, (*states_[span])[layer].data());
      }
    });
  }

  /// From the gradient of the stream, that of W x; adds that of u.
  void RunRecurrenceBackward(size_t layer, const at::Tensor& h_nd, at::Tensor& d_mixed_nd) {
    if (h_nd.is_meta()) return;
    const size_t recurrence = body_.layers_[layer].recurrence;
    const at::Tensor u = body_.Value(recurrence);
    at::Tensor d_u = body_.Gradient(recurrence);
    const auto *h = h_nd.const_data_ptr<float>(), *weight = u.const_data_ptr<float>(),
               *d_stream = d_stream_nd_.const_data_ptr<float>();
    auto *d_mixed = d_mixed_nd.mutable_data_ptr<float>(),
         *d_weight = d_u.defined() ? d_u.mutable_data_ptr<float>() : nullptr;
    const std::vector<int32_t>& starts = input_.spans.starts;
    for (size_t span = 0; span + 1 < starts.size(); ++span) {
      for (int64_t row = starts[span + 1]; row-- > starts[span];) {
        const bool first = row == starts[span], last = row + 1 == starts[span + 1];
        for (int64_t i = 0; i < width_; ++i) {
          const int64_t at = row * width_ + i;
          const float d_h = d_stream[at] + (last ? 0.0f : weight[i] * d_mixed[at + width_]);
          d_mixed[at] = d_h * (1 - h[at] * h[at]);
          if (d_weight != nullptr && !first) d_weight[i] += d_mixed[at] * h[at - width_];
        }
      }
    }
  }

  ToyBody& body_;
  const Numerics& numerics_;
  const int64_t rows_, width_;
  const DeviceInput& input_;
  const std::vector<State*> states_;
  at::Tensor d_stream_nd_;
};

const ModelConfig& ToyBody::CheckedConfig(const ModelConfig& config, at::Device device) {
  RequirePositive({{"vocab_size", config.vocab_size},
                   {"hidden_size", config.hidden_size},
                   {"num_hidden_layers", config.num_layers}});
  if (device.is_cuda()) throw Error(ErrorCode::kDevice, "model", "the toy family runs on the CPU only");
  return config;
}

ToyBody::ToyBody(const ModelConfig& config, const Numerics& numerics, at::Device device,
                 std::optional<uint64_t> seed, const FineTuning& tuning)
    : LayerStack(CheckedConfig(config, device), numerics, device,
                 {{.width = config.hidden_size}, {.stays = Stays::kUnlessFull, .width = config.hidden_size}},
                 tuning) {
  FlatParameters& parameters = this->parameters();
  const int64_t width = config.hidden_size;
  embedding_ = parameters.Add("toy.embed.weight", {config.vocab_size, width}, true);
  std::vector<std::pair<size_t, size_t>> indices;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    parameters.StartSegment();
    const std::string prefix = "toy.layers." + std::to_string(layer) + ".";
    const size_t mix = parameters.Add(prefix + "mix.weight", {width, width}, true);
    indices.emplace_back(mix, parameters.Add(prefix + "recurrence.weight", {width}, false));
  }
  parameters.StartSegment();
  final_norm_ = parameters.Add("toy.norm.weight", {width}, false);
  AddHead("lm_head.weight", embedding_);
  AllocateParameters();
  for (const auto& [mix, recurrence] : indices) layers_.push_back({Linear(&parameters, {mix}), recurrence});
  if (seed) {
    InitializeWeights(
        *seed, config, [](const std::string&) { return false; }, &parameters);
    const double start = config.own.As<ToyRecurrentFields>().recurrence_start;
    for (const Layer& layer : layers_) {
      at::Tensor u = parameters.all()[layer.recurrence].value;
      u.fill_(start);
    }
    parameters.RefreshCompute();
  }
}

std::unique_ptr<LayerPass> ToyBody::NewPass(const DeviceInput& input) {
  if (input.mask != AttentionMask::kCausal) {
    throw Error(ErrorCode::kUsage, "model", "a recurrence reads what comes before a token alone");
  }
  return std::make_unique<Pass>(this, input, std::vector<State*>());
}

at::Tensor ToyBody::ForwardFrom(const DeviceInput& input, const std::vector<State*>& states) {
  Pass pass(this, input, states);
  return RunForward(pass, input.spans, Keep::kNothing);
}

ToyBody::State ToyBody::NewState() const {
  return State(static_cast<size_t>(config().num_layers),
               std::vector<float>(static_cast<size_t>(config().hidden_size), 0.0f));
}

std::unique_ptr<BodyDecoder> ToyBody::NewDecoder(int64_t max_tokens, int64_t sequences) {
  return std::make_unique<ToyDecoder>(this, max_tokens, sequences);
}

int64_t ToyBody::activation_bytes() const {
  int64_t bytes = LayerStack::activation_bytes();
  for (const Buffer* buffer :
       {&output_, &output_rstd_, &normed_, &update_, &mixed_, &d_hidden_, &d_stream_, &d_mixed_, &d_input_}) {
    bytes += buffer->bytes();
  }
  return bytes;
}

void ToyBody::ReleaseActivations() {
  LayerStack::ReleaseActivations();
  for (Buffer* buffer :
       {&output_, &output_rstd_, &normed_, &update_, &mixed_, &d_hidden_, &d_stream_, &d_mixed_, &d_input_}) {
    *buffer = Buffer();
  }
}

std::shared_ptr<Body> MakeToyBody(const ModelConfig& config, const Numerics& numerics, at::Device device,
                                  std::optional<uint64_t> seed, const FineTuning& tuning) {
  return std::make_shared<ToyBody>(config, numerics, device, seed, tuning);
}

}  // namespace trainwright::test

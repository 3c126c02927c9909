#include "lib/model/language_model.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/model/device_input.h"
#include "lib/model/input_pieces.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/linear/quantized_product.h"

namespace trainwright {
namespace {

BodyInput WithoutDropout(const BodyInput& input) {
  BodyInput result = input;
  result.dropout.reset();
  return result;
}

bool HasLabels(const ModelInput& input) {
  const auto* labels = input.labels_n.const_data_ptr<int64_t>();
  return std::any_of(labels, labels + input.labels_n.numel(), [](int64_t label) { return label >= 0; });
}

/// How many of the pieces there are up to the last one that has labels: what comes after it teaches nothing.
/// At least 1.
size_t CountTeaching(const std::vector<ModelInput>& pieces) {
  size_t count = pieces.size();
  while (count > 1 && !HasLabels(pieces[count - 1])) --count;
  return count;
}

void AddTo(const LossSum& more, LossSum* sum) {
  sum->loss_nats += more.loss_nats;
  sum->num_labels += more.num_labels;
  sum->smoothing_nats += more.smoothing_nats;
  sum->z_loss_nats += more.z_loss_nats;
  if (!more.on_device.defined()) return;
  sum->on_device = sum->on_device.defined() ? sum->on_device.add(more.on_device) : more.on_device;
}

}  // namespace

at::Tensor Decoder::AppendToEach(const std::vector<Continuation>& next, int64_t rows) {
  return model_->LogitsOf(body_->AppendToEach(next, rows)).narrow(0, 0, static_cast<int64_t>(next.size()));
}

at::Tensor Decoder::LogitsBehind(int64_t sequence) const {
  const at::Tensor hidden_d = body_->ExportState(sequence).hidden_d;
  TRAINWRIGHT_CHECK(hidden_d.defined());
  const FlatParameters& parameters = std::as_const(*model_).parameters();
  return model_->LogitsOf(
      hidden_d.unsqueeze(0).to(parameters.values().device(), parameters.numerics().storage))[0];
}

LanguageModel::LanguageModel(std::shared_ptr<Body> body, ModelCode code)
    : body_(std::move(body)), code_(std::move(code)), loss_(body_->parameters().numerics()) {}

at::Tensor LanguageModel::LogitsOf(const at::Tensor& hidden_nd) const {
  const Numerics& numerics = parameters().numerics();
  at::Tensor logits = at::empty({hidden_nd.size(0), config().vocab_size}, hidden_nd.options());
  const Parameter& head = parameters().all()[body_->head()];
  if (head.quantized() && parameters().reads_quantized() && hidden_nd.is_cpu()) {
    MultiplyQuantized(numerics, {head.matrix.get()}, hidden_nd, logits);
  } else {
    Matmul(hidden_nd, HeadMatrix().t(), logits);
  }
  if (numerics.emulated()) RoundInto(numerics, logits, logits);
  return logits.to(at::kFloat);
}

at::Tensor LanguageModel::HeadMatrix() const {
  const Parameter& head = parameters().all()[body_->head()];
  TRAINWRIGHT_CHECK(!head.absent);
  if (!head.quantized()) return head.compute;
  return body_->parameters().ComputeMatrix(body_->head(), head.shape[0], head.shape[1]);
}

LossSum LanguageModel::Loss(const ModelInput& input) {
  CheckLabels(input.labels_n, input.tokens_n.numel(), config().vocab_size);
  loss_.set_product_chooser(parameters().product_chooser());
  LossSum sum;
  for (const ModelInput& piece : PiecesOf(input, tbptt_)) {
    const at::Tensor hidden_nd = body_->Forward(WithoutDropout(piece), Keep::kNothing);
    AddTo(loss_.Loss(hidden_nd, HeadMatrix(), piece.labels_n, piece.pin), &sum);
  }
  return sum;
}

LossSum LanguageModel::LossAndGradients(const ModelInput& input, const GradientScale& scale) {
  CheckLabels(input.labels_n, input.tokens_n.numel(), config().vocab_size);
  if (graphs_ != nullptr) {
    const auto passes = [this](const ModelInput& staged, const HeadLabels& labels, const GradientScale& own) {
      return LossAndGradientsOf(staged, labels, own);
    };
    if (const std::optional<LossSum> sum = graphs_->Run(input, scale, passes)) return *sum;
  }
  const std::vector<ModelInput> pieces = PiecesOf(input, tbptt_);
  const size_t count = CountTeaching(pieces);
  LossSum sum;
  for (size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    if (last && input.before_last_backward) input.before_last_backward();
    if (last || HasLabels(pieces[i])) {
      const HeadLabels labels = UploadHeadLabels(pieces[i].labels_n, pieces[i].weights_n,
                                                 parameters().values().device(), pieces[i].pin);
      AddTo(LossAndGradientsOf(pieces[i], labels, scale), &sum);
    } else {
      body_->Forward(pieces[i], Keep::kNothing);  // for its state
    }
  }
  return sum;
}

LossSum LanguageModel::LossAndGradientsOf(const ModelInput& piece, const HeadLabels& labels,
                                          const GradientScale& scale) {
  const at::Tensor hidden_nd = body_->Forward(piece, Keep::kForBackward);
  at::Tensor d_hidden_nd = body_->HiddenGradient(hidden_nd.size(0));
  loss_.set_product_chooser(parameters().product_chooser());
  const LossSum loss = loss_.LossAndGradients(hidden_nd, HeadMatrix(), labels, loss_terms_, scale,
                                              d_hidden_nd, HeadGradient());
  body_->Backward(piece, d_hidden_nd);
  return loss;
}

GradientTarget LanguageModel::HeadGradient() {
  FlatParameters& parameters = body_->parameters();
  const Parameter& head = parameters[body_->head()];
  if (!head.trainable) return {};
  return parameters.NextGradient(body_->head(), head.shape[0], head.shape[1]);
}

void LanguageModel::set_tbptt(int64_t tokens) {
  TRAINWRIGHT_CHECK(tokens >= 0);
  if (tokens > 0 && !body_->carries_state()) {
    throw Error(ErrorCode::kUsage, "--tbptt " + std::to_string(tokens),
                "needs a model that carries a state from token to token, as the family ten does");
  }
  tbptt_ = tokens;
}

at::Tensor LanguageModel::Logits(const BodyInput& input) {
  return LogitsOf(body_->Forward(WithoutDropout(input), Keep::kNothing));
}

std::unique_ptr<Decoder> LanguageModel::NewDecoder(int64_t max_tokens, int64_t sequences) {
  return std::make_unique<Decoder>(this, body_->NewDecoder(max_tokens, sequences));
}

ModelMemory LanguageModel::memory() const {
  return {.activation_bytes = body_->activation_bytes(), .logits_bytes = loss_.workspace_bytes()};
}

void LanguageModel::ReleaseActivations() {
  body_->ReleaseActivations();
  if (graphs_ != nullptr) graphs_->Clear();
  loss_ = LinearCrossEntropy(parameters().numerics());
}

void LanguageModel::set_loss_terms(const LossTerms& terms) {
  if (graphs_ != nullptr && terms != loss_terms_) graphs_->Clear();
  loss_terms_ = terms;
}

void LanguageModel::set_graphs(std::unique_ptr<GraphRecorder> recorder, const PassGraphsOptions& options) {
  TRAINWRIGHT_CHECK(offload_ == nullptr && parameters().gradient_buffer().is_whole());
  graphs_ = std::make_unique<PassGraphs>(
      body_.get(), std::move(recorder), [this] { return loss_.workspace_bytes(); }, options);
}

void LanguageModel::set_offload(OffloadStack* stack) {
  offload_ = stack;
  body_->set_offload(stack);
}

void LanguageModel::Offload(const OffloadChoice& choice, const std::string& folder) {
  FlatParameters& parameters = this->parameters();
  const at::Device device = parameters.values().device();
  if (choice.activations) {
    own_offload_ = MakeOffloadStack(device, folder);
    set_offload(own_offload_.get());
  }
  if (choice.gradients) {
    parameters.OffloadGradients(MakeOffloadStore(device, folder, parameters.gradient_buffer().size_bytes()));
  }
}

void LanguageModel::OffloadOnPaper(const OffloadChoice& choice, at::Device device) {
  if (choice.activations) {
    own_offload_ = OffloadStackOnPaper(device);
    set_offload(own_offload_.get());
  }
  if (choice.gradients) {
    const int64_t size_bytes = parameters().gradient_buffer().size_bytes();
    parameters().OffloadGradients(OffloadStoreOnPaper(device, size_bytes));
  }
}

int64_t LanguageModel::offloaded_bytes() const {
  const OffloadStore* store = parameters().gradient_buffer().store();
  return (offload_ != nullptr ? offload_->host_bytes() : 0) + (store != nullptr ? store->host_bytes() : 0);
}

OffloadCounts LanguageModel::offload_counts() const {
  OffloadCounts counts;
  if (offload_ != nullptr) counts += offload_->counts();
  if (const OffloadStore* store = parameters().gradient_buffer().store()) counts += store->counts();
  return counts;
}

}  // namespace trainwright

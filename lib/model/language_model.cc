#include "lib/model/language_model.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "lib/model/device_input.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/linear/matmul.h"

namespace trainwright {
namespace {

BodyInput WithoutDropout(const BodyInput& input) {
  BodyInput result = input;
  result.dropout.reset();
  return result;
}

}  // namespace

at::Tensor Decoder::AppendToEach(const std::vector<Continuation>& next, int64_t rows) {
  return model_->LogitsOf(body_->AppendToEach(next, rows)).narrow(0, 0, static_cast<int64_t>(next.size()));
}

LanguageModel::LanguageModel(std::shared_ptr<Body> body)
    : body_(std::move(body)), loss_(body_->parameters().numerics()) {}

at::Tensor LanguageModel::LogitsOf(const at::Tensor& hidden_nd) const {
  const Numerics& numerics = parameters().numerics();
  at::Tensor logits = at::empty({hidden_nd.size(0), config().vocab_size}, hidden_nd.options());
  Matmul(hidden_nd, HeadMatrix().t(), logits);
  if (numerics.emulated()) RoundInto(numerics, logits, logits);
  return logits.to(at::kFloat);
}

LossSum LanguageModel::Loss(const ModelInput& input) {
  CheckLabels(input.labels_n, input.tokens_n.numel(), config().vocab_size);
  const at::Tensor hidden_nd = body_->Forward(WithoutDropout(input), Keep::kNothing);
  return loss_.Loss(hidden_nd, HeadMatrix(), input.labels_n, input.pin);
}

LossSum LanguageModel::LossAndGradients(const ModelInput& input, const GradientScale& scale) {
  CheckLabels(input.labels_n, input.tokens_n.numel(), config().vocab_size);
  const at::Tensor hidden_nd = body_->Forward(input, Keep::kForBackward);
  at::Tensor d_hidden_nd = body_->HiddenGradient(hidden_nd.size(0));
  const LossSum loss =
      loss_.LossAndGradients(hidden_nd, HeadMatrix(), input.labels_n, loss_terms_, scale, d_hidden_nd,
                             body_->parameters().Gradient(body_->head()), input.pin, input.weights_n);
  body_->Backward(input, d_hidden_nd);
  return loss;
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
  loss_ = LinearCrossEntropy(parameters().numerics());
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

OffloadCounts LanguageModel::offload_counts() const {
  OffloadCounts counts;
  if (offload_ != nullptr) counts += offload_->counts();
  if (const OffloadStore* store = parameters().gradient_buffer().store()) counts += store->counts();
  return counts;
}

}  // namespace trainwright

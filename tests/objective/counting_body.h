/// A body that counts its passes and passes everything on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "lib/model/body.h"

namespace trainwright::test {

class CountingBody final : public Body {
 public:
  explicit CountingBody(std::shared_ptr<Body> body) : body_(std::move(body)) {}
  int forward_passes = 0, backward_passes = 0;
  int64_t decoded_sequences = 0;  ///< of the newest decoder

  const ModelConfig& config() const override { return body_->config(); }
  FlatParameters& parameters() override { return body_->parameters(); }
  const FlatParameters& parameters() const override { return std::as_const(*body_).parameters(); }
  size_t head() const override { return body_->head(); }
  std::optional<size_t> projection() const override { return body_->projection(); }
  at::Tensor Forward(const BodyInput& input, Keep keep) override {
    ++forward_passes;
    return body_->Forward(input, keep);
  }
  void Backward(const BodyInput& input, const at::Tensor& d_hidden_nd) override {
    ++backward_passes;
    body_->Backward(input, d_hidden_nd);
  }
  at::Tensor HiddenGradient(int64_t num_tokens) override { return body_->HiddenGradient(num_tokens); }
  std::unique_ptr<BodyDecoder> NewDecoder(int64_t max_tokens, int64_t sequences) override {
    decoded_sequences = sequences;
    return body_->NewDecoder(max_tokens, sequences);
  }
  int64_t activation_bytes() const override { return body_->activation_bytes(); }
  void ReleaseActivations() override { body_->ReleaseActivations(); }
  void set_activation_checkpointing(ActivationCheckpointing kind) override {
    body_->set_activation_checkpointing(kind);
  }
  void set_offload(OffloadStack* stack) override { body_->set_offload(stack); }
  void set_on_segment_gradients_done(SegmentListener listener) override {
    body_->set_on_segment_gradients_done(std::move(listener));
  }

 private:
  std::shared_ptr<Body> body_;
};

}  // namespace trainwright::test

/// What computes the family of tests/spec/toy_recurrent_family.h, which no tool knows: to show what a family
/// has to supply and what a decoder may keep.
///
/// A layer is h_t = tanh(W x_t + u * h_{t-1}), element by element in u, with h_0 = 0 at the start of each
/// span, and adds h to the stream; an RMSNorm follows the last. \source Elman 1990, "Finding Structure in
/// Time" (the recurrence)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/model/layer_stack.h"
#include "lib/nn/linear/linear.h"

namespace trainwright::test {

/// Runs on the CPU, and as shapes alone on torch's meta device.
class ToyBody final : public LayerStack {
 public:
  /// The h of each layer after the last token of a sequence, fp32 [D].
  using State = std::vector<std::vector<float>>;

  /// Arguments as of MakeBody. Of the config it reads vocabulary, width, number of layers, tied embeddings
  /// the norm's epsilon and ToyRecurrentFields.
  /// \throws Error{kUsage} on sizes that make no model; Error{kDevice} on a GPU
  ToyBody(const ModelConfig& config, const Numerics& numerics, at::Device device,
          std::optional<uint64_t> seed, const FineTuning& tuning = {});

  at::Tensor HiddenGradient(int64_t num_tokens) override {
    return Temporary(d_hidden_, num_tokens, config().hidden_size);
  }
  std::unique_ptr<BodyDecoder> NewDecoder(int64_t max_tokens, int64_t sequences) override;
  int64_t activation_bytes() const override;
  void ReleaseActivations() override;
  State NewState() const;
  /// Forward, keeping nothing, of spans that continue others.
  /// \param states of each span; those after it when it returns
  at::Tensor ForwardFrom(const DeviceInput& input, const std::vector<State*>& states);

 protected:
  std::unique_ptr<LayerPass> NewPass(const DeviceInput& input) override;

 private:
  class Pass;
  struct Layer {
    Linear mix;
    size_t recurrence;
  };

  static const ModelConfig& CheckedConfig(const ModelConfig& config, at::Device device);

  size_t embedding_ = 0, final_norm_ = 0;
  std::vector<Layer> layers_;
  Buffer output_, output_rstd_, normed_, update_, mixed_, d_hidden_, d_stream_, d_mixed_, d_input_;
};

/// As the constructor.
std::shared_ptr<Body> MakeToyBody(const ModelConfig& config, const Numerics& numerics, at::Device device,
                                  std::optional<uint64_t> seed, const FineTuning& tuning = {});

}  // namespace trainwright::test

/// TEN: a recurrence with diagonal complex state in place of attention. A layer adds to the stream x
///   sigmoid(W_g xn + b_g) * W_out R c,    xn = norm(x),
///   c_t = lambda c_{t-1} + gamma beta_t,  beta = silu(conv(W_in xn + sigmoid(m) P c of the layer below)),
/// and then W_down silu(W_up norm(x)); what of beta's terms, and whether lambda follows W_s xn, is the
/// config's choice (lib/spec/ten_fields.h). State, taps and windows begin again in each span.
/// lib/spec/ten_family.h has the tensors' names, lib/nn/scan/ the mathematics.
///
/// Determinism: bits depend on the micro-batch alone, and those of a span on its own rows where those of a
/// GEMM do (lib/nn/linear/matmul.h); beyond 8192 rows the MLP runs in slices.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/model/layer_stack.h"
#include "lib/model/recurrent_state.h"
#include "lib/model/ten_layer.h"
#include "lib/model/ten_multi_scale.h"
#include "lib/spec/ten_fields.h"

namespace trainwright {

class Ten final : public LayerStack {
 public:
  /// Arguments as of MakeModel.
  /// \throws Error{kUsage} on sizes that make no model, by the name of the field
  Ten(const ModelConfig& config, const Numerics& numerics, at::Device device, std::optional<uint64_t> seed,
      const FineTuning& tuning = {});

  bool carries_state() const override { return true; }
  at::Tensor HiddenGradient(int64_t num_tokens) override;
  std::unique_ptr<BodyDecoder> NewDecoder(int64_t max_tokens, int64_t sequences) override;
  int64_t activation_bytes() const override;
  void ReleaseActivations() override;

  /// That of an empty sequence: zeros.
  LayerStates NewState() const;
  /// Forward, keeping nothing, of spans that go on from a state each.
  /// \param states of the first spans or all; those after them when it returns. Null, or none: from nothing,
  ///     and nobody asks
  at::Tensor ForwardFrom(const DeviceInput& input, const std::vector<LayerStates*>& states);

  const TenFields& fields() const { return fields_; }

 protected:
  std::unique_ptr<LayerPass> NewPass(const DeviceInput& input) override;

 private:
  class Pass;
  class CellPass;
  /// Temporaries of a pass.
  enum class Scratch {
    kOutput,
    kOutputStatistics,
    kNormed,
    kUpdate,
    kCoupled,
    kShift,
    kLambda,
    kMixed,
    kMlp,
    kActivation,
    kLastStates,
    kLastInputs,
    kDStream,
    kDShort,
    kDNormed,
    kDOther,
    kDActivation,
    kDCoupled,
    kDStates,
    kDInputs,
    kDMemory,
    kDLambda,
    kCount
  };

  static const ModelConfig& CheckedConfig(const ModelConfig& config);
  void Initialize(uint64_t seed);
  at::Tensor Get(Scratch which, int64_t rows, int64_t columns) {
    return Temporary(scratch_[static_cast<size_t>(which)], rows, columns);
  }
  at::Tensor GetFp32(Scratch which, int64_t rows, int64_t columns) {
    return TemporaryFp32(scratch_[static_cast<size_t>(which)], rows, columns);
  }

  TenFields fields_;
  size_t tokens_ = 0;  ///< table of embeddings
  TenNorm final_norm_;
  std::vector<TenLayer> layers_;
  std::optional<TenMultiScale> multi_scale_;
  std::array<Buffer, static_cast<size_t>(Scratch::kCount)> scratch_;
  /// Of the last Forward: where its first span began, unless from nothing, and where its last span ended.
  LayerStates starts_, ends_;
};

}  // namespace trainwright

/// Low-rank adapters beside frozen weights: y += s B (A dropout(x)), s = alpha / r.
///
/// A [r, in] and B [out, r] are trainable parameters of the model's flat buffer; all that was there before
/// them is frozen. A starts Kaiming-uniform with a = sqrt 5, which is uniform in +-1/sqrt(in), and B zero,
/// so that the first forward pass is the base's. The GEMMs run in the storage type with fp32 sums; A x and
/// B^T dy are scaled in fp32 and rounded once. Nothing is kept for the backward pass: A x is computed again.
/// \source Hu et al. 2021, arXiv:2106.09685; the start of A and the names are peft's
///
/// With LoraOptions::dora the outputs have scales besides (dora_scales.h), which Linear multiplies once
/// base and adapters are added; dropout is then of the adapters' inputs alone, too.
///
/// Dropout is a pure function of seed, step, the token's place in the step, module and column
/// (lib/base/rng.h), so neither a resumed run nor threads nor the split of a step into micro-batches and
/// processes change it. Scratch is shared by all modules. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/nn/buffer.h"
#include "lib/nn/linear/dora_scales.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/spec/lora_options.h"
#include "lib/spec/lora_targets.h"

namespace trainwright {

/// Where the tokens of a micro-batch lie in their optimizer step, for the dropout.
struct DropoutPosition {
  /// From a row of the micro-batch on, and to that of the next one, the rows are tokens of one sample.
  struct Sample {
    int64_t index = 0;  ///< among all samples of the step
    int64_t row = 0;    ///< of the first of these tokens
    int64_t token = 0;  ///< which of the sample it is
  };
  uint64_t seed = 0;
  int64_t step = 0;
  std::vector<Sample> samples;  ///< by rows, the first at row 0

  /// The number of each row as Dropout takes it: 2^26 for each sample before it in the step, and the tokens
  /// before it in its own.
  /// \returns int64 [N] on the host
  at::Tensor RowNumbers(int64_t num_tokens) const;
};

/// A weight's adapter.
struct LoraModule {
  std::string name;  ///< the weight's, without ".weight"
  size_t weight = 0, a = 0, b = 0;
  size_t magnitude = 0;  ///< of DoRA
};

/// Whether a parameter is a matrix or the magnitude of an adapter, by its name.
bool IsAdapterParameter(const Parameter& parameter);

/// The columns of a fused GEMM's output that belong to one module.
struct LoraColumns {
  size_t module = 0;  ///< of LoraAdapters::modules
  int64_t begin = 0, size = 0;
};

/// The matrices of a model's layers that are adaptable: what can have adapters.
std::vector<size_t> LayerMatrices(const FlatParameters& parameters);
/// The matrices of a model's layers that GEMMs read: these, and those `of_products` that can have none.
std::vector<size_t> ProductMatrices(const FlatParameters& parameters);
/// Those that `targets` of LoraOptions names.
/// \throws Error{kUsage} listing the names there are
std::vector<size_t> LoraTargets(const std::string& targets, const FlatParameters& parameters,
                                const LoraBlocks& blocks);

class LoraAdapters {
 public:
  /// Freezes all of `parameters`, and adds A and B of every target, and of DoRA the magnitudes [out].
  /// Before Allocate. Their names are those of the weights with ".lora_A.weight", ".lora_B.weight" and
  /// ".lora_magnitude_vector" for ".weight".
  /// \param blocks of the model's family
  /// \throws Error{kUsage} on unknown targets, or options out of range
  LoraAdapters(const LoraOptions& options, const LoraBlocks& blocks, FlatParameters* parameters);
  LoraAdapters(const LoraAdapters&) = delete;
  LoraAdapters& operator=(const LoraAdapters&) = delete;

  const LoraOptions& options() const { return options_; }
  const std::vector<LoraModule>& modules() const { return modules_; }
  /// The module of a weight, if it has an adapter.
  std::optional<size_t> ModuleOf(size_t weight) const;
  /// Of DoRA, once the parameters are allocated: the scales.
  void AllocateScales(const FlatParameters& parameters);
  /// Of DoRA: the scales of the parameters' values. FlatParameters sees to it when these change.
  void RefreshScales(FlatParameters& parameters);
  /// Whether outputs have scales.
  bool scales() const { return dora_.has_value(); }
  /// A pure function of seed and module name; magnitudes are the norms of the base's rows.
  void Initialize(uint64_t seed, FlatParameters* parameters) const;
  /// Switches dropout on for the passes that follow.
  /// \param num_tokens, device of their micro-batch
  /// \param pin as of Upload
  void StartDropout(const DropoutPosition& position, int64_t num_tokens, at::Device device, bool pin = true);
  void StopDropout() { dropout_.reset(); }

  /// Adds the adapters' part to y.
  /// \param x, y storage type [N, in], [N, out]
  /// \param columns of y, in order
  /// \param parameters those of the constructor, allocated
  void Forward(FlatParameters& parameters, const std::vector<LoraColumns>& columns, const at::Tensor& x,
               at::Tensor& y);
  /// Adds the gradients of A and B, and the adapters' part to d_x unless that is undefined.
  void Backward(FlatParameters& parameters, const std::vector<LoraColumns>& columns, const at::Tensor& dy,
                const at::Tensor& x, at::Tensor& d_x);
  /// Of DoRA: multiplies outputs by their scales.
  /// \param y storage type [N, out]
  void Scale(const std::vector<LoraColumns>& columns, at::Tensor& y) const;
  /// Where a layer's outputs before they are scaled can be computed again; good until the next call.
  at::Tensor Unscaled(const at::Tensor& x, int64_t columns, at::ScalarType type);
  /// The backward pass of Scale: adds the gradients of the magnitudes.
  /// \param dy storage type [N, out], rounded
  /// \param outputs storage type [N, out], contiguous: those before Scale; becomes their gradient, rounded
  void ScaleBackward(FlatParameters& parameters, const std::vector<LoraColumns>& columns,
                     const at::Tensor& dy, at::Tensor& outputs);
  /// What the scratch has grown to, and the scales take.
  int64_t workspace_bytes() const;

 private:
  /// Columns whose A read the same input and lie side by side: one GEMM.
  struct Group {
    size_t first, count;  ///< of the columns
  };
  std::vector<Group> GroupsOf(const FlatParameters& parameters,
                              const std::vector<LoraColumns>& columns) const;
  bool drops() const { return dropout_.has_value(); }
  /// The input as a module sees it: x itself, or with elements dropped.
  at::Tensor InputOf(const FlatParameters& parameters, const LoraModule& module, const at::Tensor& x);
  /// Where a GEMM is made that Scaled then finishes: fp32, or on a device its result, since GEMMs there
  /// scale their own sums and round them once.
  at::Tensor ForProduct(const FlatParameters& parameters, const at::Tensor& x, int64_t columns,
                        Buffer& result);
  /// `out` = a b, of ForProduct; on a device times s.
  void Multiply(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) const;
  /// s a b, rounded to the storage type.
  at::Tensor Scaled(const FlatParameters& parameters, at::Tensor& product, Buffer& result);
  void Drop(const FlatParameters& parameters, const LoraModule& module, const at::Tensor& x,
            at::Tensor& out) const;

  LoraOptions options_;
  std::vector<LoraModule> modules_;
  struct DropoutPass {
    uint64_t seed;
    int64_t step;
    at::Tensor rows_n;
  };
  std::optional<DropoutPass> dropout_;
  Buffer product_, down_, d_down_, dropped_, d_dropped_;
  std::optional<DoraScales> dora_;
  Buffer unscaled_;
};

}  // namespace trainwright

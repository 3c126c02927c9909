/// All parameters of a model: those that are trained in one aligned fp32 buffer, their gradients in another,
/// and the copy in the compute type; those that are frozen in the type that the products read, alone.
///
/// Every parameter starts on a 16-element boundary of its buffer and the order is fixed by the calls of Add,
/// because a shifted parameter changes the bits of vectorised reductions. One buffer makes the optimizer one
/// call and a checkpoint one write. A frozen matrix takes the storage type and a frozen vector (a norm's
/// weight, a bias) fp32, or a frozen matrix is kept in 4 bits and read through a scratch matrix: none of them
/// has a master, a gradient or moments. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/buffer.h"
#include "lib/nn/linear/nf4.h"
#include "lib/nn/parameters/gradient_buffer.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// How model files hold a parameter. kTransposed: a matrix as [in, out], transformers' Conv1D. kHeadsOutside:
/// the rows of a fused projection as [heads, 3, K], which here are [3, heads, K].
enum class FileOrder { kSame, kTransposed, kHeadsOutside };

struct Parameter {
  std::string name;  ///< Hugging Face's tensor name
  std::vector<int64_t> shape;
  FileOrder file_order = FileOrder::kSame;
  int64_t num_heads = 0;  ///< of kHeadsOutside
  bool decay = true;      ///< weight decay applies (matrices yes, norms and biases no)
  bool trainable = true;
  bool quantized = false;  ///< kept in NF4: `value` and `compute` are undefined, ComputeMatrix reads it
  int64_t offset = 0;      ///< in its buffer, in elements, a multiple of 16
  int64_t size = 0;        ///< elements
  size_t segment = 0;      ///< see StartSegment
  at::Tensor value;        ///< fp32 master, a view into values(); of a frozen one `compute`
  at::Tensor
      gradient;  ///< fp32, a view into gradients(); undefined of a frozen one, and where they are offloaded
  /// What forward and backward read: `value` itself under fp32, else the short-type copy.
  at::Tensor compute;
  Nf4Tensor nf4 = {};  ///< of a quantised one
};

/// A tensor that files of a model's family always hold though this model has none: zeros.
struct ZeroTensor {
  std::string name;
  std::vector<int64_t> shape;
};

class LoraAdapters;

/// A tensor that files of a model's family may hold though it is a parameter's copy: a tied head.
struct TensorAlias {
  std::string name;
  size_t parameter = 0;  ///< index
};

class FlatParameters {
 public:
  /// Declares a parameter and returns its index. Before Allocate.
  size_t Add(std::string name, std::vector<int64_t> shape, bool decay);
  /// What is added from here on is worked on together, a layer say, and apart from what was added before: the
  /// segments of a GradientBuffer. Before Allocate.
  void StartSegment() { ++segment_; }
  /// Declares a tensor that files hold and the model does not.
  void AddZeros(std::string name, std::vector<int64_t> shape);
  /// Declares another name of a parameter.
  void AddAlias(std::string name, size_t index);
  /// Excludes a parameter from training. Before Allocate.
  void Freeze(size_t index);
  /// Freezes a matrix and keeps it in NF4. Before Allocate.
  void Quantize(size_t index);
  /// Allocates the values, zeroed, and the compute copy.
  void Allocate(const Numerics& numerics, at::Device device);
  const std::vector<Parameter>& all() const { return parameters_; }
  const std::vector<ZeroTensor>& zeros() const { return zeros_; }
  const std::vector<TensorAlias>& aliases() const { return aliases_; }
  Parameter& operator[](size_t index) { return parameters_[index]; }
  const Parameter* Find(const std::string& name) const;
  at::Tensor& values() { return values_; }  ///< fp32 [padded elements of the trainable parameters]
  const at::Tensor& values() const { return values_; }
  /// Same shape as values(); allocated and zeroed at the first call, so that inference does without. Not of
  /// offloaded ones.
  at::Tensor& gradients();
  /// The gradient of a parameter, of its shape; undefined of a frozen one. Offloaded, it is good until that
  /// of another segment's is asked for.
  /// \throws Error{kIo} offloaded
  at::Tensor Gradient(size_t index);
  /// Puts the gradients of the segments that are not worked on into a store of
  /// gradient_buffer().size_bytes(). Before the first use of gradients.
  void OffloadGradients(std::unique_ptr<OffloadStore> store) { gradients_.Offload(std::move(store)); }
  /// Whoever reads all gradients does so part after part: see GradientBuffer::ForEachPart.
  void ForEachGradientPart(const std::function<void(int64_t begin, at::Tensor& gradients)>& visit);
  const GradientBuffer& gradient_buffer() const { return gradients_; }
  /// The low-rank adapters among the parameters; none at first.
  LoraAdapters* adapters() const { return adapters_.get(); }
  void set_adapters(std::shared_ptr<LoraAdapters> adapters) { adapters_ = std::move(adapters); }
  /// Whether a parameter begins where another ends, without padding between them.
  bool Adjoin(size_t first, size_t second) const;
  /// What forward and backward read of the matrix that begins at a parameter: parameters that adjoin (the
  /// three projections of attention, say) read as one. Of quantised ones the result is the scratch matrix,
  /// good until the next call.
  at::Tensor ComputeMatrix(size_t index, int64_t rows, int64_t columns);
  /// The gradient of the same, of trainable parameters.
  at::Tensor GradientMatrix(size_t index, int64_t rows, int64_t columns);
  at::Tensor& compute() { return compute_; }  ///< of the trainable parameters; values() itself under fp32
  int64_t count() const { return count_; }    ///< elements of all parameters, padding not counted
  int64_t trainable_count() const;            ///< of those, elements that are trained
  int64_t frozen_bytes() const;               ///< that the frozen parameters take, scratch not counted
  int64_t scratch_bytes() const { return scratch_.bytes(); }  ///< of dequantised matrices
  /// Sets a parameter, rounded as its buffer stores it; the compute copy of a trainable one is
  /// RefreshCompute's to follow.
  /// \param value of the parameter's shape, any floating type
  void Assign(size_t index, const at::Tensor& value);
  const Numerics& numerics() const { return numerics_; }  ///< as given to Allocate
  void ZeroGradients();
  /// Recasts the compute copy from the master; after every change of values().
  void RefreshCompute();

 private:
  bool offloaded() const { return gradients_.store() != nullptr; }
  at::Tensor GradientView(int64_t offset, int64_t size);
  /// Where the products read a parameter.
  const at::Tensor& ComputeBuffer(const Parameter& parameter) const;

  std::vector<Parameter> parameters_;
  std::vector<ZeroTensor> zeros_;
  std::vector<TensorAlias> aliases_;
  at::Tensor values_, compute_;  // of the trainable parameters
  GradientBuffer gradients_;
  at::Tensor frozen_matrices_, frozen_vectors_;  // storage type, fp32
  Buffer scratch_;
  std::shared_ptr<LoraAdapters> adapters_;
  int64_t count_ = 0;
  size_t segment_ = 0;
  Numerics numerics_;
};

}  // namespace trainwright

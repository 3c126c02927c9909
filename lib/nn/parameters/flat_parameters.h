/// All parameters of a model: those that are trained in one aligned fp32 buffer, their gradients in another,
/// and the copy in the compute type; those that are frozen in the type that the GEMMs read, alone.
///
/// Every parameter starts on a 16-element boundary of its buffer and the order is fixed by the calls of Add,
/// because a shifted parameter changes the bits of vectorised reductions. One buffer makes the optimizer one
/// call and a checkpoint one write. A frozen matrix (or several, one after the other) takes the storage type
/// and a frozen vector (a norm's weight, a bias) fp32, or a frozen matrix is kept quantised and is read as it
/// lies, or through a scratch matrix: none of them has a master, a gradient or moments.
///
/// Sharded over ranks, a rank updates its shard alone (ShardLayout). Beside a compute copy it then has no
/// other masters: values() is its shard, and what the passes read in fp32 is a copy of its own. Gradients may
/// be sharded, too: those of its shard are what others and itself have given it. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/buffer.h"
#include "lib/nn/linear/quantized_matrix.h"
#include "lib/nn/parameters/gradient_buffer.h"
#include "lib/nn/parameters/gradient_target.h"
#include "lib/nn/precision.h"
#include "lib/spec/shard_layout.h"
#include "lib/spec/weight_format.h"

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
  double rate = 1;        ///< what an optimizer's learning rate is multiplied by
  bool trainable = true;
  bool adaptable = true;  ///< of a matrix of a layer: whether it can have an adapter, or be quantised
  /// Of a matrix; other than kPlain `value` and `compute` are undefined, and `matrix` has the weights.
  WeightFormat format = WeightFormat::kPlain;
  /// Of a head that nothing reads: files may lack it. Then `absent`: it is zeros, and files that are written
  /// lack it, too.
  bool may_lack = false, absent = false;
  /// Whether the passes read it through ComputeMatrix alone: then a rank needs no more of its master than its
  /// shard.
  bool of_products = false;
  int64_t offset = 0;  ///< in its buffer, in elements, a multiple of 16
  int64_t size = 0;    ///< elements
  size_t segment = 0;  ///< see StartSegment
  /// fp32 master, a view into values(); of a frozen one `compute`. Where masters are sharded a copy of it, or
  /// `of_products` undefined.
  at::Tensor value;
  /// fp32, a view into gradients(), good once that was called; undefined of a frozen one, and where they are
  /// offloaded.
  at::Tensor gradient;
  /// What forward and backward read: `value` itself under fp32, else the reduced-precision copy.
  at::Tensor compute;
  std::shared_ptr<QuantizedMatrix> matrix = nullptr;  ///< of a quantised one; copies share it
  bool quantized() const { return format != WeightFormat::kPlain; }
};

/// A tensor that files of a model's family always hold though this model has none: zeros.
struct ZeroTensor {
  std::string name;
  std::vector<int64_t> shape;
};

class LoraAdapters;
class ProductChooser;

/// A tensor that files of a model's family may hold though it is a parameter's copy: a tied head.
struct TensorAlias {
  std::string name;
  size_t parameter = 0;  ///< index
};

class FlatParameters {
 public:
  /// Declares a parameter and returns its index. Before Allocate.
  /// \param rate above 0
  size_t Add(std::string name, std::vector<int64_t> shape, bool decay, double rate = 1);
  /// What is added from here on is worked on together, a layer say, and apart from what was added before: the
  /// segments of a GradientBuffer. Before Allocate.
  void StartSegment() { ++segment_; }
  /// Declares a tensor that files hold and the model does not.
  void AddZeros(std::string name, std::vector<int64_t> shape);
  /// Declares another name of a parameter.
  void AddAlias(std::string name, size_t index);
  /// Excludes a parameter from training. Before Allocate.
  void Freeze(size_t index);
  /// Freezes a matrix and keeps it in a format other than kPlain. Before Allocate.
  void Quantize(size_t index, WeightFormat format);
  /// Allocates the values, zeroed, and the compute copy.
  void Allocate(const Numerics& numerics, at::Device device);
  const std::vector<Parameter>& all() const { return parameters_; }
  const std::vector<ZeroTensor>& zeros() const { return zeros_; }
  const std::vector<TensorAlias>& aliases() const { return aliases_; }
  Parameter& operator[](size_t index) { return parameters_[index]; }
  const Parameter* Find(const std::string& name) const;
  /// fp32 [padded elements of the trainable parameters]; where masters are sharded [of the shard].
  at::Tensor& values() { return values_; }
  const at::Tensor& values() const { return values_; }
  /// Leaves this rank its shard of what several ranks update. After the values were set, before gradients or
  /// an optimizer are made.
  /// \param layout of as many elements as the trainable parameters have
  /// \param gives_gradients_away see GradientBuffer::GiveAway
  void Shard(const ShardLayout& layout, bool gives_gradients_away);
  /// Null where they are not sharded.
  const ShardLayout* shard() const { return shard_ ? &*shard_ : nullptr; }
  bool masters_sharded() const { return shard_ && numerics_.precision != Precision::kFp32; }
  /// Padded elements of the trainable parameters, on all ranks together.
  int64_t elements() const { return shard_ ? shard_->elements() : values_.numel(); }
  /// Of these, which this rank updates: all, or those of its shard.
  int64_t own_elements() const { return shard_ ? shard_->size() : values_.numel(); }
  /// Where an element that this rank updates lies in tensors of own_elements().
  int64_t PlaceOf(int64_t element) const { return shard_ ? shard_->PlaceOf(element) : element; }
  /// fp32 masters that this rank updates and that lie side by side; sharded: in one block.
  at::Tensor Masters(int64_t begin, int64_t size);
  /// Where masters are sharded: elements whose masters the passes read, copies of which each rank has in
  /// fp32.
  struct Fp32Copy {
    int64_t begin = 0, size = 0;  ///< in the flat buffer
    at::Tensor values;            ///< fp32 [size]
  };
  const std::vector<Fp32Copy>& fp32_copies() const { return fp32_copies_; }
  /// Where gradients are sharded: fp32 [of the shard], allocated at the first call.
  at::Tensor& gradient_shard();
  GradientBuffer& gradient_buffer() { return gradients_; }
  /// Same shape as values(); allocated and zeroed at the first call, so that inference does without. Not of
  /// offloaded ones, or of those that are sharded.
  at::Tensor& gradients();
  /// The gradient of a parameter, of its shape; undefined of a frozen one. Offloaded, it is good until that
  /// of another segment's is asked for.
  /// \throws Error{kIo} offloaded
  at::Tensor Gradient(size_t index);
  /// Puts the gradients of the segments that are not worked on into a store of
  /// gradient_buffer().size_bytes(). Before the first use of gradients.
  void OffloadGradients(std::unique_ptr<OffloadStore> store) { gradients_.Offload(std::move(store)); }
  /// Whoever reads all gradients does so part after part: see GradientBuffer::ForEachPart. Sharded, the parts
  /// are the pieces of this rank's shard.
  void ForEachGradientPart(const std::function<void(int64_t begin, at::Tensor& gradients)>& visit);
  const GradientBuffer& gradient_buffer() const { return gradients_; }
  /// The low-rank adapters among the parameters; none at first.
  LoraAdapters* adapters() const { return adapters_.get(); }
  void set_adapters(std::shared_ptr<LoraAdapters> adapters) { adapters_ = std::move(adapters); }
  /// Whether GEMMs on a CPU read quantised matrices as they lie, and not through a scratch matrix: faster for
  /// few rows, with other bits. Of a model that is only read; a run that trains keeps the bits it had.
  bool reads_quantized() const { return reads_quantized_; }
  void set_reads_quantized(bool reads) { reads_quantized_ = reads; }
  /// Chooses the kernels of the GEMMs with these parameters on a GPU; null: the library's best guesses.
  ProductChooser* product_chooser() const { return product_chooser_.get(); }
  void set_product_chooser(std::shared_ptr<ProductChooser> chooser) { product_chooser_ = std::move(chooser); }
  /// Whether a parameter begins where another ends, without padding between them.
  bool Adjoin(size_t first, size_t second) const;
  /// What forward and backward read of the matrix that begins at a parameter: parameters that adjoin (the
  /// three projections of attention, say) read as one. Of quantised ones the result is the scratch matrix,
  /// good until the next call.
  at::Tensor ComputeMatrix(size_t index, int64_t rows, int64_t columns);
  /// The gradient of the same, of trainable parameters.
  at::Tensor GradientMatrix(size_t index, int64_t rows, int64_t columns);
  /// The same for a GEMM that puts all of it at once. Whoever asks does so.
  GradientTarget NextGradient(size_t index, int64_t rows, int64_t columns);
  at::Tensor& compute() { return compute_; }  ///< of the trainable parameters; values() itself under fp32
  const at::Tensor& compute() const { return compute_; }
  int64_t count() const { return count_; }  ///< elements of all parameters, padding not counted
  int64_t trainable_count() const;          ///< of those, elements that are trained
  int64_t frozen_bytes() const;             ///< that the frozen parameters take, scratch not counted
  int64_t scratch_bytes() const { return scratch_.bytes(); }  ///< of dequantised matrices
  /// Sets a parameter, which is not absent then, rounded as its buffer stores it; the compute copy of a
  /// trainable one is RefreshCompute's to follow.
  /// \param value of the parameter's shape, any floating type
  void Assign(size_t index, const at::Tensor& value);
  /// What Assign makes of rows of a parameter that is not quantised.
  /// \param value on the host, contiguous, any floating type
  /// \returns a tensor of its own
  at::Tensor AsAssigned(const Parameter& parameter, const at::Tensor& value) const;
  const Numerics& numerics() const { return numerics_; }  ///< as given to Allocate
  void ZeroGradients();
  /// Recasts the compute copy from the master; after every change of values(). Where masters are sharded: of
  /// this rank's shard, the rest is its owners' to send. Then RefreshScales, unless they are sharded.
  void RefreshCompute();
  /// Computes again what adapters derive from all values; sharded, once the owners have sent theirs.
  void RefreshScales();

 private:
  /// Whether its buffer is of a wider type than the values that Assign puts there.
  bool RoundsAssigned(const Parameter& parameter) const;
  at::Tensor GradientView(int64_t offset, int64_t size);
  /// The compute copy of RefreshCompute.
  void RoundValues();
  /// Where gradients are whole, makes those that there are not yet.
  void MakeGradients();
  /// Where the GEMMs read a parameter.
  const at::Tensor& ComputeBuffer(const Parameter& parameter) const;

  std::vector<Parameter> parameters_;
  std::vector<ZeroTensor> zeros_;
  std::vector<TensorAlias> aliases_;
  at::Tensor values_, compute_;  // of the trainable parameters
  GradientBuffer gradients_;
  at::Tensor frozen_matrices_, frozen_vectors_;  // storage type, fp32
  Buffer scratch_;
  std::shared_ptr<LoraAdapters> adapters_;
  bool reads_quantized_ = false;
  std::shared_ptr<ProductChooser> product_chooser_;
  std::optional<ShardLayout> shard_;
  std::vector<Fp32Copy> fp32_copies_;
  at::Tensor gradient_shard_;
  int64_t count_ = 0;
  size_t segment_ = 0;
  Numerics numerics_;
};

}  // namespace trainwright

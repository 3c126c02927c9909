/// Lossless coding of one tensor: man/trainwright-codec.5.
///
/// A coded tensor is a prologue, blocks that are decoded one by one, and an index of their sizes. Its bytes
/// depend on the tensor, the level and the library versions alone, not on threads or the processor. It is
/// never larger than the tensor by more than CodedTensorBound() says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/codec/element_type.h"
#include "lib/codec/tensor_content.h"

namespace trainwright {

/// What the encoder spends. Each level is decoded at about the same speed.
enum class CodecLevel {
  kFast,     ///< few tables a block, no predictor
  kDefault,  ///< tables that follow the data; a predictor or the base where an estimate says so
  kMax,      ///< finer tables, planes that gain little, more of zstd
};

/// A part of a tensor whose elements are a matrix in row-major order: all of a 2-D tensor, or one parameter
/// inside a flat buffer of optimizer state.
struct MatrixPart {
  uint64_t first = 0;  ///< element where it begins
  uint64_t rows = 0, columns = 0;
};

/// A tensor to encode. The bytes stay the caller's, are only read, and must outlive the encoder.
struct TensorView {
  ElementType type = ElementType::kInt8;
  TensorContent bytes;  ///< a whole number of elements
  /// Where a predictor by rows and columns may be tried (floats only); ascending, without overlap. May be
  /// empty.
  std::vector<MatrixPart> matrices = {};
  /// A tensor of the same size of which the decoder will have a copy; the difference is coded where smaller.
  std::optional<TensorContent> base = {};
  /// Tells tensors apart whose prologues are the same: the decoder must be given the same number.
  uint64_t identity = 0;
};

/// Elements of a block, but the last one.
inline constexpr int kDefaultBlockLog2 = 18;

/// Encodes a tensor block by block. The constructor decides how, which reads the tensor once at most; after
/// that EncodeBlock may be called from any thread, in any order.
class TensorEncoder {
 public:
  /// \param block_log2 base-2 logarithm of the elements of a block, 10..20
  /// \param threads of the constructor; the result does not depend on it
  /// \throws Error{kUsage} when bytes, matrices or base do not fit each other; what reading them throws
  TensorEncoder(TensorView tensor, CodecLevel level, int block_log2 = kDefaultBlockLog2, int threads = 1);
  ~TensorEncoder();
  TensorEncoder(TensorEncoder&&) noexcept;
  TensorEncoder& operator=(TensorEncoder&&) noexcept;

  /// What a coded tensor begins with.
  ByteSpan prologue() const;
  uint64_t blocks() const;
  /// Room that EncodeBlock needs.
  size_t max_block_bytes() const;
  /// Writes one block. Thread-safe.
  /// \returns its size in bytes
  /// \throws what reading the content, or the base, throws
  size_t EncodeBlock(uint64_t block, std::span<uint8_t> out) const;
  /// Likewise, where the block's part of the base is at hand.
  size_t EncodeBlock(uint64_t block, ByteSpan base, std::span<uint8_t> out) const;
  /// That part; nothing where the tensor is not coded against its base. Thread-safe.
  /// \returns what is valid until `scratch` changes
  /// \throws what reading the base throws
  ByteSpan ReadBase(uint64_t block, std::vector<uint8_t>* scratch) const;
  /// What a coded tensor ends with.
  /// \param block_bytes the sizes that EncodeBlock returned, in order
  std::vector<uint8_t> Index(std::span<const uint32_t> block_bytes) const;

 private:
  uint64_t ElementsOf(uint64_t block) const;

  struct State;
  std::unique_ptr<State> state_;
};

/// The whole coded tensor.
/// \param threads >= 1; the bytes do not depend on it
std::vector<uint8_t> EncodeTensor(const TensorView& tensor, CodecLevel level, int threads = 1,
                                  int block_log2 = kDefaultBlockLog2);

/// Upper bound of the size of a coded tensor.
uint64_t CodedTensorBound(ElementType type, uint64_t elements, int block_log2 = kDefaultBlockLog2);

}  // namespace trainwright

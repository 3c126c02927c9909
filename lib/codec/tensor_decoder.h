/// Decoding of what lib/codec/tensor_encoder.h wrote: whole, by block, by range of elements, or from a pipe.
///
/// Any bytes may be fed: they decode to the tensor that was encoded or are refused with Error{kBadInput} that
/// names the object, the block and the offset. A block is checked before and after it is decoded.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/codec/element_type.h"
#include "lib/codec/tensor_content.h"

namespace trainwright {

/// How one byte plane of one block is stored. The numbers are those of man/trainwright-codec.5.
enum class PlaneMode : uint8_t { kRaw = 0, kConst = 1, kZstd = 2, kRans = 3 };
/// What is taken off the elements before they are split into planes.
enum class TensorTransform : uint8_t { kNone = 0, kRankOne = 1, kBase = 2 };

inline constexpr size_t kMaxPlanes = 8;

/// What a block's head says about its planes, most significant first.
struct BlockPlanes {
  size_t planes = 0;
  std::array<PlaneMode, kMaxPlanes> mode{};
  std::array<uint32_t, kMaxPlanes> size_bytes{};
};

/// The prologue of a coded tensor, and with it the decoding of single blocks. Immutable, thread-safe.
///
/// A reader of a pipe takes kHeadBytes, then what PrologueBytes says in all; for each block kBlockHeadBytes,
/// then what BlockBytes says in all; at the end IndexBytes().
class BlockDecoder {
 public:
  static constexpr size_t kHeadBytes = 28;
  static constexpr size_t kBlockHeadBytes = 12;

  /// Size of the prologue whose first kHeadBytes (or more) these are.
  /// \throws Error{kBadInput}
  static uint64_t PrologueBytes(ByteSpan head, const std::string& object);

  /// \param prologue exactly that; copied
  /// \param object names the tensor in errors
  /// \param base the tensor that the difference was taken from, where transform() is kBase; must outlive
  ///     this. Without it blocks can be checked as they are stored, not decoded.
  /// \param identity that of the encoder
  /// \throws Error{kBadInput}; with the hint "--base" when there must be another base; what reading the base
  ///     throws
  BlockDecoder(ByteSpan prologue, std::string object, std::optional<TensorContent> base = {},
               uint64_t identity = 0);
  ~BlockDecoder();
  BlockDecoder(BlockDecoder&&) noexcept;
  BlockDecoder& operator=(BlockDecoder&&) noexcept;

  ElementType type() const;
  TensorTransform transform() const;
  uint64_t elements() const;
  uint64_t size_bytes() const;  ///< of the decoded tensor
  uint64_t prologue_bytes() const;
  uint64_t blocks() const;
  uint64_t block_elements() const;            ///< of every block but the last
  uint64_t ElementsOf(uint64_t block) const;  ///< of this one
  uint64_t max_block_bytes() const;           ///< no block may claim to be larger
  uint64_t IndexBytes() const;

  /// Size of a block whose first kBlockHeadBytes (or more) these are.
  /// \param offset of the block in `object`, for errors
  /// \throws Error{kBadInput}
  uint64_t BlockBytes(ByteSpan head, uint64_t block, uint64_t offset) const;
  /// Decodes one block.
  /// \param coded exactly the block
  /// \param out ElementsOf(block) elements
  /// \throws Error{kBadInput}; what reading the base throws. `out` then holds anything
  void DecodeBlock(ByteSpan coded, uint64_t block, uint64_t offset, std::span<uint8_t> out) const;
  /// Likewise, where the block's part of the base is at hand; the decoder needs no base then.
  void DecodeBlock(ByteSpan coded, uint64_t block, uint64_t offset, ByteSpan base,
                   std::span<uint8_t> out) const;
  /// Checks the hash of the block as it is stored, without decoding it.
  /// \returns its planes
  /// \throws Error{kBadInput}
  BlockPlanes CheckBlock(ByteSpan coded, uint64_t block, uint64_t offset) const;
  /// The planes of a block by its first bytes, FullHeadBytes() or more. Unlike CheckBlock it believes them.
  /// \throws Error{kBadInput}
  BlockPlanes PlanesOf(ByteSpan head, uint64_t block, uint64_t offset) const;
  uint64_t FullHeadBytes() const;
  /// Checks an index and returns the sizes of the blocks.
  /// \throws Error{kBadInput}
  std::vector<uint32_t> ReadIndex(ByteSpan index, uint64_t offset) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A coded tensor that lies in memory (or in a mapped file) as a whole. Immutable, thread-safe.
class CodedTensor {
 public:
  /// Reads prologue and index, not the blocks.
  /// \param coded must outlive this
  /// \throws Error{kBadInput}
  CodedTensor(ByteSpan coded, std::string object, std::optional<TensorContent> base = {},
              uint64_t identity = 0);

  const BlockDecoder& decoder() const { return decoder_; }
  /// One block as it is stored, and where.
  ByteSpan Block(uint64_t block) const;
  uint64_t BlockOffset(uint64_t block) const { return offsets_[block]; }

  /// Decodes everything.
  /// \param out size_bytes() of the tensor
  /// \param threads >= 1
  /// \throws Error{kBadInput} of the first block that is bad
  void Decode(std::span<uint8_t> out, int threads = 1) const;
  void DecodeBlock(uint64_t block, std::span<uint8_t> out) const;
  /// Decodes `count` elements from element `first` on, touching only their blocks.
  void DecodeRange(uint64_t first, uint64_t count, std::span<uint8_t> out) const;
  BlockPlanes CheckBlock(uint64_t block) const;

 private:
  ByteSpan coded_;
  BlockDecoder decoder_;
  std::vector<uint64_t> offsets_;  // of the blocks, and of the index
};

}  // namespace trainwright

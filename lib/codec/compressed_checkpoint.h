/// A compressed checkpoint in a file: its list of tensors, and single tensors or parts of them without
/// reading the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/codec/checkpoint_decoder.h"
#include "lib/codec/compressed_file.h"
#include "lib/codec/salvage.h"
#include "lib/codec/tensor_content.h"
#include "lib/codec/tensor_decoder.h"
#include "lib/io/random_reader.h"

namespace trainwright {

/// A block that is not what was written.
struct DamagedBlock {
  std::optional<std::string> tensor;  ///< nothing: it is no tensor's, but the head's or the footer's
  std::optional<uint64_t> block;      ///< nothing: prologue or index, so the whole tensor
  std::string message;
};

/// One coded tensor in a file. Immutable, thread-safe.
class StoredTensor {
 public:
  /// Reads prologue and index.
  /// \throws Error{kBadInput, kIo}
  StoredTensor(const RandomReader& file, const CompressedHead& head, size_t entry, uint64_t offset,
               uint64_t coded_bytes, std::optional<TensorBytes> base);

  const BlockDecoder& decoder() const { return *decoder_; }
  /// \param out as many bytes as the block has
  /// \throws Error{kBadInput, kIo}
  void DecodeBlock(uint64_t block, std::span<uint8_t> out) const;
  /// Checks the block as it is stored.
  void CheckBlock(uint64_t block) const;
  /// By the head of the block alone.
  BlockPlanes PlanesOf(uint64_t block) const;
  /// Passes on bytes [first, first + size) of the tensor, block by block, reading their blocks only.
  void Read(uint64_t first, uint64_t size, const std::function<void(ByteSpan)>& take) const;

 private:
  std::vector<uint8_t> ReadBlock(uint64_t block) const;

  const RandomReader& file_;
  std::shared_ptr<const TensorBytes> base_;
  std::unique_ptr<BlockDecoder> decoder_;
  std::vector<uint64_t> offsets_;  // of the blocks, and of the index
};

/// Immutable, thread-safe.
class CompressedCheckpoint {
 public:
  /// Reads the head and, of a stream, the footer.
  /// \param file must outlive this
  /// \param may_be_damaged takes a file that ends too early, or whose head or footer is damaged, as long as
  ///     the original's header is whole and a tensor can be found; opening one that is lost throws
  /// \throws Error{kBadInput} also on what is no compressed checkpoint, Error{kIo}
  explicit CompressedCheckpoint(const RandomReader* file, bool may_be_damaged = false);

  /// What is wrong with head or footer, or where a stream ends too early, if that was no reason to refuse it.
  /// Of the head only the original's header is known then, of the tail no hash.
  const std::optional<std::string>& problem() const { return problem_; }
  CompressedForm form() const { return form_; }
  const CompressedHead& head() const { return head_; }
  const CompressedTail& tail() const { return tail_; }
  const RandomReader& file() const { return *file_; }
  size_t tensors() const { return head_.source.entries.size(); }
  /// \throws Error{kUsage} when there is not one of this name
  size_t IndexOf(const std::string& name) const;
  /// As CheckBase. Where the head is damaged, a base that is given is not compared with the hash in it: each
  /// tensor has the hash of its own part.
  void RequireBase(BaseTensors* base) const;

  StoredTensor Open(size_t entry, std::optional<TensorBytes> base = {}) const;
  /// With the base that the tensor needs, if any.
  /// \param base may be null
  StoredTensor OpenWithBase(size_t entry, BaseTensors* base) const;
  /// Everything wrong with one tensor; empty when it is sound.
  /// \param base null: without what needs it
  /// \throws Error{kBadInput} about the base; Error{kIo}
  std::vector<DamagedBlock> FindDamage(size_t entry, BaseTensors* base) const;

 private:
  void ReadEnds(bool may_be_cut);
  void TakeSalvaged(SalvagedCheckpoint salvaged);

  const RandomReader* file_;
  CompressedForm form_ = CompressedForm::kSafetensors;
  CompressedHead head_;
  CompressedTail tail_;
  std::vector<std::optional<CodedPlace>> places_;  // of the coded tensors
  std::optional<std::string> problem_;
};

/// Whether a file begins as a compressed checkpoint of either form. Reads its header only.
/// \throws Error{kBadInput} when it is neither that nor a safetensors file, Error{kIo}
bool IsCompressedCheckpoint(const RandomReader& file);

/// A base in a file: a safetensors file, or a compressed checkpoint that needs no base itself.
/// \throws Error{kBadInput, kIo}
std::unique_ptr<BaseTensors> OpenBase(const std::string& path);

}  // namespace trainwright

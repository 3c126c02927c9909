/// Sizes and places inside a coded tensor that its encoder and decoder share: man/trainwright-codec.5.
#pragma once

#include <cstring>

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/codec/cpu/kernels.h"
#include "lib/codec/element_type.h"

namespace trainwright::codec {

inline constexpr uint32_t kMagic = 0x54435754;  // "TWCT"
inline constexpr uint8_t kVersion = 1;
inline constexpr size_t kPrologueHeadBytes = 28;
inline constexpr size_t kHashBytes = 8;
inline constexpr size_t kBlockHeadBytes = 20;  // hash, size, hash of the content
inline constexpr size_t kPlaneHeadBytes = 5;   // mode, size
inline constexpr int kMinBlockLog2 = 10, kMaxBlockLog2 = 20;
inline constexpr uint64_t kMaxElements = uint64_t{1} << 56;

constexpr uint64_t BlocksOf(uint64_t elements, int block_log2) {
  return (elements + (uint64_t{1} << block_log2) - 1) >> block_log2;
}
/// A block with every plane raw.
constexpr size_t MaxBlockBytes(ElementType type, uint64_t elements) {
  return kBlockHeadBytes + ElementBytes(type) * (kPlaneHeadBytes + elements);
}
/// The hash of a stored block, of all its bytes after the hash.
inline uint64_t BlockHash(const Kernels& kernels, ByteSpan behind, uint64_t prologue_hash, uint64_t block) {
  return kernels.hash(behind.data(), behind.size(), prologue_hash + block);
}

/// XXH3-64 of the content of a block, as the block says.
inline uint64_t ContentHashOf(ByteSpan block) {
  uint64_t hash;
  std::memcpy(&hash, block.data() + 12, sizeof(hash));
  return hash;
}

}  // namespace trainwright::codec

#include <algorithm>

#include "lib/base/checksum.h"
#include "lib/codec/coded_layout.h"
#include "lib/codec/tensor_decoder.h"
#include "tests/fuzz/fuzz_target.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxBlocks = 64;

template <typename Integer>
Integer Get(const std::vector<uint8_t>& bytes, size_t offset) {
  Integer value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}
void Put(uint64_t value, size_t offset, std::vector<uint8_t>* bytes) {
  std::memcpy(bytes->data() + offset, &value, sizeof(value));
}

/// A base for an input that says it has one: the bytes 0, 1, 2, ... of the size that it wants, if that is
/// small.
std::vector<uint8_t> BaseFor(ByteSpan input) {
  constexpr uint64_t kMostElements = 1 << 16;
  constexpr size_t kType = 5, kTransform = 6, kElements = 8;
  if (input.size() < codec::kPrologueHeadBytes || input[kType] >= kElementTypes ||
      input[kTransform] != static_cast<uint8_t>(TensorTransform::kBase)) {
    return {};
  }
  uint64_t elements;
  std::memcpy(&elements, input.data() + kElements, sizeof(elements));
  if (elements > kMostElements) return {};
  std::vector<uint8_t> base(elements * ElementBytes(static_cast<ElementType>(input[kType])));
  for (size_t i = 0; i < base.size(); ++i) base[i] = static_cast<uint8_t>(i);
  return base;
}

/// Makes the hashes of base, prologue, blocks and index right again, as far as their sizes fit.
std::vector<uint8_t> Repair(ByteSpan input, ByteSpan base) {
  constexpr size_t kBaseHash = 16;
  std::vector<uint8_t> bytes(input.begin(), input.end());
  if (bytes.size() < codec::kPrologueHeadBytes) return bytes;
  if (!base.empty()) Put(Xxh3(base), kBaseHash, &bytes);
  const uint64_t prologue = codec::kPrologueHeadBytes + uint64_t{Get<uint32_t>(bytes, 24)};
  if (prologue + codec::kHashBytes > bytes.size()) return bytes;
  const uint64_t seed = Xxh3(ByteSpan(bytes).first(prologue));
  Put(seed, prologue, &bytes);
  const int block_log2 = bytes[7];
  if (block_log2 < codec::kMinBlockLog2 || block_log2 > codec::kMaxBlockLog2) return bytes;
  const uint64_t blocks = std::min(Get<uint64_t>(bytes, 8) >> block_log2, kMaxBlocks) + 1;
  uint64_t at = prologue + codec::kHashBytes;
  for (uint64_t block = 0; block < blocks && at + codec::kBlockHeadBytes <= bytes.size(); ++block) {
    const uint64_t size = codec::kBlockHeadBytes + uint64_t{Get<uint32_t>(bytes, at + 8)};
    if (size > bytes.size() - at) break;
    Put(Xxh3(ByteSpan(bytes).subspan(at + 8, size - 8), seed + block), at, &bytes);
    at += size;
  }
  if (at + codec::kHashBytes <= bytes.size()) {
    const uint64_t end = bytes.size() - codec::kHashBytes;
    Put(Xxh3(ByteSpan(bytes).subspan(at, end - at), seed), end, &bytes);
  }
  return bytes;
}

void ReadAll(ByteSpan bytes, const std::optional<ByteSpan>& base) {
  fuzz::MayRefuse([&] {
    const CodedTensor tensor(bytes, "input", base);
    const BlockDecoder& decoder = tensor.decoder();
    std::vector<uint8_t> out;
    for (uint64_t block = 0; block < std::min(decoder.blocks(), kMaxBlocks); ++block) {
      fuzz::MayRefuse([&] {
        tensor.CheckBlock(block);
        out.resize(decoder.ElementsOf(block) * ElementBytes(decoder.type()));
        tensor.DecodeBlock(block, out);
      });
    }
  });
}

}  // namespace
}  // namespace trainwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> base = trainwright::BaseFor({data, size});
  trainwright::ReadAll({data, size}, std::nullopt);
  trainwright::ReadAll({data, size}, base);
  trainwright::ReadAll(trainwright::Repair({data, size}, base), base);
  return 0;
}

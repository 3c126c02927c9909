#include "lib/codec/tensor_decoder.h"

#include <algorithm>
#include <cstring>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/codec/coded_layout.h"
#include "lib/codec/cpu/kernels.h"
#include "lib/codec/plane_coder.h"
#include "lib/codec/rank_one.h"
#include "lib/formats/bad_input.h"
#include "lib/io/ordered_workers.h"

namespace trainwright {
namespace {

using codec::kHashBytes;
using codec::kPrologueHeadBytes;

static_assert(BlockDecoder::kHeadBytes == kPrologueHeadBytes);

constexpr char kCutShort[] = "coded tensor";
constexpr char kBaseHint[] = "give that base with --base";

ElementType IntegerOf(ElementType type) {
  return IsFloat(type) ? static_cast<ElementType>(static_cast<int>(type) - 3) : type;
}

template <typename Integer>
Integer LoadAt(ByteSpan bytes, size_t offset) {
  Integer value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

/// What decoding a block needs beside it; one per thread.
struct BlockScratch {
  std::array<codec::PlaneDecoder, kMaxPlanes> planes;
  std::vector<uint8_t> base, difference;
  std::vector<uint8_t> block;
};
BlockScratch& ThreadScratch() {
  static thread_local BlockScratch scratch;
  return scratch;
}

}  // namespace

struct BlockDecoder::State {
  std::string object;
  const codec::Kernels* kernels = &codec::BestKernels();
  ElementType type = ElementType::kInt8;
  TensorTransform transform = TensorTransform::kNone;
  int block_log2 = 0;
  uint64_t elements = 0;
  uint64_t prologue_bytes = 0, prologue_hash = 0;
  std::optional<codec::RankOnePredictor> predictor;
  std::optional<TensorContent> base;

  Error Refuse(uint64_t block, uint64_t offset, const std::string& why) const {
    return BadInputAt(offset, object, "block " + std::to_string(block) + " is corrupt: " + why);
  }
};

uint64_t BlockDecoder::PrologueBytes(ByteSpan head, const std::string& object) {
  if (head.size() < kPrologueHeadBytes) throw CutShortAt(head.size(), object, kCutShort);
  if (LoadAt<uint32_t>(head, 0) != codec::kMagic) throw BadInputAt(0, object, "it is not a coded tensor");
  if (head[4] != codec::kVersion) {
    throw BadInputAt(4, object, "version " + std::to_string(head[4]) + " of coded tensors is unknown",
                     "use a newer release");
  }
  return kPrologueHeadBytes + uint64_t{LoadAt<uint32_t>(head, 24)} + kHashBytes;
}

BlockDecoder::BlockDecoder(ByteSpan prologue, std::string object, std::optional<TensorContent> base,
                           uint64_t identity)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.object = std::move(object);
  s.prologue_bytes = PrologueBytes(prologue, s.object);
  if (prologue.size() < s.prologue_bytes) throw CutShortAt(prologue.size(), s.object, kCutShort);
  if (prologue.size() != s.prologue_bytes)
    throw BadInputAt(s.prologue_bytes, s.object, "bytes follow the prologue");
  const ByteSpan hashed = prologue.first(prologue.size() - kHashBytes);
  s.prologue_hash = Xxh3(hashed, identity);
  if (LoadAt<uint64_t>(prologue, hashed.size()) != s.prologue_hash)
    throw BadInputAt(hashed.size(), s.object, "the prologue is corrupt: its hash differs");
  if (prologue[5] >= kElementTypes) throw BadInputAt(5, s.object, "the element type is unknown");
  if (prologue[6] > static_cast<uint8_t>(TensorTransform::kBase))
    throw BadInputAt(6, s.object, "the transform is unknown");
  s.type = static_cast<ElementType>(prologue[5]);
  s.transform = static_cast<TensorTransform>(prologue[6]);
  s.block_log2 = prologue[7];
  s.elements = LoadAt<uint64_t>(prologue, 8);
  if (s.block_log2 < codec::kMinBlockLog2 || s.block_log2 > codec::kMaxBlockLog2)
    throw BadInputAt(7, s.object, "the block size is out of range");
  if (s.elements > codec::kMaxElements) throw BadInputAt(8, s.object, "it has too many elements");
  const auto base_hash = LoadAt<uint64_t>(prologue, 16);
  const ByteSpan side = hashed.subspan(kPrologueHeadBytes);
  if (s.transform == TensorTransform::kRankOne) {
    if (!IsFloat(s.type)) throw BadInputAt(6, s.object, "integers have no predictor");
    s.predictor = codec::RankOnePredictor::Parse(*s.kernels, side, s.elements, s.object, kPrologueHeadBytes);
  } else if (!side.empty()) {
    throw BadInputAt(24, s.object, "the prologue is corrupt: it has side information without a predictor");
  }
  if (s.transform == TensorTransform::kBase) {
    if (base && (base->size() != size_bytes() || HashOf(*base) != base_hash))
      throw BadInputAt(16, s.object, "it was coded against another base", kBaseHint);
    s.base = base;
  } else if (base_hash != 0) {
    throw BadInputAt(16, s.object, "the prologue is corrupt: it names a base without using it");
  }
}

BlockDecoder::~BlockDecoder() = default;
BlockDecoder::BlockDecoder(BlockDecoder&&) noexcept = default;
BlockDecoder& BlockDecoder::operator=(BlockDecoder&&) noexcept = default;

ElementType BlockDecoder::type() const {
  return state_->type;
}
TensorTransform BlockDecoder::transform() const {
  return state_->transform;
}
uint64_t BlockDecoder::elements() const {
  return state_->elements;
}
uint64_t BlockDecoder::size_bytes() const {
  return state_->elements * ElementBytes(state_->type);
}
uint64_t BlockDecoder::prologue_bytes() const {
  return state_->prologue_bytes;
}
uint64_t BlockDecoder::blocks() const {
  return codec::BlocksOf(state_->elements, state_->block_log2);
}
uint64_t BlockDecoder::block_elements() const {
  return uint64_t{1} << state_->block_log2;
}
uint64_t BlockDecoder::ElementsOf(uint64_t block) const {
  TRAINWRIGHT_CHECK(block < blocks());
  return std::min(block_elements(), state_->elements - (block << state_->block_log2));
}
uint64_t BlockDecoder::max_block_bytes() const {
  return codec::MaxBlockBytes(state_->type, std::min(block_elements(), state_->elements));
}
uint64_t BlockDecoder::IndexBytes() const {
  return blocks() * sizeof(uint32_t) + kHashBytes;
}

uint64_t BlockDecoder::BlockBytes(ByteSpan head, uint64_t block, uint64_t offset) const {
  if (head.size() < kBlockHeadBytes) throw CutShortAt(offset + head.size(), state_->object, kCutShort);
  const uint64_t size = codec::kBlockHeadBytes + uint64_t{LoadAt<uint32_t>(head, 8)};
  if (size > codec::MaxBlockBytes(state_->type, ElementsOf(block)))
    throw state_->Refuse(block, offset, "it claims to be larger than its content");
  return size;
}

uint64_t BlockDecoder::FullHeadBytes() const {
  return codec::kBlockHeadBytes + ElementBytes(state_->type) * codec::kPlaneHeadBytes;
}

BlockPlanes BlockDecoder::PlanesOf(ByteSpan head, uint64_t block, uint64_t offset) const {
  const State& s = *state_;
  if (head.size() < FullHeadBytes()) throw CutShortAt(offset + head.size(), s.object, kCutShort);
  BlockPlanes planes;
  planes.planes = ElementBytes(s.type);
  ByteParser parser(head.subspan(codec::kBlockHeadBytes));
  uint64_t sum = 0;
  for (size_t p = 0; p < planes.planes; ++p) {
    const auto mode = parser.Read<uint8_t>();
    planes.size_bytes[p] = parser.Read<uint32_t>();
    sum += planes.size_bytes[p];
    if (mode > static_cast<uint8_t>(PlaneMode::kRans))
      throw s.Refuse(block, offset, "the mode of a plane is unknown");
    planes.mode[p] = static_cast<PlaneMode>(mode);
  }
  if (sum + FullHeadBytes() != BlockBytes(head, block, offset))
    throw s.Refuse(block, offset, "its planes do not add up to its size");
  return planes;
}

BlockPlanes BlockDecoder::CheckBlock(ByteSpan coded, uint64_t block, uint64_t offset) const {
  const State& s = *state_;
  const uint64_t size = BlockBytes(coded, block, offset);
  if (coded.size() < size) throw CutShortAt(offset + coded.size(), s.object, kCutShort);
  if (coded.size() != size) throw s.Refuse(block, offset, "its size differs from that in the index");
  if (LoadAt<uint64_t>(coded, 0) != codec::BlockHash(*s.kernels, coded.subspan(8), s.prologue_hash, block))
    throw s.Refuse(block, offset, "its hash differs");
  return PlanesOf(coded, block, offset);
}

void BlockDecoder::DecodeBlock(ByteSpan coded, uint64_t block, uint64_t offset,
                               std::span<uint8_t> out) const {
  const State& s = *state_;
  ByteSpan base;
  // Before the block itself: the base may be decoded by this thread, too, with the same scratch.
  if (s.base)
    base = s.base->Read((block << s.block_log2) * ElementBytes(s.type), out.size(), &ThreadScratch().base);
  DecodeBlock(coded, block, offset, base, out);
}

void BlockDecoder::DecodeBlock(ByteSpan coded, uint64_t block, uint64_t offset, ByteSpan base,
                               std::span<uint8_t> out) const {
  const State& s = *state_;
  const codec::Kernels& kernels = *s.kernels;
  const BlockPlanes planes = CheckBlock(coded, block, offset);
  const size_t n = ElementsOf(block), width = planes.planes;
  TRAINWRIGHT_CHECK(out.size() == n * width);
  const bool differs = s.transform == TensorTransform::kBase;
  if (differs && base.size() != out.size())
    throw BadInputAt(offset, s.object, "it was coded against a base", kBaseHint);
  BlockScratch& scratch = ThreadScratch();
  size_t at = codec::kBlockHeadBytes + width * codec::kPlaneHeadBytes;
  for (size_t p = 0; p < width; ++p) {
    scratch.planes[p].Open(kernels, planes.mode[p], coded.subspan(at, planes.size_bytes[p]), n,
                           s.object + ": block " + std::to_string(block), offset + at);
    at += planes.size_bytes[p];
  }
  const uint64_t first = block << s.block_log2;
  const ElementType stored = differs ? IntegerOf(s.type) : s.type;
  if (differs) scratch.difference.resize(codec::kRunUnit * width);
  for (size_t done = 0; done < n;) {
    const size_t step = std::min(n - done, codec::kRunUnit);
    std::array<const uint8_t*, kMaxPlanes> pieces;
    for (size_t p = 0; p < width; ++p) {
      if (p == 0 && s.predictor) {
        uint8_t* exponents = scratch.planes[0].ReadWritable(step);
        s.predictor->Decode(kernels, first + done, step, exponents);
        pieces[0] = exponents;
      } else {
        pieces[p] = scratch.planes[p].Read(step);
      }
    }
    uint8_t* elements = out.data() + done * width;
    if (differs) {
      kernels.merge(stored, pieces.data(), step, scratch.difference.data());
      kernels.add(width, scratch.difference.data(), base.data() + done * width, step, elements);
    } else {
      kernels.merge(stored, pieces.data(), step, elements);
    }
    done += step;
  }
  for (size_t p = 0; p < width; ++p) scratch.planes[p].Close();
  if (kernels.hash(out.data(), out.size(), 0) != codec::ContentHashOf(coded))
    throw s.Refuse(block, offset, "the hash of its content differs");
}

std::vector<uint32_t> BlockDecoder::ReadIndex(ByteSpan index, uint64_t offset) const {
  const State& s = *state_;
  if (index.size() < IndexBytes()) throw CutShortAt(offset + index.size(), s.object, kCutShort);
  const ByteSpan sizes = index.first(index.size() - kHashBytes);
  if (index.size() != IndexBytes() || LoadAt<uint64_t>(index, sizes.size()) != Xxh3(sizes, s.prologue_hash))
    throw BadInputAt(offset, s.object, "the index of blocks is corrupt: its hash differs");
  std::vector<uint32_t> result(blocks());
  if (!result.empty()) std::memcpy(result.data(), sizes.data(), sizes.size());
  for (uint64_t block = 0; block < result.size(); ++block) {
    if (result[block] < codec::kBlockHeadBytes ||
        result[block] > codec::MaxBlockBytes(s.type, ElementsOf(block))) {
      throw BadInputAt(offset + block * sizeof(uint32_t), s.object,
                       "the index of blocks is corrupt: a size is out of range");
    }
  }
  return result;
}

namespace {

ByteSpan PrologueOf(ByteSpan coded, const std::string& object) {
  const uint64_t size = BlockDecoder::PrologueBytes(coded, object);
  if (coded.size() < size) throw CutShortAt(coded.size(), object, kCutShort);
  return coded.first(size);
}

}  // namespace

CodedTensor::CodedTensor(ByteSpan coded, std::string object, std::optional<TensorContent> base,
                         uint64_t identity)
    : coded_(coded), decoder_(PrologueOf(coded, object), object, base, identity) {
  const uint64_t begin = decoder_.prologue_bytes();
  if (coded.size() - begin < decoder_.IndexBytes()) throw CutShortAt(coded.size(), object, kCutShort);
  const uint64_t index = coded.size() - decoder_.IndexBytes();
  const std::vector<uint32_t> sizes = decoder_.ReadIndex(coded.subspan(index), index);
  offsets_.push_back(begin);
  for (const uint32_t size : sizes) offsets_.push_back(offsets_.back() + size);
  if (offsets_.back() != index)
    throw BadInputAt(index, object, "the index of blocks does not fit the blocks");
}

ByteSpan CodedTensor::Block(uint64_t block) const {
  TRAINWRIGHT_CHECK(block + 1 < offsets_.size());
  return coded_.subspan(offsets_[block], offsets_[block + 1] - offsets_[block]);
}

void CodedTensor::DecodeBlock(uint64_t block, std::span<uint8_t> out) const {
  decoder_.DecodeBlock(Block(block), block, offsets_[block], out);
}

BlockPlanes CodedTensor::CheckBlock(uint64_t block) const {
  return decoder_.CheckBlock(Block(block), block, offsets_[block]);
}

void CodedTensor::Decode(std::span<uint8_t> out, int threads) const {
  TRAINWRIGHT_CHECK(out.size() == decoder_.size_bytes());
  const size_t stride = decoder_.block_elements() * ElementBytes(decoder_.type());
  const auto decode = [&](uint64_t block) {
    DecodeBlock(block, out.subspan(block * stride, std::min(stride, out.size() - block * stride)));
  };
  const uint64_t blocks = decoder_.blocks();
  if (threads <= 1) {
    for (uint64_t block = 0; block < blocks; ++block) decode(block);
    return;
  }
  OrderedWorkers<uint64_t, bool> workers(threads, 4 * static_cast<size_t>(threads), [&](int, uint64_t block) {
    decode(block);
    return true;
  });
  for (uint64_t block = 0; block < blocks; ++block) {
    if (workers.full()) workers.Pop();
    workers.Push(block);
  }
  while (!workers.empty()) workers.Pop();
}

void CodedTensor::DecodeRange(uint64_t first, uint64_t count, std::span<uint8_t> out) const {
  const size_t width = ElementBytes(decoder_.type());
  TRAINWRIGHT_CHECK(first <= decoder_.elements() && count <= decoder_.elements() - first);
  TRAINWRIGHT_CHECK(out.size() == count * width);
  BlockScratch& scratch = ThreadScratch();
  const uint64_t per_block = decoder_.block_elements();
  for (uint64_t done = 0; done < count;) {
    const uint64_t block = (first + done) / per_block, skip = (first + done) % per_block;
    const uint64_t in_block = decoder_.ElementsOf(block), taken = std::min(count - done, in_block - skip);
    const std::span<uint8_t> target = out.subspan(done * width, taken * width);
    if (taken == in_block) {
      DecodeBlock(block, target);
    } else {
      scratch.block.resize(in_block * width);
      DecodeBlock(block, scratch.block);
      std::memcpy(target.data(), scratch.block.data() + skip * width, target.size());
    }
    done += taken;
  }
}

}  // namespace trainwright

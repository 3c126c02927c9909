#include "lib/codec/tensor_encoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/codec/coded_layout.h"
#include "lib/codec/cpu/kernels.h"
#include "lib/codec/plane_coder.h"
#include "lib/codec/rank_one.h"
#include "lib/codec/tensor_decoder.h"
#include "lib/io/ordered_workers.h"

namespace trainwright {
namespace codec {
namespace {

/// The same difference has the same width but is an integer.
ElementType IntegerOf(ElementType type) {
  return IsFloat(type) ? static_cast<ElementType>(static_cast<int>(type) - 3) : type;
}

void CheckTensor(const TensorView& tensor, int block_log2) {
  const auto refuse = [](const std::string& why) { return Error(ErrorCode::kUsage, "tensor", why); };
  const size_t width = ElementBytes(tensor.type);
  if (tensor.bytes.size() % width != 0) throw refuse("its bytes are not a whole number of elements");
  if (tensor.base && tensor.base->size() != tensor.bytes.size()) throw refuse("its base has another size");
  if (block_log2 < kMinBlockLog2 || block_log2 > kMaxBlockLog2)
    throw refuse("the block size is not between 2^10 and 2^20 elements");
  const uint64_t elements = tensor.bytes.size() / width;
  uint64_t end = 0;
  for (const MatrixPart& matrix : tensor.matrices) {
    uint64_t size;
    if (matrix.first < end || matrix.first > elements ||
        __builtin_mul_overflow(matrix.rows, matrix.columns, &size) || size > elements - matrix.first) {
      throw refuse("a matrix is not inside it, or begins before the end of another");
    }
    end = matrix.first + size;
  }
}

/// Whether the difference from the base needs fewer bits than the elements do, on pieces of the tensor.
bool BasePays(const Kernels& kernels, const TensorView& tensor) {
  constexpr size_t kPieces = 16, kPieceElements = 4096;
  const size_t width = ElementBytes(tensor.type), elements = tensor.bytes.size() / width;
  if (elements == 0) return false;
  std::vector<uint8_t> difference(kPieceElements * width), scratch, base_scratch;
  std::vector<uint8_t> plane_bytes(kPieceElements * width);
  std::array<uint8_t*, kMaxPlanes> planes;
  for (size_t p = 0; p < width; ++p) planes[p] = plane_bytes.data() + p * kPieceElements;
  const auto bits = [&](ElementType type, const uint8_t* piece, size_t n) {
    kernels.split(type, piece, n, planes.data());
    uint64_t sum = 0;
    for (size_t p = 0; p < width; ++p)
      sum += std::min<uint64_t>(8 * n, EstimatePlaneBits(kernels, {planes[p], n}));
    return sum;
  };
  uint64_t plain = 0, differing = 0;
  const size_t n = std::min(elements, kPieceElements), pieces = elements == n ? 1 : kPieces;
  for (size_t piece = 0; piece < pieces; ++piece) {
    const size_t at = pieces == 1 ? 0 : piece * (elements - n) / (pieces - 1) * width;
    const ByteSpan content = tensor.bytes.Read(at, n * width, &scratch);
    plain += bits(tensor.type, content.data(), n);
    const ByteSpan base = tensor.base->Read(at, n * width, &base_scratch);
    kernels.subtract(width, content.data(), base.data(), n, difference.data());
    differing += bits(IntegerOf(tensor.type), difference.data(), n);
  }
  return differing < plain - plain / 100;
}

/// What encoding a block needs beside the block; one per thread.
struct BlockScratch {
  std::vector<uint8_t> content, base, difference, planes;
  PlaneEncoder encoder;
};
BlockScratch& ThreadScratch() {
  static thread_local BlockScratch scratch;
  return scratch;
}

}  // namespace
}  // namespace codec

using codec::BlockScratch;

struct TensorEncoder::State {
  TensorView tensor;
  CodecLevel level;
  int block_log2;
  const codec::Kernels* kernels = &codec::BestKernels();
  TensorTransform transform = TensorTransform::kNone;
  std::optional<codec::RankOnePredictor> predictor;
  std::vector<uint8_t> prologue;
  uint64_t prologue_hash = 0;

  uint64_t elements() const { return tensor.bytes.size() / ElementBytes(tensor.type); }
};

TensorEncoder::TensorEncoder(TensorView tensor, CodecLevel level, int block_log2, int threads)
    : state_(std::make_unique<State>()) {
  codec::CheckTensor(tensor, block_log2);
  State& s = *state_;
  s.tensor = std::move(tensor);
  s.level = level;
  s.block_log2 = block_log2;
  std::vector<uint8_t> side;
  uint64_t base_hash = 0;
  if (s.tensor.base && codec::BasePays(*s.kernels, s.tensor)) {
    s.transform = TensorTransform::kBase;
    base_hash = HashOf(*s.tensor.base);
  } else if (level != CodecLevel::kFast) {
    s.predictor = codec::RankOnePredictor::Fit(*s.kernels, s.tensor, level == CodecLevel::kMax, threads);
    if (s.predictor) {
      s.transform = TensorTransform::kRankOne;
      side = s.predictor->Serialize(*s.kernels, level);
    }
  }
  AppendInteger(&s.prologue, codec::kMagic);
  s.prologue.push_back(codec::kVersion);
  s.prologue.push_back(static_cast<uint8_t>(s.tensor.type));
  s.prologue.push_back(static_cast<uint8_t>(s.transform));
  s.prologue.push_back(static_cast<uint8_t>(block_log2));
  AppendInteger<uint64_t>(&s.prologue, s.elements());
  AppendInteger<uint64_t>(&s.prologue, base_hash);
  AppendInteger<uint32_t>(&s.prologue, static_cast<uint32_t>(side.size()));
  AppendBytes(&s.prologue, side);
  s.prologue_hash = Xxh3(s.prologue, s.tensor.identity);
  AppendInteger(&s.prologue, s.prologue_hash);
}

TensorEncoder::~TensorEncoder() = default;
TensorEncoder::TensorEncoder(TensorEncoder&&) noexcept = default;
TensorEncoder& TensorEncoder::operator=(TensorEncoder&&) noexcept = default;

ByteSpan TensorEncoder::prologue() const {
  return state_->prologue;
}
uint64_t TensorEncoder::blocks() const {
  return codec::BlocksOf(state_->elements(), state_->block_log2);
}
size_t TensorEncoder::max_block_bytes() const {
  return codec::MaxBlockBytes(state_->tensor.type, uint64_t{1} << state_->block_log2);
}

uint64_t TensorEncoder::ElementsOf(uint64_t block) const {
  TRAINWRIGHT_CHECK(block < blocks());
  return std::min(uint64_t{1} << state_->block_log2, state_->elements() - (block << state_->block_log2));
}

ByteSpan TensorEncoder::ReadBase(uint64_t block, std::vector<uint8_t>* scratch) const {
  const State& s = *state_;
  if (s.transform != TensorTransform::kBase) return {};
  const size_t width = ElementBytes(s.tensor.type);
  return s.tensor.base->Read((block << s.block_log2) * width, ElementsOf(block) * width, scratch);
}

size_t TensorEncoder::EncodeBlock(uint64_t block, std::span<uint8_t> out) const {
  return EncodeBlock(block, ReadBase(block, &codec::ThreadScratch().base), out);
}

size_t TensorEncoder::EncodeBlock(uint64_t block, ByteSpan base, std::span<uint8_t> out) const {
  const State& s = *state_;
  const codec::Kernels& kernels = *s.kernels;
  const uint64_t first = block << s.block_log2;
  const size_t n = ElementsOf(block);
  const size_t width = ElementBytes(s.tensor.type);
  TRAINWRIGHT_CHECK(out.size() >= codec::MaxBlockBytes(s.tensor.type, n));
  BlockScratch& scratch = codec::ThreadScratch();
  const ByteSpan content = s.tensor.bytes.Read(first * width, n * width, &scratch.content);
  // First: reading memory ahead suits a hash, and what it read is near when it is split.
  const uint64_t content_hash = kernels.hash(content.data(), content.size(), 0);
  if (scratch.planes.size() < n * width) scratch.planes.resize(n * width);
  std::array<uint8_t*, kMaxPlanes> planes;
  for (size_t p = 0; p < width; ++p) planes[p] = scratch.planes.data() + p * n;
  if (s.transform == TensorTransform::kBase) {
    TRAINWRIGHT_CHECK(base.size() == n * width);
    scratch.difference.resize(n * width);
    kernels.subtract(width, content.data(), base.data(), n, scratch.difference.data());
    kernels.split(codec::IntegerOf(s.tensor.type), scratch.difference.data(), n, planes.data());
  } else {
    kernels.split(s.tensor.type, content.data(), n, planes.data());
    if (s.predictor) s.predictor->Encode(kernels, first, n, planes[0]);
  }

  uint8_t* plane_heads = out.data() + codec::kBlockHeadBytes;
  uint8_t* next = plane_heads + width * codec::kPlaneHeadBytes;
  for (size_t p = 0; p < width; ++p) {
    const codec::EncodedPlane plane = scratch.encoder.Encode(kernels, {planes[p], n}, s.level, next);
    plane_heads[0] = static_cast<uint8_t>(plane.mode);
    std::memcpy(plane_heads + 1, &plane.size_bytes, sizeof(plane.size_bytes));
    plane_heads += codec::kPlaneHeadBytes;
    next += plane.size_bytes;
  }
  const size_t size = static_cast<size_t>(next - out.data());
  const auto behind_head = static_cast<uint32_t>(size - codec::kBlockHeadBytes);
  std::memcpy(out.data() + 8, &behind_head, sizeof(behind_head));
  std::memcpy(out.data() + 12, &content_hash, sizeof(content_hash));
  const uint64_t hash = codec::BlockHash(kernels, ByteSpan(out).subspan(8, size - 8), s.prologue_hash, block);
  std::memcpy(out.data(), &hash, sizeof(hash));
  return size;
}

std::vector<uint8_t> TensorEncoder::Index(std::span<const uint32_t> block_bytes) const {
  TRAINWRIGHT_CHECK(block_bytes.size() == blocks());
  std::vector<uint8_t> index(block_bytes.size_bytes());
  if (!index.empty()) std::memcpy(index.data(), block_bytes.data(), index.size());
  AppendInteger(&index, Xxh3(index, state_->prologue_hash));
  return index;
}

std::vector<uint8_t> EncodeTensor(const TensorView& tensor, CodecLevel level, int threads, int block_log2) {
  const TensorEncoder encoder(tensor, level, block_log2, threads);
  std::vector<uint8_t> coded(encoder.prologue().begin(), encoder.prologue().end());
  std::vector<uint32_t> sizes;
  if (threads <= 1) {
    std::vector<uint8_t> block(encoder.blocks() > 0 ? encoder.max_block_bytes() : 0);
    for (uint64_t b = 0; b < encoder.blocks(); ++b) {
      sizes.push_back(static_cast<uint32_t>(encoder.EncodeBlock(b, block)));
      AppendBytes(&coded, ByteSpan(block).first(sizes.back()));
    }
  } else {
    OrderedWorkers<uint64_t, std::vector<uint8_t>> workers(
        threads, 2 * static_cast<size_t>(threads), [&](int, uint64_t b) {
          std::vector<uint8_t> block(encoder.max_block_bytes());
          block.resize(encoder.EncodeBlock(b, block));
          return block;
        });
    const auto take = [&] {
      const std::vector<uint8_t> block = workers.Pop();
      sizes.push_back(static_cast<uint32_t>(block.size()));
      AppendBytes(&coded, block);
    };
    for (uint64_t b = 0; b < encoder.blocks(); ++b) {
      if (workers.full()) take();
      workers.Push(b);
    }
    while (!workers.empty()) take();
  }
  AppendBytes(&coded, encoder.Index(sizes));
  return coded;
}

uint64_t CodedTensorBound(ElementType type, uint64_t elements, int block_log2) {
  const uint64_t blocks = codec::BlocksOf(elements, block_log2), width = ElementBytes(type);
  return codec::kPrologueHeadBytes + codec::kHashBytes + elements * width +
         blocks * (codec::kBlockHeadBytes + width * codec::kPlaneHeadBytes + sizeof(uint32_t)) +
         codec::kHashBytes;
}

}  // namespace trainwright

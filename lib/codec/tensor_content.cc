#include "lib/codec/tensor_content.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/codec/cpu/kernels.h"

namespace trainwright {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 18;
/// Whole blocks of the usual size, whatever the type: what a coded tensor is decoded by.
constexpr uint64_t kHashedBytes = uint64_t{1} << 21;

}  // namespace

TensorContent TensorContent::InFile(const RandomReader* file, uint64_t offset, uint64_t size_bytes) {
  TensorContent content;
  content.file_ = file;
  content.offset_ = offset;
  content.size_bytes_ = size_bytes;
  return content;
}

ByteSpan TensorContent::Read(uint64_t offset, uint64_t size, std::vector<uint8_t>* scratch) const {
  TRAINWRIGHT_CHECK(offset <= size_bytes_ && size <= size_bytes_ - offset);
  if (in_memory()) return bytes_.subspan(offset, size);
  scratch->resize(size);
  file_->ReadAt(offset_ + offset, std::span<uint8_t>(*scratch));
  return *scratch;
}

TensorBytes TensorBytes::Own(std::vector<uint8_t> bytes) {
  TensorBytes tensor;
  tensor.owned = std::move(bytes);
  tensor.view = ByteSpan(tensor.owned);
  return tensor;
}

TensorBytes TensorBytes::Own(std::unique_ptr<const RandomReader> file) {
  TensorBytes tensor;
  tensor.view = TensorContent::InFile(file.get(), 0, file->size_bytes());
  tensor.file = std::move(file);
  return tensor;
}

uint64_t HashOf(const TensorContent& content) {
  std::vector<uint8_t> piece;
  if (content.in_memory()) {
    const ByteSpan bytes = content.Read(0, content.size(), &piece);
    return codec::BestKernels().hash(bytes.data(), bytes.size(), 0);
  }
  Xxh3Stream hash;
  for (uint64_t at = 0; at < content.size(); at += kHashedBytes)
    hash.Update(content.Read(at, std::min(kHashedBytes, content.size() - at), &piece));
  return hash.Digest();
}

ByteSpan ContentReader::Read(uint64_t offset, uint64_t size) {
  if (content_.in_memory()) return content_.Read(offset, size, &piece_);
  if (offset < begin_ || offset + size > begin_ + piece_.size()) {
    const uint64_t ahead = end_ - std::min(offset, end_);
    content_.Read(offset, std::max(size, std::min(ahead, kPieceBytes)), &piece_);
    begin_ = offset;
  }
  return ByteSpan(piece_).subspan(offset - begin_, size);
}

}  // namespace trainwright

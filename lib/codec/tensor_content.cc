#include "lib/codec/tensor_content.h"

#include <algorithm>
#include <span>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 18;

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

#include "lib/formats/zstd_frame.h"

#define ZSTD_STATIC_LINKING_ONLY  // ZSTD_d_forceIgnoreChecksum
#include <zstd.h>

#include <memory>
#include <new>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/io/zstd_memory.h"

namespace trainwright {
namespace {

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

constexpr uint8_t kChecksumFlag = 1 << 2;
constexpr uint8_t kDictionaryFlags = 3;
constexpr uint8_t kSingleSegmentFlag = 1 << 5;
constexpr size_t kMaxFrameHeaderBytes = 18;
constexpr size_t kChecksumBytes = 4;

/// Checks what the head of a frame promises.
/// \returns the content's size
uint64_t CheckFrameHeader(ByteSpan head, uint64_t max_content_bytes, const std::string& object,
                          uint64_t offset) {
  if (head.size() < 5) throw CutShortAt(offset + head.size(), object, "zstd frame");
  const uint64_t content_bytes = ZSTD_getFrameContentSize(head.data(), head.size());
  if (content_bytes == ZSTD_CONTENTSIZE_ERROR || content_bytes == ZSTD_CONTENTSIZE_UNKNOWN ||
      (head[4] & kChecksumFlag) == 0 || (head[4] & kDictionaryFlags) != 0) {
    throw BadInputAt(offset, object,
                     "a frame is corrupt: it is no zstd frame with content size and checksum");
  }
  if (content_bytes > max_content_bytes) {
    throw BadInputAt(offset, object, "a frame is corrupt: its content is larger than the limit");
  }
  return content_bytes;
}

size_t FrameHeaderBytes(uint8_t descriptor) {
  const bool single_segment = (descriptor & kSingleSegmentFlag) != 0;
  const size_t window_bytes = single_segment ? 0 : 1;
  const int size_code = descriptor >> 6;
  const size_t content_size_bytes = size_code == 0 ? (single_segment ? 1 : 0) : size_t{1} << size_code;
  return 4 + 1 + window_bytes + content_size_bytes;
}

}  // namespace

std::vector<uint8_t> CompressZstdFrame(ByteSpan content, int level, int min_match) {
  // A fresh context each time: with one that is reused, the bytes could depend on the frames that a thread
  // saw before.
  const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  if (context == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_minMatch, min_match);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::vector<uint8_t> frame(ZSTD_compressBound(content.size()));
  const size_t size =
      ZSTD_compress2(context.get(), frame.data(), frame.size(), content.data(), content.size());
  ThrowIfNoMemory(size);
  TRAINWRIGHT_CHECK(!ZSTD_isError(size));
  frame.resize(size);
  frame.shrink_to_fit();
  return frame;
}

std::vector<uint8_t> DecompressZstdFrame(ByteSpan frame, uint64_t max_content_bytes,
                                         const std::string& object, uint64_t offset,
                                         ContentChecksum checksum) {
  const uint64_t content_bytes = CheckFrameHeader(frame, max_content_bytes, object, offset);
  static thread_local std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context;
  if (context == nullptr) context.reset(ZSTD_createDCtx());
  if (context == nullptr) throw std::bad_alloc();
  // A libzstd without this parameter refuses it, and verifies.
  ZSTD_DCtx_setParameter(
      context.get(), ZSTD_d_forceIgnoreChecksum,
      checksum == ContentChecksum::kIgnore ? ZSTD_d_ignoreChecksum : ZSTD_d_validateChecksum);
  std::vector<uint8_t> content(content_bytes);
  const size_t size =
      ZSTD_decompressDCtx(context.get(), content.data(), content.size(), frame.data(), frame.size());
  ThrowIfNoMemory(size);
  if (ZSTD_isError(size)) {
    throw BadInputAt(offset, object, std::string("a frame is corrupt: zstd: ") + ZSTD_getErrorName(size));
  }
  if (size != content_bytes || ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    throw BadInputAt(offset, object, "a frame is corrupt: it is not one whole zstd frame");
  }
  return content;
}

std::vector<uint8_t> ReadZstdFrame(BufferedReader* reader, uint64_t max_content_bytes) {
  const uint64_t offset = reader->position();
  const auto append = [&](size_t size, std::vector<uint8_t>* out) {
    if (AppendFrom(reader, size, out) < size)
      throw CutShortAt(reader->position(), reader->name(), "zstd frame");
  };
  const ByteSpan head = reader->Peek(kMaxFrameHeaderBytes);
  const uint64_t content_bytes = CheckFrameHeader(head, max_content_bytes, reader->name(), offset);
  const size_t max_frame_bytes = ZSTD_compressBound(content_bytes) + kMaxFrameHeaderBytes + kChecksumBytes;

  std::vector<uint8_t> frame;
  append(FrameHeaderBytes(head[4]), &frame);
  for (bool last = false; !last;) {
    const size_t block = frame.size();
    append(3, &frame);
    const uint32_t header = frame[block] | frame[block + 1] << 8 | frame[block + 2] << 16;
    last = (header & 1) != 0;
    const uint32_t type = header >> 1 & 3;
    const uint32_t size = type == 1 ? 1 : header >> 3;  // type 1 repeats one byte
    if (type == 3 || frame.size() + size > max_frame_bytes) {
      throw BadInputAt(offset, reader->name(), "a frame is corrupt: its blocks are not those of zstd");
    }
    append(size, &frame);
  }
  append(kChecksumBytes, &frame);
  return frame;
}

}  // namespace trainwright

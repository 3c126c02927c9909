#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/io/byte_source.h"
#include "lib/io/zstd_memory.h"

namespace trainwright {
namespace {

constexpr size_t kInputBufferBytes = 1 << 18;

Error CutStream(const std::string& name, const char* format, uint64_t offset) {
  return Error(ErrorCode::kBadInput, name, std::string(format) + " data ends in the middle",
               "compressed byte " + std::to_string(offset), "the file or its producer was cut short");
}

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<BufferedReader> reader)
      : reader_(std::move(reader)), context_(ZSTD_createDCtx()), input_(kInputBufferBytes) {
    if (context_ == nullptr) throw std::bad_alloc();
  }
  ~ZstdSource() override { ZSTD_freeDCtx(context_); }
  size_t Read(uint8_t* out, size_t size) override {
    ZSTD_outBuffer output = {out, size, 0};
    while (output.pos == 0) {
      if (pending_.pos == pending_.size) {
        const size_t count = reader_->Read(input_.data(), input_.size());
        if (count == 0) {
          if (in_frame_) throw CutStream(reader_->name(), "zstd", reader_->position());
          return 0;
        }
        pending_ = {input_.data(), count, 0};
      }
      const size_t result = ZSTD_decompressStream(context_, &output, &pending_);
      ThrowIfNoMemory(result);
      if (ZSTD_isError(result)) {
        const bool too_far = ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge;
        throw Error(
            ErrorCode::kBadInput, reader_->name(), std::string("zstd: ") + ZSTD_getErrorName(result),
            "near compressed byte " + std::to_string(reader_->position() - pending_.size + pending_.pos),
            too_far ? "its window is over 128 MiB: give what 'zstd -dc --long=31' makes of it" : "");
      }
      in_frame_ = result != 0;
    }
    return output.pos;
  }
  const std::string& name() const override { return reader_->name(); }

 private:
  std::unique_ptr<BufferedReader> reader_;
  ZSTD_DCtx* context_;
  std::vector<uint8_t> input_;
  ZSTD_inBuffer pending_ = {nullptr, 0, 0};
  bool in_frame_ = false;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<BufferedReader> reader)
      : reader_(std::move(reader)), input_(kInputBufferBytes) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  size_t Read(uint8_t* out, size_t size) override {
    stream_.next_out = out;
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(size, 1 << 30));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0) {
        const size_t count = reader_->Read(input_.data(), input_.size());
        if (count == 0) {
          if (in_member_) throw CutStream(reader_->name(), "gzip", reader_->position());
          return 0;
        }
        stream_.next_in = input_.data();
        stream_.avail_in = static_cast<uInt>(count);
      }
      if (!in_member_) {
        // Tapes and block devices pad what they hold with zeros.
        for (; stream_.avail_in > 0 && *stream_.next_in == 0; --stream_.avail_in) ++stream_.next_in;
        if (stream_.avail_in == 0) continue;
        inflateReset(&stream_);
        in_member_ = true;
      }
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result == Z_STREAM_END) {
        in_member_ = false;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        throw Error(ErrorCode::kBadInput, reader_->name(),
                    std::string("gzip: ") + (stream_.msg != nullptr ? stream_.msg : "corrupt data"),
                    "near compressed byte " + std::to_string(reader_->position() - stream_.avail_in));
      }
    }
    return room - stream_.avail_out;
  }
  const std::string& name() const override { return reader_->name(); }

 private:
  std::unique_ptr<BufferedReader> reader_;
  z_stream stream_ = {};
  std::vector<uint8_t> input_;
  bool in_member_ = false;
};

class PassThrough final : public ByteSource {
 public:
  explicit PassThrough(std::unique_ptr<BufferedReader> reader) : reader_(std::move(reader)) {}
  size_t Read(uint8_t* out, size_t size) override { return reader_->ReadSome(out, size); }
  const std::string& name() const override { return reader_->name(); }

 private:
  std::unique_ptr<BufferedReader> reader_;
};

constexpr std::string_view kGzipMagic = "\x1F\x8B", kZstdMagic = "\x28\xB5\x2F\xFD";
constexpr std::string_view kEndOfSkippableMagic = "\x2A\x4D\x18";  // behind a byte from 0x50 to 0x5F

/// A frame that others skip may come first, as pzstd has it; where it holds the header of a file of this
/// suite, the content is a shard.
bool BeginsWithSkippableFrame(std::string_view start) {
  constexpr size_t kHeaderBytes = 8;
  return start.size() >= 4 && (start[0] & 0xF0) == 0x50 && start.substr(1, 3) == kEndOfSkippableMagic &&
         !start.substr(std::min(start.size(), kHeaderBytes)).starts_with("\x89TW");
}

bool IsZstd(ByteSpan start) {
  return AsText(start).starts_with(kZstdMagic) || BeginsWithSkippableFrame(AsText(start));
}

bool IsGzip(ByteSpan start) {
  return AsText(start).starts_with(kGzipMagic);
}

/// The compression that a name implies, of a file that ends before its content could show it; or null.
const char* CutInsideMagic(const std::string& name, ByteSpan start) {
  if (name.ends_with(".gz") && kGzipMagic.starts_with(AsText(start))) return "gzip";
  if (name.ends_with(".zst") && kZstdMagic.starts_with(AsText(start))) return "zstd";
  return nullptr;
}

}  // namespace

bool IsCompressed(ByteSpan start) {
  return IsZstd(start) || IsGzip(start);
}

std::unique_ptr<ByteSource> DecompressIfNeeded(std::unique_ptr<ByteSource> source) {
  auto reader = std::make_unique<BufferedReader>(std::move(source));
  const ByteSpan start = reader->Peek(kStartBytes);
  if (IsZstd(start)) return std::make_unique<ZstdSource>(std::move(reader));
  if (IsGzip(start)) return std::make_unique<GzipSource>(std::move(reader));
  if (const char* format = CutInsideMagic(reader->name(), start)) {
    throw CutStream(reader->name(), format, start.size());
  }
  return std::make_unique<PassThrough>(std::move(reader));
}

}  // namespace trainwright

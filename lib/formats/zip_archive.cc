#include "lib/formats/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "lib/formats/bad_input.h"

namespace trainwright {
namespace {

constexpr uint32_t kLocalMagic = 0x04034B50, kCentralMagic = 0x02014B50, kEndMagic = 0x06054B50;
constexpr uint32_t kEnd64Magic = 0x06064B50, kLocator64Magic = 0x07064B50;
constexpr size_t kEndBytes = 22, kLocator64Bytes = 20, kEnd64Bytes = 56, kLocalBytes = 30;
constexpr size_t kMaxCommentBytes = 65535;
constexpr uint32_t kIn64 = 0xFFFFFFFF;
constexpr uint16_t kEncrypted = 1, kZip64Extra = 1;

class EntrySource final : public ByteSource {
 public:
  EntrySource(ByteSpan stored, const ZipEntry& entry, std::string name)
      : stored_(stored), entry_(entry), name_(std::move(name)) {
    if (entry_.deflated && inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~EntrySource() override {
    if (entry_.deflated) inflateEnd(&stream_);
  }
  size_t Read(uint8_t* out, size_t size) override {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(size, entry_.content_bytes - given_));
    const size_t count = wanted == 0 ? 0 : entry_.deflated ? Inflate(out, wanted) : Copy(out, wanted);
    crc_ = crc32_z(crc_, out, count);
    given_ += count;
    if (count < wanted || (given_ == entry_.content_bytes && crc_ != entry_.crc32)) {
      throw BadInputAt(entry_.offset, name_, "the entry is corrupt: its content is not what its CRC-32 says");
    }
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  size_t Copy(uint8_t* out, size_t size) {
    const ByteSpan part = stored_.subspan(given_, size);
    std::copy(part.begin(), part.end(), out);
    return size;
  }
  size_t Inflate(uint8_t* out, size_t size) {
    size = std::min<size_t>(size, 1u << 30);
    stream_.next_out = out;
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out > 0) {
      if (stream_.avail_in == 0) {
        const ByteSpan part =
            stored_.subspan(consumed_, std::min<size_t>(stored_.size() - consumed_, 1u << 30));
        stream_.next_in = const_cast<uint8_t*>(part.data());
        stream_.avail_in = static_cast<uInt>(part.size());
        consumed_ += part.size();
      }
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result != Z_OK) break;
    }
    return size - stream_.avail_out;
  }

  const ByteSpan stored_;
  const ZipEntry entry_;
  const std::string name_;
  z_stream stream_ = {};
  size_t consumed_ = 0;
  uint64_t given_ = 0;
  uLong crc_ = 0;
};

}  // namespace

ZipArchive::ZipArchive(ByteSpan bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
  const auto corrupt = [&](uint64_t offset, const std::string& why) {
    return BadInputAt(offset, name_, "is no zip archive that can be read: " + why);
  };
  const auto parser_at = [&](uint64_t offset, uint64_t size) {
    if (offset > bytes_.size() || size > bytes_.size() - offset) throw corrupt(offset, "it is cut short");
    return ByteParser(bytes_.subspan(offset, size));
  };
  if (bytes_.size() < kEndBytes) throw corrupt(0, "it is cut short");
  uint64_t end = bytes_.size() - kEndBytes;
  const uint64_t stop = end > kMaxCommentBytes ? end - kMaxCommentBytes : 0;
  while (parser_at(end, 4).Read<uint32_t>() != kEndMagic) {
    if (end == stop) throw corrupt(bytes_.size(), "it has no directory at its end");
    --end;
  }
  ByteParser last = parser_at(end, kEndBytes);
  last.ReadBytes(10);
  uint64_t count = last.Read<uint16_t>();
  uint64_t directory_bytes = last.Read<uint32_t>(), directory = last.Read<uint32_t>();
  if (end >= kLocator64Bytes && parser_at(end - kLocator64Bytes, 4).Read<uint32_t>() == kLocator64Magic) {
    ByteParser locator = parser_at(end - kLocator64Bytes, kLocator64Bytes);
    locator.ReadBytes(8);
    ByteParser end64 = parser_at(locator.Read<uint64_t>(), kEnd64Bytes);
    if (end64.Read<uint32_t>() != kEnd64Magic) throw corrupt(end, "its 64-bit directory is missing");
    end64.ReadBytes(28);
    count = end64.Read<uint64_t>();
    directory_bytes = end64.Read<uint64_t>();
    directory = end64.Read<uint64_t>();
  }
  ByteParser parser = parser_at(directory, directory_bytes);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = directory + parser.position();
    ZipEntry entry;
    const auto magic = parser.Read<uint32_t>();
    parser.ReadBytes(4);
    const auto flags = parser.Read<uint16_t>();
    const auto method = parser.Read<uint16_t>();
    parser.ReadBytes(4);
    entry.crc32 = parser.Read<uint32_t>();
    entry.stored_bytes = parser.Read<uint32_t>();
    entry.content_bytes = parser.Read<uint32_t>();
    const auto name_bytes = parser.Read<uint16_t>();
    const auto extra_bytes = parser.Read<uint16_t>();
    const auto comment_bytes = parser.Read<uint16_t>();
    parser.ReadBytes(8);
    uint64_t local = parser.Read<uint32_t>();
    entry.name = AsText(parser.ReadBytes(name_bytes));
    ByteParser extra(parser.ReadBytes(extra_bytes));
    parser.ReadBytes(comment_bytes);
    if (parser.failed() || magic != kCentralMagic) throw corrupt(at, "its directory is corrupt");
    while (extra.remaining() >= 4 && !extra.failed()) {
      const auto id = extra.Read<uint16_t>();
      ByteParser field(extra.ReadBytes(extra.Read<uint16_t>()));
      if (id != kZip64Extra) continue;
      for (uint64_t* value : {&entry.content_bytes, &entry.stored_bytes, &local}) {
        if (*value == kIn64) *value = field.Read<uint64_t>();
      }
      if (field.failed()) throw corrupt(at, "its directory is corrupt");
    }
    if ((flags & kEncrypted) != 0) throw corrupt(at, "entry " + entry.name + " is encrypted");
    if (method != 0 && method != 8) {
      throw corrupt(at, "entry " + entry.name + " is compressed by method " + std::to_string(method) +
                            "; 0 (stored) and 8 (deflate) are read");
    }
    entry.deflated = method == 8;
    ByteParser head = parser_at(local, kLocalBytes);
    if (head.Read<uint32_t>() != kLocalMagic) throw corrupt(local, "an entry is missing");
    head.ReadBytes(22);
    const uint64_t local_name = head.Read<uint16_t>();
    entry.offset = local + kLocalBytes + local_name + head.Read<uint16_t>();
    parser_at(entry.offset, entry.stored_bytes);
    if (!entry.deflated && entry.stored_bytes != entry.content_bytes) {
      throw corrupt(at, "the sizes of entry " + entry.name + " disagree");
    }
    place_of_.emplace(entry.name, entries_.size());
    entries_.push_back(std::move(entry));
  }
}

const ZipEntry* ZipArchive::Find(const std::string& entry_name) const {
  const auto found = place_of_.find(entry_name);
  return found == place_of_.end() ? nullptr : &entries_[found->second];
}

std::unique_ptr<ByteSource> ZipArchive::Open(const ZipEntry& entry) const {
  return std::make_unique<EntrySource>(bytes_.subspan(entry.offset, entry.stored_bytes), entry,
                                       name_ + ", " + entry.name);
}

ByteSpan ZipArchive::Stored(const ZipEntry& entry) const {
  if (entry.deflated) throw BadInputAt(entry.offset, name_, "entry " + entry.name + " is compressed");
  const ByteSpan content = bytes_.subspan(entry.offset, entry.stored_bytes);
  if (crc32_z(0, content.data(), content.size()) != entry.crc32) {
    throw BadInputAt(entry.offset, name_, "entry " + entry.name + " is corrupt: its CRC-32 does not match");
  }
  return content;
}

}  // namespace trainwright

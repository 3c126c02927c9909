#include "tests/fuzz/repair.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/codec/compressed_file.h"

namespace trainwright::fuzz {
namespace {

/// Integers at any place of a byte string; out of range they read as zero and write nowhere.
class Patcher {
 public:
  explicit Patcher(ByteSpan bytes) : bytes_(bytes.begin(), bytes.end()) {}

  template <typename Integer>
  uint64_t Get(uint64_t offset) const {
    Integer value{};
    if (Has(offset, sizeof(value))) std::memcpy(&value, bytes_.data() + offset, sizeof(value));
    return value;
  }
  bool Has(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }
  /// Puts the hash of [begin, end) at `end`.
  /// \returns false when it does not fit
  bool Hash(uint64_t begin, uint64_t end) {
    return end >= begin && Has(begin, end - begin) && HashTo(begin, end, end);
  }
  bool HashTo(uint64_t begin, uint64_t end, uint64_t place) {
    if (end < begin || !Has(begin, end - begin) || !Has(place, 8)) return false;
    const uint64_t hash = Xxh3(ByteSpan(bytes_).subspan(begin, end - begin));
    std::memcpy(bytes_.data() + place, &hash, sizeof(hash));
    return true;
  }
  /// \returns the size of the file header at `start`, or 0
  uint64_t RepairHeader(uint64_t start) {
    const uint64_t size = Get<uint32_t>(start + 12);
    if (size < 112 || !Has(start, size)) return 0;
    const uint64_t model = Get<uint32_t>(start + 96);
    if (model > 0 && model <= size - 112) {
      const uint64_t extension = std::min(Get<uint32_t>(start + 100), size - 112 - model);
      const Sha256Digest digest =
          Sha256Of(ByteSpan(bytes_).subspan(start + size - 8 - extension - model, model));
      std::copy(digest.begin(), digest.end(), bytes_.begin() + static_cast<ptrdiff_t>(start + 56));
    }
    Hash(start, start + size - 8);
    return size;
  }
  std::vector<uint8_t> Take() { return std::move(bytes_); }
  uint64_t size() const { return bytes_.size(); }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace

std::vector<uint8_t> RepairTokenStream(ByteSpan bytes) {
  Patcher file(bytes);
  uint64_t at = file.RepairHeader(0);
  const uint64_t width = file.Get<uint8_t>(53);
  while (at > 0 && file.Has(at, 16)) {
    const uint64_t tag = file.Get<uint32_t>(at);
    if (tag == 0x444E4554) {  // TEND
      file.Hash(0, at + 40);
      break;
    }
    const uint64_t end = at + 16 + file.Get<uint32_t>(at + 8) + file.Get<uint32_t>(at + 12) * width;
    if (!file.Hash(at, end)) break;
    at = end + 8;
  }
  return file.Take();
}

std::vector<uint8_t> RepairShard(ByteSpan bytes) {
  Patcher file(bytes);
  const uint64_t header_bytes = 8 + file.RepairHeader(8);
  const uint64_t frames = file.Get<uint32_t>(file.size() - 9) - 2;
  const uint64_t seek_bytes = 8 + (frames + 2) * 8 + 9;
  const uint64_t index_bytes = 8 + 136 + frames * 48 + 32;
  if (frames < 1000 && seek_bytes + index_bytes <= file.size()) {
    const uint64_t index = file.size() - seek_bytes - index_bytes;
    file.HashTo(0, header_bytes, index + 40);
    for (uint64_t i = 0; i < frames; ++i) {
      const uint64_t entry = index + 144 + i * 48;
      const uint64_t offset = file.Get<uint64_t>(entry);
      if (offset < file.size()) file.HashTo(offset, offset + file.Get<uint32_t>(entry + 32), entry + 8);
    }
    file.Hash(index, index + index_bytes - 8);
  }
  return file.Take();
}

std::vector<uint8_t> RepairCompressedContainer(ByteSpan bytes) {
  std::vector<uint8_t> repaired(bytes.begin(), bytes.end());
  const std::string mark = "\"trainwright.xxh3\":\"";
  const size_t digits = 16;
  if (bytes.size() < 8) return repaired;
  const auto size = ByteParser(bytes).Read<uint64_t>();
  if (size > bytes.size() - 8) return repaired;
  std::string text(AsText(bytes.subspan(8, size)));
  const size_t at = text.find(mark);
  if (at == std::string::npos || text.size() - at < mark.size() + digits) return repaired;
  text.replace(at + mark.size(), digits, digits, '0');
  char hash[digits + 1];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(Xxh3(AsBytes(text))));
  std::copy_n(hash, digits, repaired.begin() + static_cast<ptrdiff_t>(8 + at + mark.size()));
  return repaired;
}

std::vector<uint8_t> RepairCompressedStream(ByteSpan bytes) {
  Patcher patcher(bytes);
  const auto json_bytes = patcher.Get<uint64_t>(8);
  if (json_bytes > bytes.size() || !patcher.Hash(0, 16 + json_bytes)) return patcher.Take();
  std::vector<uint8_t> repaired = patcher.Take();
  if (repaired.size() < kStreamTrailerBytes) return repaired;
  try {
    const CompressedHead head = ParseStreamHead(repaired, "input");
    const uint64_t trailer = repaired.size() - kStreamTrailerBytes;
    const auto footer_bytes = ByteParser(ByteSpan(repaired).subspan(trailer)).Read<uint64_t>();
    if (footer_bytes > trailer) return repaired;
    const uint64_t hash =
        Xxh3(ByteSpan(repaired).subspan(trailer - footer_bytes, footer_bytes + 8), head.source_header_hash);
    std::memcpy(repaired.data() + trailer + 8, &hash, sizeof(hash));
  } catch (const Error&) {
  }
  return repaired;
}

}  // namespace trainwright::fuzz

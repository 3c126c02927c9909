#include "lib/base/bytes.h"

namespace trainwright {

void AppendVarint(std::vector<uint8_t>* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<uint8_t>(value) | 0x80);
    value >>= 7;
  }
  out->push_back(static_cast<uint8_t>(value));
}

uint64_t ByteParser::ReadVarint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = Read<uint8_t>();
    if (failed_) return 0;
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) {
      const bool overflows = shift == 63 && byte > 1;
      const bool overlong = shift > 0 && byte == 0;  // one value, one spelling
      if (overflows || overlong) break;
      return value;
    }
  }
  failed_ = true;
  return 0;
}

ByteSpan ByteParser::ReadBytes(uint64_t size) {
  if (failed_ || size > remaining()) {
    failed_ = true;
    return {};
  }
  const ByteSpan view = bytes_.subspan(position_, size);
  position_ += size;
  return view;
}

std::string HexEncode(ByteSpan bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

}  // namespace trainwright

/// Little-endian encoding and decoding of the integers that the file formats are made of.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace trainwright {

static_assert(std::endian::native == std::endian::little,
              "the formats are written with memcpy on little-endian machines");

using ByteSpan = std::span<const uint8_t>;

inline ByteSpan AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Appends the little-endian bytes of an integer.
template <typename Integer>
requires std::is_integral_v<Integer>
void AppendInteger(std::vector<uint8_t>* out, Integer value) {
  // Not insert(): g++ 12 warns of an overflow that cannot happen.
  const size_t start = out->size();
  out->resize(start + sizeof(value));
  std::memcpy(out->data() + start, &value, sizeof(value));
}
inline void AppendBytes(std::vector<uint8_t>* out, ByteSpan bytes) {
  out->insert(out->end(), bytes.begin(), bytes.end());
}
/// Appends an unsigned LEB128 varint (1 to 10 bytes).
void AppendVarint(std::vector<uint8_t>* out, uint64_t value);

/// Reads integers off a byte span. Running past the end, or an overlong varint, sets failed() and yields
/// zeros from then on, so a parser checks once at the end of a structure.
class ByteParser {
 public:
  explicit ByteParser(ByteSpan bytes) : bytes_(bytes) {}

  template <typename Integer>
  requires std::is_integral_v<Integer> Integer Read() {
    Integer value{};
    if (const ByteSpan raw = ReadBytes(sizeof(value)); !raw.empty())
      std::memcpy(&value, raw.data(), sizeof(value));
    return value;
  }
  uint64_t ReadVarint();
  /// The next `size` bytes as a view into the parsed span; empty on failure.
  ByteSpan ReadBytes(uint64_t size);
  uint64_t remaining() const { return bytes_.size() - position_; }
  uint64_t position() const { return position_; }
  bool failed() const { return failed_; }

 private:
  ByteSpan bytes_;
  uint64_t position_ = 0;
  bool failed_ = false;
};

/// "0123abcd..." in lower case.
std::string HexEncode(ByteSpan bytes);

}  // namespace trainwright

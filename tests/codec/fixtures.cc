#include "tests/codec/fixtures.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace trainwright::test {
namespace {

/// The bits of a value in a type; of integers the value itself.
uint64_t BitsOf(ElementType type, double value) {
  switch (type) {
    case ElementType::kFloat64:
      return std::bit_cast<uint64_t>(value);
    case ElementType::kFloat32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case ElementType::kFloat16:
      return std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
    default:
      return static_cast<uint64_t>(static_cast<int64_t>(value * 100));
  }
}

uint64_t SpecialBits(size_t bits, uint64_t draw) {
  const uint64_t sign = (draw & 1) << (bits - 1), mantissa = draw >> 20;
  const int exponent_bits = bits == 64 ? 11 : 8;
  const int mantissa_bits = static_cast<int>(bits) - 1 - exponent_bits;
  if (bits == 8) return draw;
  const uint64_t full = ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  const uint64_t mask = (uint64_t{1} << mantissa_bits) - 1;
  switch (draw >> 1 & 3) {
    case 0:
      return sign;  // zero
    case 1:
      return sign | full;  // infinity
    case 2:
      return sign | full | (mantissa & mask);  // NaN
    default:
      return sign | (mantissa & mask & 0xff);  // denormal
  }
}

}  // namespace

std::vector<uint8_t> MakeTensor(ElementType type, Content content, size_t elements, size_t columns,
                                std::mt19937_64* random) {
  const size_t width = ElementBytes(type);
  std::vector<uint8_t> bytes(elements * width);
  std::normal_distribution<double> normal;
  const auto scale = [](uint64_t i) { return std::exp2(static_cast<double>(i * 0x9E3779B97F4A7C15u >> 61)); };
  for (size_t i = 0; i < elements; ++i) {
    uint64_t bits = 0;
    switch (content) {
      case Content::kZero:
        break;
      case Content::kNormal:
        bits = BitsOf(type, 0.02 * normal(*random));
        break;
      case Content::kScaled:
        bits = BitsOf(type, 0.01 * scale(i / columns) * scale(i % columns + 77) * normal(*random));
        break;
      case Content::kRandom:
        bits = (*random)();
        break;
      case Content::kRepeated:
        bits = (i % 97) * 0x0123456789abcdefu;
        break;
      case Content::kSmallInts:
        bits = (*random)() % 1000;
        break;
      case Content::kSpecial:
        bits = SpecialBits(8 * width, (*random)());
        break;
    }
    std::memcpy(bytes.data() + i * width, &bits, width);
  }
  return bytes;
}

std::vector<uint8_t> DecodeAll(ByteSpan coded, std::optional<ByteSpan> base, int threads) {
  const CodedTensor tensor(coded, "coded", base);
  std::vector<uint8_t> out(tensor.decoder().size_bytes());
  tensor.Decode(out, threads);
  return out;
}

}  // namespace trainwright::test

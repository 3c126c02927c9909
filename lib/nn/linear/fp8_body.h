/// Conversions between fp32 and the types of fp8_format.h; included by those who convert, for each
/// instruction set of a CPU and for a GPU, inside their namespaces. They define TRAINWRIGHT_FP8, which comes
/// before each function, and BitsToFloat and FloatToBits.

/// \tparam kFractionBits 3 or 2, kBias of the exponent, kNan the least code of a NaN, kInfinity that of
/// infinity or 0: there is none
template <int kFractionBits, int kBias, int kNan, int kInfinity>
struct Fp8Codes {
  static constexpr int kDropped = 23 - kFractionBits;
  static constexpr uint32_t kLeastNormal = static_cast<uint32_t>(128 - kBias) << 23;  // as fp32

  TRAINWRIGHT_FP8 static float Largest() { return kFractionBits == 3 ? 448.0f : 57344.0f; }
  /// The distance of subnormals.
  TRAINWRIGHT_FP8 static float Unit() { return kFractionBits == 3 ? 0x1p-9f : 0x1p-16f; }

  /// The code of the nearest value, ties to even; of a larger magnitude than the largest that of the largest;
  /// a NaN for a NaN.
  TRAINWRIGHT_FP8 static uint8_t Of(float value) {
    const uint32_t bits = FloatToBits(value), magnitude_bits = bits & 0x7FFFFFFFu;
    const float magnitude = BitsToFloat(magnitude_bits);
    const bool is_nan = magnitude_bits > 0x7F800000u;
    const float clamped = magnitude > Largest() ? Largest() : magnitude;
    const uint32_t clamped_bits = FloatToBits(clamped);
    // A power of two whose fp32 neighbours lie as far apart as the fp8 values around `clamped`: adding it
    // drops what is below.
    const uint32_t exponent = clamped_bits & 0x7F800000u;
    const float coarse = BitsToFloat((exponent < kLeastNormal ? kLeastNormal : exponent) +
                                     (static_cast<uint32_t>(kDropped) << 23));
    const float rounded = (clamped + coarse) - coarse;
    const uint32_t rounded_bits = FloatToBits(rounded);
    const bool is_normal = rounded_bits >= kLeastNormal;
    const auto subnormal = static_cast<uint32_t>(static_cast<int32_t>((is_normal ? 0.0f : rounded) / Unit()));
    const uint32_t normal = (rounded_bits - (static_cast<uint32_t>(127 - kBias) << 23)) >> kDropped;
    const uint32_t finite = is_normal ? normal : subnormal;
    return static_cast<uint8_t>((is_nan ? 0x7Fu : finite) | (bits >> 24 & 0x80u));
  }

  TRAINWRIGHT_FP8 static float Value(uint8_t code) {
    const uint32_t magnitude = code & 0x7Fu, sign = static_cast<uint32_t>(code & 0x80u) << 24;
    const uint32_t normal = (magnitude << kDropped) + (static_cast<uint32_t>(127 - kBias) << 23);
    const uint32_t subnormal = FloatToBits(static_cast<float>(static_cast<int32_t>(magnitude)) * Unit());
    const uint32_t finite = magnitude < (1u << kFractionBits) ? subnormal : normal;
    const uint32_t not_finite = magnitude == static_cast<uint32_t>(kInfinity) ? 0x7F800000u : 0x7FC00000u;
    const bool is_finite = magnitude < static_cast<uint32_t>(kInfinity != 0 ? kInfinity : kNan);
    return BitsToFloat((is_finite ? finite : not_finite) | sign);
  }
};

using E4m3 = Fp8Codes<3, 7, 0x7F, 0>;
using E5m2 = Fp8Codes<2, 15, 0x7D, 0x7C>;

/// Calls function.operator()<Codes>().
template <typename Function>
inline auto WithFp8(Fp8Format format, const Function& function) {
  return format == Fp8Format::kE4m3 ? function.template operator()<E4m3>()
                                    : function.template operator()<E5m2>();
}

TRAINWRIGHT_FP8 float LargestOf(Fp8Format format) {
  return format == Fp8Format::kE4m3 ? E4m3::Largest() : E5m2::Largest();
}

/// What a tensor is multiplied by before it becomes fp8, and what its fp8 values are multiplied by.
struct Fp8Scale {
  float scale, factor;
};

/// \param largest_bits of the magnitude that is largest in the order of bits: a NaN is above infinity,
///     which is above all numbers
/// \param largest_value of the format
TRAINWRIGHT_FP8 Fp8Scale ScaleOf(uint32_t largest_bits, float largest_value) {
  if (largest_bits == 0) return {1.0f, 1.0f};
  if (largest_bits >= 0x7F800000u) return {BitsToFloat(0x7FC00000u), BitsToFloat(0x7FC00000u)};
  const float largest = BitsToFloat(largest_bits);
  const float factor = largest_value / (largest < 0x1p-110f ? 0x1p-110f : largest);
  return {1.0f / factor, factor};
}

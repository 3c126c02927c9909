/// What the codec must know of a tensor's elements: their width, and whether they are floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace trainwright {

/// The numbers are those of man/trainwright-codec.5. 16-bit floats of both kinds (bf16, fp16) are coded
/// alike; 8-bit floats, and whatever has no type of its own, are coded as kInt8.
enum class ElementType : uint8_t {
  kInt8 = 0,
  kInt16 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kFloat16 = 4,
  kFloat32 = 5,
  kFloat64 = 6,
};
inline constexpr int kElementTypes = 7;

constexpr size_t ElementBytes(ElementType type) {
  const int number = static_cast<int>(type);
  return size_t{1} << (number < 4 ? number : number - 3);
}
constexpr bool IsFloat(ElementType type) {
  return type >= ElementType::kFloat16;
}

/// The type for a dtype name of safetensors ("BF16", "I64", ...); kFloat32 for C64, kInt8 for 8-bit types and
/// unknown ones.
ElementType ElementTypeOf(const std::string& safetensors_dtype);

}  // namespace trainwright

/// Tensors for the tests of the codec.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "lib/codec/element_type.h"
#include "lib/codec/tensor_decoder.h"
#include "lib/codec/tensor_encoder.h"

namespace trainwright::test {

inline constexpr ElementType kAllTypes[] = {
    ElementType::kInt8,    ElementType::kInt16,   ElementType::kInt32,  ElementType::kInt64,
    ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64};
inline constexpr CodecLevel kAllLevels[] = {CodecLevel::kFast, CodecLevel::kDefault, CodecLevel::kMax};

/// What tensors hold: kNormal is weights, kScaled weights whose rows and columns differ in scale, kRandom
/// bytes that nothing can shrink, kSpecial NaNs, infinities, denormals and zeros of both signs.
enum class Content { kZero, kNormal, kScaled, kRandom, kRepeated, kSmallInts, kSpecial };
inline constexpr Content kAllContents[] = {Content::kZero,   Content::kNormal,   Content::kScaled,
                                           Content::kRandom, Content::kRepeated, Content::kSmallInts,
                                           Content::kSpecial};

/// The little-endian bytes of `elements` elements; kScaled has rows of `columns`. 16-bit floats are bf16.
std::vector<uint8_t> MakeTensor(ElementType type, Content content, size_t elements, size_t columns,
                                std::mt19937_64* random);

/// Decodes everything.
std::vector<uint8_t> DecodeAll(ByteSpan coded, std::optional<ByteSpan> base = {}, int threads = 1);

}  // namespace trainwright::test

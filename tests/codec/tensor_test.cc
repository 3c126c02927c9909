// Whole coded tensors: what goes in comes out, and nothing else does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "lib/base/error.h"
#include "lib/codec/tensor_decoder.h"
#include "lib/codec/tensor_encoder.h"
#include "tests/codec/fixtures.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::Content;
using test::DecodeAll;
using test::MakeTensor;

constexpr size_t kColumns = 96;

TensorView ViewOf(ElementType type, const std::vector<uint8_t>& bytes, size_t columns = kColumns) {
  TensorView view{.type = type, .bytes = bytes};
  if (const uint64_t rows = bytes.size() / ElementBytes(type) / columns; rows > 0 && IsFloat(type))
    view.matrices = {{0, rows, columns}};
  return view;
}

TEST(CodedTensorTest, DecodesToWhatWasEncoded) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const ElementType type : test::kAllTypes) {
    for (const Content content : test::kAllContents) {
      for (const size_t elements : {0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 4096, 4097, 20'011}) {
        const std::vector<uint8_t> bytes = MakeTensor(type, content, elements, kColumns, &random);
        for (const CodecLevel level : test::kAllLevels) {
          for (const int block_log2 : {10, 13, 18}) {
            SCOPED_TRACE(testing::Message()
                         << "type " << static_cast<int>(type) << " content " << static_cast<int>(content)
                         << " elements " << elements << " level " << static_cast<int>(level) << " blocks 2^"
                         << block_log2);
            const std::vector<uint8_t> coded = EncodeTensor(ViewOf(type, bytes), level, 1, block_log2);
            ASSERT_EQ(DecodeAll(coded), bytes);
            ASSERT_LE(coded.size(), CodedTensorBound(type, elements, block_log2));
          }
        }
      }
    }
  }
}

TEST(CodedTensorTest, SymbolsThatNoSampleHasComeBack) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  for (const CodecLevel level : test::kAllLevels) {
    for (int round = 0; round < 20; ++round) {
      std::vector<uint8_t> bytes(300'000);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(100 + std::countl_zero(random() | 1) % 8);
      for (int odd = 0; odd < 4; ++odd) bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
      const std::vector<uint8_t> coded = EncodeTensor({.type = ElementType::kInt8, .bytes = bytes}, level);
      ASSERT_LT(coded.size(), bytes.size() / 3);
      ASSERT_EQ(test::DecodeAll(coded), bytes);
    }
  }
}

TEST(CodedTensorTest, ShrinksWhatCanShrink) {
  std::mt19937_64 random(1);
  const auto ratio = [&](ElementType type, Content content, CodecLevel level) {
    const std::vector<uint8_t> bytes = MakeTensor(type, content, 200'000, kColumns, &random);
    const std::vector<uint8_t> coded = EncodeTensor(ViewOf(type, bytes), level);
    return static_cast<double>(bytes.size()) / static_cast<double>(coded.size());
  };
  // A normal bf16 has about 2.5 bits of exponent, 1 of sign and 7 of mantissa.
  EXPECT_GT(ratio(ElementType::kFloat16, Content::kNormal, CodecLevel::kFast), 1.49);
  EXPECT_GT(ratio(ElementType::kFloat16, Content::kNormal, CodecLevel::kDefault), 1.49);
  EXPECT_GT(ratio(ElementType::kInt32, Content::kSmallInts, CodecLevel::kDefault), 3.1);
  EXPECT_GT(ratio(ElementType::kInt64, Content::kRepeated, CodecLevel::kDefault), 50);
  EXPECT_GT(ratio(ElementType::kFloat32, Content::kZero, CodecLevel::kFast), 1000);
}

TEST(CodedTensorTest, ThePredictorIsUsedWhereRowsAndColumnsDifferInScale) {
  std::mt19937_64 random(2);
  const std::vector<uint8_t> bytes =
      MakeTensor(ElementType::kFloat16, Content::kScaled, 512 * 96, 96, &random);
  const std::vector<uint8_t> with = EncodeTensor(ViewOf(ElementType::kFloat16, bytes), CodecLevel::kDefault);
  const std::vector<uint8_t> without =
      EncodeTensor({.type = ElementType::kFloat16, .bytes = bytes}, CodecLevel::kDefault);
  EXPECT_EQ(CodedTensor(with, "coded").decoder().transform(), TensorTransform::kRankOne);
  EXPECT_EQ(CodedTensor(without, "coded").decoder().transform(), TensorTransform::kNone);
  EXPECT_LT(with.size() * 20, without.size() * 19);
  EXPECT_EQ(DecodeAll(with), bytes);
}

TEST(CodedTensorTest, ADifferenceFromTheBaseIsCodedWhereItIsSmaller) {
  std::mt19937_64 random(3);
  for (const ElementType type : test::kAllTypes) {
    SCOPED_TRACE(static_cast<int>(type));
    const size_t width = ElementBytes(type);
    const std::vector<uint8_t> base = MakeTensor(type, Content::kRandom, 30'000, kColumns, &random);
    std::vector<uint8_t> bytes = base;
    for (size_t i = 0; i < bytes.size(); i += width) bytes[i] = static_cast<uint8_t>(bytes[i] + random() % 3);
    TensorView view = ViewOf(type, bytes);
    view.base = base;
    const std::vector<uint8_t> coded = EncodeTensor(view, CodecLevel::kDefault);
    EXPECT_LT(coded.size(), bytes.size() / 2);
    EXPECT_EQ(DecodeAll(coded, base), bytes);
    EXPECT_THROW(DecodeAll(coded), Error);
    std::vector<uint8_t> other = base;
    other[5] ^= 1;
    EXPECT_THROW(DecodeAll(coded, other), Error);
  }
}

TEST(CodedTensorTest, WithoutTheBaseBlocksAreCheckedAsStored) {
  std::mt19937_64 random(10);
  const std::vector<uint8_t> bytes =
      MakeTensor(ElementType::kInt16, Content::kRandom, 4096, kColumns, &random);
  const std::vector<uint8_t>& base = bytes;
  const std::vector<uint8_t> coded =
      EncodeTensor({.type = ElementType::kInt16, .bytes = bytes, .base = base}, CodecLevel::kDefault, 1, 10);
  const CodedTensor tensor(coded, "coded");
  ASSERT_EQ(tensor.decoder().transform(), TensorTransform::kBase);
  std::vector<uint8_t> block(2048);
  for (uint64_t b = 0; b < tensor.decoder().blocks(); ++b) {
    EXPECT_EQ(tensor.CheckBlock(b).planes, 2u);
    EXPECT_THAT(test::MessageOf([&] { tensor.DecodeBlock(b, block); }), testing::HasSubstr("--base"));
  }
}

TEST(CodedTensorTest, ATensorDoesNotPassForAnotherOfTheSameShape) {
  const std::vector<uint8_t> bytes(8192, 7);
  const TensorView view{.type = ElementType::kInt16, .bytes = bytes, .identity = 5};
  const std::vector<uint8_t> coded = EncodeTensor(view, CodecLevel::kDefault, 1, 10);
  std::vector<uint8_t> decoded(bytes.size());
  CodedTensor(coded, "coded", {}, 5).Decode(decoded);
  EXPECT_EQ(decoded, bytes);
  EXPECT_THROW(CodedTensor(coded, "coded", {}, 6), Error);
}

TEST(CodedTensorTest, TheBytesDoNotDependOnThreads) {
  std::mt19937_64 random(4);
  // The first matrix is large enough to be fitted by several threads.
  const std::vector<uint8_t> bytes =
      MakeTensor(ElementType::kFloat16, Content::kScaled, 13'000 * kColumns, kColumns, &random);
  TensorView view{.type = ElementType::kFloat16, .bytes = bytes};
  view.matrices = {{0, 12'000, kColumns}, {12'000 * kColumns, 1000, kColumns}};
  const std::vector<uint8_t> coded = EncodeTensor(view, CodecLevel::kDefault, 1, 14);
  ASSERT_EQ(CodedTensor(coded, "coded").decoder().transform(), TensorTransform::kRankOne);
  for (const int threads : {2, 3, 8}) {
    EXPECT_TRUE(EncodeTensor(view, CodecLevel::kDefault, threads, 14) == coded) << threads;
    EXPECT_TRUE(DecodeAll(coded, {}, threads) == bytes) << threads;
  }
}

TEST(CodedTensorTest, ARangeIsTheSameAsThatPartOfTheWhole) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const size_t elements = 10'000;
  const std::vector<uint8_t> bytes =
      MakeTensor(ElementType::kFloat16, Content::kScaled, elements, 96, &random);
  const std::vector<uint8_t> coded =
      EncodeTensor(ViewOf(ElementType::kFloat16, bytes), CodecLevel::kMax, 1, 11);
  const CodedTensor tensor(coded, "coded");
  for (int trial = 0; trial < 200; ++trial) {
    const uint64_t first = random() % (elements + 1), count = random() % (elements - first + 1);
    std::vector<uint8_t> part(2 * count);
    tensor.DecodeRange(first, count, part);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + static_cast<ptrdiff_t>(2 * first)))
        << first << " " << count;
  }
}

TEST(CodedTensorTest, ABadBlockDoesNotHideTheOthers) {
  std::mt19937_64 random(5);
  const std::vector<uint8_t> bytes = MakeTensor(ElementType::kFloat16, Content::kNormal, 8192, 96, &random);
  std::vector<uint8_t> coded =
      EncodeTensor(ViewOf(ElementType::kFloat16, bytes), CodecLevel::kDefault, 1, 11);
  const uint64_t offset = CodedTensor(coded, "coded").BlockOffset(2);
  coded[offset + 100] ^= 4;
  const CodedTensor tensor(coded, "weights.bin: tensor wte");
  std::vector<uint8_t> block(4096);
  for (const uint64_t good : {0, 1, 3}) {
    tensor.DecodeBlock(good, block);
    EXPECT_TRUE(std::equal(block.begin(), block.end(), bytes.begin() + static_cast<ptrdiff_t>(4096 * good)));
  }
  try {
    tensor.DecodeBlock(2, block);
    FAIL() << "a changed block was decoded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("weights.bin: tensor wte"));
    EXPECT_THAT(error.what(), testing::HasSubstr("block 2"));
    EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(offset)));
  }
}

/// A small coded tensor with every plane mode in it.
std::vector<uint8_t> SmallCoded() {
  std::mt19937_64 random(6);
  const std::vector<uint8_t> weights = MakeTensor(ElementType::kFloat32, Content::kScaled, 1500, 50, &random);
  return EncodeTensor({.type = ElementType::kFloat32, .bytes = weights}, CodecLevel::kMax, 1, 10);
}

TEST(CodedTensorTest, EveryProperPrefixIsRefused) {
  const std::vector<uint8_t> coded = SmallCoded();
  for (size_t size = 0; size < coded.size(); ++size)
    ASSERT_THROW(DecodeAll(ByteSpan(coded).first(size)), Error) << size;
}

TEST(CodedTensorTest, EveryFlippedBitIsRefused) {
  std::vector<uint8_t> coded = SmallCoded();
  for (size_t bit = 0; bit < 8 * coded.size(); ++bit) {
    coded[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    try {
      DecodeAll(coded);
      FAIL() << "bit " << bit << " was flipped, and the tensor decoded";
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kBadInput) << bit;
    }
    coded[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

TEST(CodedTensorTest, BlocksInAnotherOrderAreRefused) {
  std::mt19937_64 random(7);
  const std::vector<uint8_t> bytes = MakeTensor(ElementType::kInt8, Content::kRandom, 2048, 96, &random);
  std::vector<uint8_t> coded = EncodeTensor(ViewOf(ElementType::kInt8, bytes), CodecLevel::kFast, 1, 10);
  const CodedTensor tensor(coded, "coded");
  ASSERT_EQ(tensor.Block(0).size(), tensor.Block(1).size());
  const auto first = coded.begin() + static_cast<ptrdiff_t>(tensor.BlockOffset(0));
  const auto second = coded.begin() + static_cast<ptrdiff_t>(tensor.BlockOffset(1));
  std::swap_ranges(first, second, second);
  EXPECT_THROW(DecodeAll(coded), Error);
}

TEST(CodedTensorTest, AMatrixOutsideTheTensorIsAUsageError) {
  const std::vector<uint8_t> bytes(2000);
  const auto encode = [&](std::vector<MatrixPart> matrices) {
    TensorEncoder({.type = ElementType::kFloat16, .bytes = bytes, .matrices = std::move(matrices)},
                  CodecLevel::kDefault);
  };
  EXPECT_NO_THROW(encode({{0, 50, 10}, {500, 50, 10}}));
  EXPECT_THROW(encode({{0, 50, 10}, {499, 50, 10}}), Error);
  EXPECT_THROW(encode({{0, 1001, 1}}), Error);
  EXPECT_THROW(encode({{0, uint64_t{1} << 63, 2}}), Error);
}

}  // namespace
}  // namespace trainwright

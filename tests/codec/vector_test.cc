// The hex dump of man/trainwright-codec.5: the decoder reads it and the encoder writes it, byte for byte.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <sstream>

#include "tests/codec/fixtures.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// What the man page says is in it.
std::vector<uint8_t> Content() {
  std::vector<uint16_t> elements;
  uint16_t x = 1;
  for (int i = 0; i < 1024; ++i) {
    elements.push_back(static_cast<uint16_t>(std::countl_zero(x)));
    x = static_cast<uint16_t>(25173 * x + 13849);
  }
  elements.push_back(258);
  elements.push_back(772);
  std::vector<uint8_t> bytes(2 * elements.size());
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

TEST(CodecVectorTest, TheDecoderSeesWhatTheManPageSays) {
  const std::vector<uint8_t> coded = test::HexDumpOf("trainwright-codec.5");
  EXPECT_EQ(test::DecodeAll(coded), Content());
  const CodedTensor tensor(coded, "the vector");
  EXPECT_EQ(tensor.CheckBlock(0).mode[0], PlaneMode::kConst);
  EXPECT_EQ(tensor.CheckBlock(0).mode[1], PlaneMode::kRans);
  EXPECT_EQ(tensor.CheckBlock(1).mode[1], PlaneMode::kRaw);
}

TEST(CodecVectorTest, TheEncoderWritesTheBytesOfTheManPage) {
  const std::vector<uint8_t> content = Content();
  const std::vector<uint8_t> coded =
      EncodeTensor({.type = ElementType::kInt16, .bytes = content}, CodecLevel::kDefault, 1, 10);
  EXPECT_EQ(HexEncode(coded), HexEncode(test::HexDumpOf("trainwright-codec.5")));
}

}  // namespace
}  // namespace trainwright

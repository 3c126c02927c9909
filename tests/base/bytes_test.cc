#include "lib/base/bytes.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(VarintTest, AgreesWithTheExamplesOfTheLeb128Definition) {
  std::vector<uint8_t> out;
  AppendVarint(&out, 624485);  // the example of the DWARF and Wikipedia definitions
  EXPECT_EQ(out, (std::vector<uint8_t>{0xE5, 0x8E, 0x26}));
}

TEST(VarintTest, EveryMagnitudeRoundTrips) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const int64_t delta : {-1, 0, 1}) {
      const uint64_t value = (uint64_t{1} << bit) + static_cast<uint64_t>(delta);
      std::vector<uint8_t> out;
      AppendVarint(&out, value);
      ByteParser parser(out);
      EXPECT_EQ(parser.ReadVarint(), value);
      EXPECT_FALSE(parser.failed());
      EXPECT_EQ(parser.remaining(), 0u);
    }
  }
}

TEST(VarintTest, CutOverlongAndTooLargeSpellingsAreRefused) {
  for (const std::vector<uint8_t>& bad : std::vector<std::vector<uint8_t>>{
           {}, {0x80}, {0x80, 0x00}, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02}}) {
    ByteParser parser(bad);
    parser.ReadVarint();
    EXPECT_TRUE(parser.failed()) << HexEncode(bad);
  }
}

TEST(ByteParserTest, ReadingPastTheEndFailsAndStaysFailed) {
  const std::vector<uint8_t> bytes = {1, 2, 3};
  ByteParser parser(bytes);
  EXPECT_EQ(parser.Read<uint16_t>(), 0x0201);
  EXPECT_EQ(parser.Read<uint32_t>(), 0u);
  EXPECT_TRUE(parser.failed());
  EXPECT_EQ(parser.Read<uint8_t>(), 0);
}

}  // namespace
}  // namespace trainwright

#include "lib/base/checksum.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainwright {
namespace {

// Vectors of FIPS 180-4 / NIST CAVP and of the xxHash project.
TEST(Sha256Test, AgreesWithPublishedVectors) {
  EXPECT_EQ(HexEncode(Sha256Of({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexEncode(Sha256Of(AsBytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecesGiveTheSameDigestAsTheWhole) {
  Sha256 hash;
  hash.Update(AsBytes("a"));
  EXPECT_EQ(hash.Digest(), Sha256Of(AsBytes("a")));
  hash.Update(AsBytes("bc"));
  EXPECT_EQ(hash.Digest(), Sha256Of(AsBytes("abc")));
}

TEST(Xxh3Test, AgreesWithThePublishedVectorOfTheEmptyString) {
  EXPECT_EQ(Xxh3({}), 0x2D06800538D394C2u);
}

TEST(Xxh128Test, AgreesWithThePublishedVectorOfTheEmptyString) {
  EXPECT_EQ(HexEncode(Xxh128Stream().Digest()), "99aa06d3014798d86001c324468d497f");
}

TEST(Xxh3Test, PiecesGiveTheSameHashAsTheWhole) {
  Xxh3Stream stream;
  stream.Update(AsBytes("hello "));
  stream.Update(AsBytes("world"));
  EXPECT_EQ(stream.Digest(), Xxh3(AsBytes("hello world")));
}

// RFC 3720, appendix B.4.
TEST(Crc32cTest, AgreesWithTheVectorsOfTheStandard) {
  std::vector<uint8_t> rising(32), falling(32);
  for (size_t i = 0; i < 32; ++i)
    rising[i] = static_cast<uint8_t>(i), falling[i] = static_cast<uint8_t>(31 - i);
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0x00)), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0xff)), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(Crc32c(falling), 0x113fdb5cu);
  EXPECT_EQ(Crc32c({}), 0u);
}

}  // namespace
}  // namespace trainwright

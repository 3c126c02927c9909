// The hex dumps of man/trainwright-compressed-checkpoint.5: read and written, byte for byte.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/codec/checkpoint_fixture.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// The hex dumps of the man page; each begins with line 0000.
std::vector<test::Bytes> Vectors() {
  std::istringstream lines(test::ReadFile(test::Fixture("../man/trainwright-compressed-checkpoint.5")));
  std::vector<test::Bytes> vectors;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of("0123456789abcdef") != 4 || line.compare(4, 2, "  ") != 0) continue;
    if (line.starts_with("0000")) vectors.emplace_back();
    EXPECT_EQ(std::stoul(line.substr(0, 4), nullptr, 16), vectors.back().size()) << line;
    std::istringstream digits(line.substr(6));
    for (int byte; digits >> std::hex >> byte;) vectors.back().push_back(static_cast<uint8_t>(byte));
  }
  return vectors;
}

class CheckpointVectorTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(vectors_.size(), 3u); }

  const std::vector<test::Bytes> vectors_ = Vectors();
};

TEST_F(CheckpointVectorTest, TheDecoderRestoresWhatTheManPageSays) {
  EXPECT_EQ(vectors_[0].size(), 64u);
  EXPECT_EQ(test::TensorsOf(vectors_[0]).at("a"), (test::Bytes{0x61, 0x62, 0x63}));
  EXPECT_EQ(test::Restore(vectors_[1]), vectors_[0]);
  EXPECT_EQ(test::Restore(vectors_[2]), vectors_[0]);
}

TEST_F(CheckpointVectorTest, TheEncoderWritesTheBytesOfTheManPage) {
  const auto compress = [&](CompressedForm form) {
    return HexEncode(test::Compress(vectors_[0], {.form = form, .block_log2 = 18}));
  };
  EXPECT_EQ(compress(CompressedForm::kSafetensors), HexEncode(vectors_[1]));
  EXPECT_EQ(compress(CompressedForm::kStream), HexEncode(vectors_[2]));
}

}  // namespace
}  // namespace trainwright

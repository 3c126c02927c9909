// An independent decoder in plain Python, written from the man page, decodes what the encoder writes.
#include <gtest/gtest.h>

#include "tests/codec/fixtures.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

std::string DecodeByReference(const std::vector<uint8_t>& coded, const std::vector<uint8_t>& base) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("coded"), AsText(coded));
  test::WriteFile(folder.path("base"), AsText(base));
  const test::ProcessResult result =
      test::RunShell("\"${PYTHON:-python3}\" " + test::Fixture("codec/reference_decoder.py") + " " +
                     folder.path("coded") + " " + folder.path("base") + " > " + folder.path("elements"));
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  return test::ReadFile(folder.path("elements"));
}

TEST(ReferenceDecoderTest, DecodesWhatTheEncoderWrites) {
  if (test::RunShell("command -v \"${PYTHON:-python3}\"").exit_status != 0) GTEST_SKIP() << "no Python";
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int rans_planes = 0;
  for (const ElementType type :
       {ElementType::kInt8, ElementType::kInt32, ElementType::kFloat16, ElementType::kFloat32}) {
    for (const bool differs : {false, true}) {
      SCOPED_TRACE(testing::Message() << "type " << static_cast<int>(type) << " base " << differs);
      const std::vector<uint8_t> bytes = test::MakeTensor(type, test::Content::kScaled, 6000, 60, &random);
      TensorView view{.type = type, .bytes = bytes};
      std::vector<uint8_t> base;
      if (differs) {
        base = bytes;
        for (uint8_t& byte : base) byte = static_cast<uint8_t>(byte - random() % 3 * (random() % 2));
        view.base = base;
      } else if (IsFloat(type)) {
        view.matrices = {{300, 60, 60}, {4300, 20, 60}};
      }
      const std::vector<uint8_t> coded = EncodeTensor(view, CodecLevel::kDefault, 1, 12);
      const CodedTensor tensor(coded, "coded", view.base);
      for (uint64_t block = 0; block < tensor.decoder().blocks(); ++block) {
        const BlockPlanes planes = tensor.CheckBlock(block);
        for (size_t p = 0; p < planes.planes; ++p) {
          // For these the decoder would need a module.
          ASSERT_NE(planes.mode[p], PlaneMode::kZstd);
          rans_planes += planes.mode[p] == PlaneMode::kRans ? 1 : 0;
        }
      }
      const std::string decoded = DecodeByReference(coded, base);
      EXPECT_TRUE(decoded == AsText(bytes));
    }
  }
  EXPECT_GE(rans_planes, 16);
}

}  // namespace
}  // namespace trainwright

#include "lib/formats/provenance.h"

#include <gtest/gtest.h>

#include "lib/base/version.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(ProvenanceTest, IsCanonicalAndChainsItsInputs) {
  const std::string first = MakeProvenance("pretokenize", {{"key", "text"}, {"bos", true}}, {});
  EXPECT_EQ(
      first,
      R"({"inputs":[],"options":{"bos":true,"key":"text"},"tool":"pretokenize","version":")" TRAINWRIGHT_VERSION
      R"("})");
  const std::string second = MakeProvenance("pack", {{"chunk", 8}}, {{HashName(0xAB), first}, {"", ""}});
  EXPECT_EQ(second, R"({"inputs":[{"hash":"xxh3:00000000000000ab","provenance":)" + first +
                        R"(},{}],"options":{"chunk":8},"tool":"pack","version":")" TRAINWRIGHT_VERSION
                        R"("})");
}

TEST(ProvenanceTest, BrokenProvenanceOfAnInputIsRefused) {
  EXPECT_EQ(test::CodeOf([] {
              MakeProvenance("pack", nlohmann::json::object(), {{"", "{"}});
            }),
            ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright

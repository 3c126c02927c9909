#include "lib/formats/provenance.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

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

TEST(ProvenanceTest, WhatSeveralAgreeOnIsFoundInThatOfAll) {
  const auto of = [](bool bos, bool eos) {
    return nlohmann::ordered_json::parse(MakeProvenance("pretokenize", {{"bos", bos}, {"eos", eos}}, {}));
  };
  const auto mixture = nlohmann::ordered_json::array({of(true, true), of(true, false)});
  EXPECT_EQ(JoinedProvenance({}), nullptr);
  EXPECT_EQ(JoinedProvenance({nullptr, nullptr}), nullptr);
  EXPECT_EQ(JoinedProvenance({of(true, true), nullptr, of(true, true)}), of(true, true));
  EXPECT_EQ(JoinedProvenance({mixture, mixture}), mixture);
  EXPECT_EQ(JoinedProvenance({of(true, true), of(true, false)}), mixture);
  EXPECT_EQ(JoinedProvenance({of(true, true), mixture}), mixture);
  for (const auto& [name, flag] :
       {std::pair{"bos", std::optional(true)}, std::pair{"eos", std::optional<bool>()}}) {
    EXPECT_EQ(FlagInProvenance(mixture, "pretokenize", name), flag) << name;
  }
}

TEST(ProvenanceTest, PackStandsForPretokenizeWhereItMadeTheDocuments) {
  const auto packed = [](const nlohmann::json& import) {
    const std::string imported = MakeProvenance("pack", import, {});
    return nlohmann::ordered_json::parse(MakeProvenance("pack", {{"chunk", 8}}, {{"", imported}}));
  };
  const nlohmann::ordered_json marked = packed({{"from", "llmc"}, {"bos", true}, {"eos", true}});
  EXPECT_EQ(FlagInProvenance(marked, "pretokenize", "eos"), std::optional(true));
  const auto mixture = nlohmann::ordered_json::array({marked, packed({{"from", "npz"}})});
  EXPECT_EQ(FlagInProvenance(mixture, "pretokenize", "eos"), std::nullopt);
}

TEST(ProvenanceTest, BrokenProvenanceOfAnInputIsRefused) {
  EXPECT_EQ(test::CodeOf([] {
              MakeProvenance("pack", nlohmann::json::object(), {{"", "{"}});
            }),
            ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright

// Normalizers that look at many bytes at once, at every place of a block.
#include "lib/tok/text_normalizer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <regex>
#include <string>

#include "lib/tok/character_map.h"
#include "lib/tok/sentencepiece_model.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

std::string Normalized(const NormalizerStep& step, const std::string& text) {
  std::string out = "what was there";
  TextNormalizer({step}).Normalize(text, /*prepend=*/false, &out);
  return out;
}

/// Beyond two blocks.
constexpr size_t kMostBefore = 140;

TEST(TextNormalizerTest, RunsOfSpacesBecomeWhatARegularExpressionMakesOfThem) {
  for (const size_t shortest : {2, 3}) {
    const NormalizerStep step = {
        .kind = NormalizerStep::Kind::kReplaceRuns, .content = "_", .shortest_run = shortest};
    const std::regex runs(" {" + std::to_string(shortest) + ",}");
    for (size_t before = 0; before <= kMostBefore; ++before) {
      for (const char* rest : {"", " ", "  ", "   x", " x  y", "x   ", "  x    y "}) {
        for (const size_t after : {0, 70}) {
          const std::string text = std::string(before, 'a') + rest + std::string(after, 'b');
          EXPECT_EQ(Normalized(step, text), std::regex_replace(text, runs, "_")) << text;
        }
      }
    }
  }
}

/// A map of a model, as a file's Precompiled has it.
NormalizerStep PrecompiledOf(const std::string& name) {
  SentencePieceModel model;
  std::string problem;
  EXPECT_TRUE(ParseSentencePieceModel(
      test::ReadFile(test::Fixture("tok/testdata/unigram/" + name + ".model")), &model, &problem));
  auto map = std::make_shared<CharacterMap>();
  EXPECT_EQ(CharacterMap::Read(model.character_map, map.get()), "");
  return {.kind = NormalizerStep::Kind::kPrecompiled, .map = map};
}

TEST(TextNormalizerTest, WhatAMapMakesOfATextDoesNotDependOnHowMuchPrintableAsciiIsBeforeIt) {
  for (const char* name : {"no-prefix", "nmt-nfkc-cf"}) {  // the second has no capitals
    const NormalizerStep step = PrecompiledOf(name);
    for (const char* rest : {"", "\t", "\tx", "\r\nx", "\x01y", "\x7Fz", "e\xCC\x81t", "\xCC\x81",
                             "\xEF\xAC\x81x", "B\xEF\xBC\xA1", "x\ty\nz ", "\xE2\x81\x84"}) {
      // A letter of its own, so that nothing of the rest is joined to what is before it.
      const std::string alone = Normalized(step, std::string("c") + rest + "d");
      for (size_t before = 0; before <= kMostBefore; ++before) {
        EXPECT_EQ(Normalized(step, std::string(before, 'a') + "c" + rest + "d" + std::string(70, 'b')),
                  std::string(before, 'a') + alone + std::string(70, 'b'))
            << name << " " << before << " '" << rest << "'";
      }
    }
  }
}

}  // namespace
}  // namespace trainwright

#include "lib/spec/cpu_gemms.h"

#include <gtest/gtest.h>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using Fp32 = CpuGemms::Fp32;
using Bf16 = CpuGemms::Bf16;

TEST(CpuGemmsTest, AreReadBackByTheirNames) {
  for (const Fp32 fp32 : {Fp32::kBlocks, Fp32::kLibrary}) {
    for (const Bf16 bf16 : {Bf16::kInstructions, Bf16::kWidened, Bf16::kEmulated}) {
      const CpuGemms gemms = {fp32, bf16};
      EXPECT_EQ(ParseCpuGemms(CpuGemmsName(gemms), "--kernels", {}), gemms) << CpuGemmsName(gemms);
    }
  }
  EXPECT_EQ(CpuGemmsName({Fp32::kBlocks, Bf16::kWidened}), "fp32=blocks,bf16=widened");
}

TEST(CpuGemmsTest, WhatATextDoesNotSayStays) {
  const CpuGemms before = {Fp32::kBlocks, Bf16::kInstructions};
  EXPECT_EQ(ParseCpuGemms("fp32=library", "--kernels", before),
            (CpuGemms{Fp32::kLibrary, Bf16::kInstructions}));
  EXPECT_EQ(ParseCpuGemms("bf16=emulated,fp32=blocks", "--kernels", before),
            (CpuGemms{Fp32::kBlocks, Bf16::kEmulated}));
}

TEST(CpuGemmsTest, OtherTextsAreRefused) {
  for (const char* text :
       {"", "fp32", "fp32=", "fp32=widened", "bf16=blocks", "fp32=blocks,", ",", "fp16=library",
        "fp32=blocks,fp32=library", "bf16=widened bf16=emulated", "FP32=blocks"}) {
    EXPECT_EQ(test::CodeOf([&] { ParseCpuGemms(text, "--kernels", {}); }), ErrorCode::kUsage) << text;
  }
}

TEST(IsBf16WorthwhileTest, AGainOfATenthIsWorthTheRoundingAndWhatIsEmulatedNever) {
  for (const Bf16 bf16 : {Bf16::kInstructions, Bf16::kWidened}) {
    const CpuGemms gemms = {Fp32::kBlocks, bf16};
    EXPECT_FALSE(IsBf16Worthwhile(gemms, 0.95));
    EXPECT_FALSE(IsBf16Worthwhile(gemms, 1.05));
    EXPECT_TRUE(IsBf16Worthwhile(gemms, 1.1));
    EXPECT_FALSE(IsBf16Worthwhile({Fp32::kBlocks, Bf16::kEmulated}, 2));
  }
}

TEST(IsBf16WorthwhileTest, UnmeasuredItIsByInstructionsAlone) {
  EXPECT_TRUE(IsBf16Worthwhile({Fp32::kBlocks, Bf16::kInstructions}, {}));
  EXPECT_FALSE(IsBf16Worthwhile({Fp32::kBlocks, Bf16::kWidened}, {}));
  EXPECT_FALSE(IsBf16Worthwhile({Fp32::kLibrary, Bf16::kEmulated}, {}));
}

}  // namespace
}  // namespace trainwright

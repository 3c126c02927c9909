#include "lib/nn/linear/gemm_kernels.h"

#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/precision.h"
#include "lib/nn/precision_option.h"
#include "tests/nn/reference.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using Fp32 = CpuGemms::Fp32;
using Bf16 = CpuGemms::Bf16;

/// Leaves the process as it found it.
class GemmKernelsTest : public testing::Test {
 protected:
  ~GemmKernelsTest() override { ApplyCpuGemms(before_); }

  static bool Has(const CpuGemms& gemms) { return WhyNotCpuGemms(gemms).empty(); }

  /// a b, of a size that blocks compute where they are chosen.
  static at::Tensor Multiply(at::ScalarType type) {
    at::Tensor out = at::full({130, 200}, NAN);
    Matmul(test::RandomTensor({130, 300}, 1).to(type), test::RandomTensor({300, 200}, 2).to(type), out);
    return out;
  }
  static at::Tensor Exact(at::ScalarType type) {
    return at::mm(test::RandomTensor({130, 300}, 1).to(type).to(at::kDouble),
                  test::RandomTensor({300, 200}, 2).to(type).to(at::kDouble));
  }

 private:
  const CpuGemms before_ = ChosenCpuGemms();
};

TEST_F(GemmKernelsTest, AProcessBeginsWithTheUsualOnes) {
  EXPECT_EQ(ChosenCpuGemms(), UsualCpuGemms());
  EXPECT_EQ(WhyNotCpuGemms(UsualCpuGemms()), "");
}

TEST_F(GemmKernelsTest, EachKindEqualsTheProductInDoublePrecision) {
  for (const Fp32 fp32 : {Fp32::kBlocks, Fp32::kLibrary}) {
    for (const Bf16 bf16 : {Bf16::kInstructions, Bf16::kWidened, Bf16::kEmulated}) {
      if (!Has({fp32, bf16})) continue;
      ApplyCpuGemms({fp32, bf16});
      EXPECT_LT(test::RelativeDifference(Multiply(at::kFloat), Exact(at::kFloat)), 1e-6);
      EXPECT_LT(test::RelativeDifference(Multiply(at::kBFloat16), Exact(at::kBFloat16)), 1e-6)
          << CpuGemmsName(ChosenCpuGemms());
    }
  }
}

TEST_F(GemmKernelsTest, TheLibraryGivesTheBitsOfTorch) {
  ApplyCpuGemms({Fp32::kLibrary, Bf16::kEmulated});
  const at::Tensor torch = at::mm(test::RandomTensor({130, 300}, 1), test::RandomTensor({300, 200}, 2));
  EXPECT_TRUE(Multiply(at::kFloat).equal(torch));
}

TEST_F(GemmKernelsTest, WidenedOperandsGiveTheBitsOfFp32) {
  if (!Has({Fp32::kBlocks, Bf16::kWidened})) GTEST_SKIP() << "no AVX-512";
  ApplyCpuGemms({Fp32::kBlocks, Bf16::kWidened});
  at::Tensor fp32 = at::full({130, 200}, NAN);
  Matmul(test::RandomTensor({130, 300}, 1).to(at::kBFloat16).to(at::kFloat),
         test::RandomTensor({300, 200}, 2).to(at::kBFloat16).to(at::kFloat), fp32);
  EXPECT_TRUE(Multiply(at::kBFloat16).equal(fp32));
}

TEST_F(GemmKernelsTest, Bf16IsStoredInFp32WhereItIsEmulatedAlone) {
  for (const Bf16 bf16 : {Bf16::kInstructions, Bf16::kWidened, Bf16::kEmulated}) {
    if (!Has({UsualCpuGemms().fp32, bf16})) continue;
    ApplyCpuGemms({UsualCpuGemms().fp32, bf16});
    const bool emulated = bf16 == Bf16::kEmulated;
    EXPECT_EQ(ChooseNumerics(Precision::kBf16, at::Device(at::kCPU)).emulated(), emulated);
    EXPECT_EQ(HasFastProducts(Precision::kBf16, at::Device(at::kCPU)), !emulated);
  }
}

TEST_F(GemmKernelsTest, AutoIsBf16WhereItWasMeasuredToGainByIt) {
  const at::Device cpu(at::kCPU);
  for (const Bf16 bf16 : {Bf16::kInstructions, Bf16::kWidened}) {
    const CpuGemms gemms = {Fp32::kBlocks, bf16};
    if (!Has(gemms)) continue;
    ApplyCpuGemms(gemms, 1.05);
    EXPECT_EQ(ParsePrecision("auto", cpu), Precision::kFp32);
    EXPECT_TRUE(HasFastProducts(Precision::kBf16, cpu))
        << "bf16 that is asked for is computed so all the same";
    ApplyCpuGemms(gemms, 1.2);
    EXPECT_EQ(ParsePrecision("auto", cpu), Precision::kBf16);
    ApplyCpuGemms(gemms);
    EXPECT_EQ(ParsePrecision("auto", cpu), bf16 == Bf16::kInstructions ? Precision::kBf16 : Precision::kFp32);
  }
  ApplyCpuGemms({Fp32::kLibrary, Bf16::kEmulated});
  EXPECT_EQ(ParsePrecision("auto", cpu), Precision::kFp32);
}

TEST_F(GemmKernelsTest, KernelsThatTheProcessorLacksAreNotTaken) {
  for (const CpuGemms gemms :
       {CpuGemms{Fp32::kBlocks, Bf16::kEmulated}, CpuGemms{Fp32::kLibrary, Bf16::kInstructions}}) {
    if (Has(gemms)) continue;
    EXPECT_EQ(test::CodeOf([&] { ApplyCpuGemms(gemms); }), ErrorCode::kInternal);
  }
  EXPECT_EQ(WhyNotCpuGemms({Fp32::kLibrary, Bf16::kEmulated}), "") << "any processor has these";
}

}  // namespace
}  // namespace trainwright

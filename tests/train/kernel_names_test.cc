#include "lib/train/kernel_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/ten_models.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ComputeChoice ComputeOn(at::DeviceType device, AttentionBackend attention = AttentionBackend::kAuto) {
  ComputeChoice compute;
  compute.device = at::Device(device);
  compute.identity.cpu_capability = "AVX2";
  compute.kinds = attention;
  return compute;
}

TEST(KernelNamesTest, TellAttentionLossOptimizerAndInstructionsOfACpu) {
  const std::string names = KernelNames(test::TinyModel(), test::TinyPlan(), ComputeOn(at::kCPU));
  for (const char* part : {"attention our own", "cross-entropy fused", "adamw", "norms", "AVX2"}) {
    EXPECT_THAT(names, HasSubstr(part));
  }
  EXPECT_THAT(KernelNames(test::TinyModel(), test::TinyPlan(), ComputeOn(at::kCPU, AttentionBackend::kMath)),
              StartsWith("attention math;"));
}

TEST(KernelNamesTest, TellWhichAttentionAGpuTakesForTheType) {
  const auto names = [](Precision precision) {
    return KernelNames(test::TinyModel(), test::TinyPlan(precision), ComputeOn(at::kCUDA));
  };
  EXPECT_THAT(names(Precision::kBf16), StartsWith("attention flash;"));
  EXPECT_THAT(names(Precision::kFp32), StartsWith("attention efficient;"));
  EXPECT_THAT(names(Precision::kFp32), Not(HasSubstr("AVX2")));
}

TEST(KernelNamesTest, TellWhatARunChoseByItsDevice) {
  ComputeChoice compute = ComputeOn(at::kCUDA);
  compute.kinds.equal_spans = AttentionBackend::kCudnn;
  compute.kinds.head_slice_logits = 3'000'000'000;
  const std::string names = KernelNames(test::TinyModel(), test::TinyPlan(Precision::kBf16), compute);
  EXPECT_THAT(names, StartsWith("attention flash, of spans of one length cudnn;"));
  EXPECT_THAT(names, HasSubstr("in slices of up to 3.00 G logits"));
  compute.kinds.equal_spans = AttentionBackend::kFlash;
  EXPECT_THAT(KernelNames(test::TinyModel(), test::TinyPlan(Precision::kBf16), compute),
              StartsWith("attention flash;"));
}

TEST(KernelNamesTest, TellWhoseGemmsAreInFp8) {
  TrainPlan plan = test::TinyPlan(Precision::kBf16);
  const ComputeChoice compute = ComputeOn(at::kCPU);
  EXPECT_THAT(KernelNames(test::TinyModel(), plan, compute), Not(HasSubstr("fp8")));
  plan.fp8 = {.mlp = true, .head = true};
  EXPECT_THAT(KernelNames(test::TinyModel(), plan, compute), HasSubstr("GEMMs of mlp+head in fp8"));
}

TEST(KernelNamesTest, TellByWhichKernelsACpuComputesGemms) {
  ComputeChoice compute = ComputeOn(at::kCPU);
  compute.identity.choices.cpu_gemms = CpuGemms{CpuGemms::Fp32::kLibrary, CpuGemms::Bf16::kEmulated};
  EXPECT_THAT(KernelNames(test::TinyModel(), test::TinyPlan(), compute),
              HasSubstr("; GEMMs fp32=library,bf16=emulated; instructions AVX2"));
  EXPECT_THAT(KernelNames(test::TinyModel(), test::TinyPlan(), ComputeOn(at::kCUDA)),
              Not(HasSubstr("fp32=")));
}

TEST(KernelNamesTest, TellTheScanOfARecurrenceInPlaceOfAttention) {
  const ModelConfig ten = test::TenOf(test::TenKinds().front().fields);
  ComputeChoice compute = ComputeOn(at::kCPU);
  EXPECT_THAT(KernelNames(ten, test::TinyPlan(), compute), StartsWith("scan fused; norms"));
  compute.kinds.scan = ScanKind::kChunked;
  EXPECT_THAT(KernelNames(ten, test::TinyPlan(), compute), StartsWith("scan chunked; norms"));
  EXPECT_THAT(KernelNames(test::TinyModel(), test::TinyPlan(), compute), Not(HasSubstr("scan")));
}

}  // namespace
}  // namespace trainwright

#include "lib/profile/device_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <string>

#include "tests/support/support.h"

namespace trainwright {
namespace {

/// Of each kernel of this project.
const std::map<std::string, ProfilePart> kOwnKernels = {{"AdamW8BitKernel", ProfilePart::kOptimizer},
                                                        {"AddBiasKernel", ProfilePart::kGemm},
                                                        {"AddEmbeddingKernel", ProfilePart::kEmbedding},
                                                        {"AddLayerNormKernel", ProfilePart::kNorm},
                                                        {"AddNormKernel", ProfilePart::kNorm},
                                                        {"AddPartialSumsKernel", ProfilePart::kNorm},
                                                        {"AddStretchesKernel", ProfilePart::kEmbedding},
                                                        {"AddUpKernel", ProfilePart::kClip},
                                                        {"BackwardRowsKernel", ProfilePart::kScan},
                                                        {"CarryKernel", ProfilePart::kScan},
                                                        {"ColumnSumsKernel", ProfilePart::kGemm},
                                                        {"CountHeadRowsKernel", ProfilePart::kHead},
                                                        {"CrossEntropyKernel", ProfilePart::kHead},
                                                        {"DequantizeNf4Kernel", ProfilePart::kGemm},
                                                        {"DropoutKernel", ProfilePart::kActivation},
                                                        {"EmbedKernel", ProfilePart::kEmbedding},
                                                        {"EmbeddingStretchKernel", ProfilePart::kEmbedding},
                                                        {"EncodeColumnsKernel", ProfilePart::kGemm},
                                                        {"EncodeRowsKernel", ProfilePart::kGemm},
                                                        {"EndsKernel", ProfilePart::kScan},
                                                        {"FinishStepKernel", ProfilePart::kClip},
                                                        {"Fp8ScaleKernel", ProfilePart::kGemm},
                                                        {"GeluBackwardKernel", ProfilePart::kActivation},
                                                        {"GeluKernel", ProfilePart::kActivation},
                                                        {"HeadRowsKernel", ProfilePart::kHead},
                                                        {"JoinHeadsKernel", ProfilePart::kAttention},
                                                        {"LargestKernel", ProfilePart::kGemm},
                                                        {"LayerNormAgainKernel", ProfilePart::kNorm},
                                                        {"LayerNormBackwardKernel", ProfilePart::kNorm},
                                                        {"LionKernel", ProfilePart::kOptimizer},
                                                        {"NormAgainKernel", ProfilePart::kNorm},
                                                        {"NormBackwardKernel", ProfilePart::kNorm},
                                                        {"PairedDropoutKernel", ProfilePart::kActivation},
                                                        {"RopeKernel", ProfilePart::kPosition},
                                                        {"RoundKernel", ProfilePart::kActivation},
                                                        {"RowsKernel", ProfilePart::kScan},
                                                        {"ScaleColumnsBackwardKernel", ProfilePart::kGemm},
                                                        {"SquaresKernel", ProfilePart::kClip},
                                                        {"SwigluBackwardKernel", ProfilePart::kActivation},
                                                        {"SwigluKernel", ProfilePart::kActivation},
                                                        {"UpdateKernel", ProfilePart::kOptimizer}};

/// The functions that the sources of lib/nn define for a GPU, with how many of them there are.
std::map<std::string, int> DefinedKernels() {
  std::map<std::string, int> names;
  const std::regex kernel(R"(__global__[^;{]*?\b(\w+)\()");
  const std::regex bounds(R"(__launch_bounds__\([^)]*\))");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::Fixture("../lib/nn"))) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cu" && extension != ".cuh") continue;
    const std::string source = std::regex_replace(test::ReadFile(entry.path().string()), bounds, "");
    for (std::sregex_iterator at(source.begin(), source.end(), kernel), end; at != end; ++at) {
      ++names[(*at)[1].str()];
    }
  }
  return names;
}

TEST(DeviceActivityTest, EveryKernelThatTheSourcesDefineHasItsPart) {
  const std::map<std::string, int> defined = DefinedKernels();
  for (const auto& [name, count] : defined) {
    EXPECT_EQ(count, 1) << name;
    const auto known = kOwnKernels.find(name);
    if (known == kOwnKernels.end()) {
      ADD_FAILURE() << name << " is in no row of kOwnKernels: say which part of a step it belongs to";
      continue;
    }
    for (const std::string& shown :
         {"trainwright::cuda::" + name + "(float*, long)",
          "void trainwright::cuda::(anonymous namespace)::" + name + "<__nv_bfloat16, 8>(float*, long)"}) {
      EXPECT_EQ(PartOfKernel(shown), known->second) << shown;
    }
  }
  for (const auto& [name, part] : kOwnKernels) EXPECT_TRUE(defined.contains(name)) << name << " is no more";
}

// Names as CUPTI and Nsight show them on GPUs of 8.0 and 9.0 with CUDA 12 and 13.
TEST(DeviceActivityTest, TellsThePartOfAKernelByItsName) {
  const std::pair<const char*, ProfilePart> kernels[] = {
      {"nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_TNT", ProfilePart::kGemm},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off",
       ProfilePart::kGemm},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>(Params)",
       ProfilePart::kGemm},
      {"ampere_sgemm_128x64_nn", ProfilePart::kGemm},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)",
       ProfilePart::kGemm},
      {"void gemv2T_kernel_val<int, int, float>(Params)", ProfilePart::kGemm},
      {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4, cutlass::bfloat16_t>>()",
       ProfilePart::kAttention},
      {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80(AttentionKernel::Params)", ProfilePart::kAttention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_128x128x128_4x1x1_kernel0_0",
       ProfilePart::kAttention},
      {"void trainwright::cuda::AddNormKernel<__nv_bfloat16>(const float*)", ProfilePart::kNorm},
      {"void trainwright::cuda::NormBackwardKernel<float, 4>(const float*)", ProfilePart::kNorm},
      {"void trainwright::cuda::SwigluKernel<__nv_bfloat16, 8>(const __nv_bfloat16*, long, long)",
       ProfilePart::kActivation},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(...)>()",
       ProfilePart::kActivation},
      {"void trainwright::cuda::RopeKernel<__nv_bfloat16>()", ProfilePart::kPosition},
      {"void trainwright::cuda::CrossEntropyKernel<__nv_bfloat16>()", ProfilePart::kHead},
      {"trainwright::cuda::UpdateKernel(float*, const float*)", ProfilePart::kOptimizer},
      {"void at::native::multi_tensor_apply_kernel<at::native::FusedOptimizerTensorListMetadata<4>, "
       "at::native::FusedAdamMathFunctor<float, 4>>()",
       ProfilePart::kOptimizer},
      {"trainwright::cuda::SquaresKernel(const float*, long, double*)", ProfilePart::kClip},
      {"trainwright::cuda::EmbeddingBackwardKernel(const float*)", ProfilePart::kEmbedding},
      {"void trainwright::cuda::BackwardRowsKernel<__nv_bfloat16>(trainwright::DiagonalScanInput)",
       ProfilePart::kScan},
      {"void trainwright::cuda::EncodeRowsKernel<__nv_bfloat16, 8>(const __nv_bfloat16*)",
       ProfilePart::kGemm},
      {"void trainwright::cuda::EncodeColumnsKernel<__nv_bfloat16>(const __nv_bfloat16*)",
       ProfilePart::kGemm},
      {"void trainwright::cuda::LargestKernel<__nv_bfloat16, 8>(const __nv_bfloat16*)", ProfilePart::kGemm},
      {"trainwright::cuda::Fp8ScaleKernel(const unsigned int*, float*)", ProfilePart::kGemm},
      {"void trainwright::cuda::DequantizeNf4Kernel<__nv_bfloat16>(const unsigned char*)",
       ProfilePart::kGemm},
      {"void trainwright::cuda::PairedDropoutKernel<__nv_bfloat16>(const __nv_bfloat16*)",
       ProfilePart::kActivation},
      {"void trainwright::cuda::EmbedKernel<__nv_bfloat16, 4>(const float*)", ProfilePart::kEmbedding},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)", ProfilePart::kExchange},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>()",
       ProfilePart::kOther},
      {"", ProfilePart::kOther}};
  for (const auto& [name, part] : kernels) EXPECT_EQ(PartOfKernel(name), part) << name;
}

TEST(DeviceActivityTest, CopiesBetweenHostAndDeviceAreUploadsWhateverTheyAreCalled) {
  EXPECT_EQ(PartOfActivity({.kind = ActivityKind::kCopyToDevice, .name = "gemm"}), ProfilePart::kUpload);
  EXPECT_EQ(PartOfActivity({.kind = ActivityKind::kCopyToHost}), ProfilePart::kUpload);
  EXPECT_EQ(PartOfActivity({.kind = ActivityKind::kCopyOnDevice}), ProfilePart::kOther);
  EXPECT_EQ(PartOfActivity({.kind = ActivityKind::kFill}), ProfilePart::kOther);
}

TEST(DeviceActivityTest, TimeInWhichSeveralStreamsWorkIsBusyOnce) {
  std::vector<DeviceActivity> activities = {{.stream = 1, .start_ns = 10, .end_ns = 20},
                                            {.stream = 2, .start_ns = 15, .end_ns = 30},
                                            {.stream = 2, .start_ns = 16, .end_ns = 18},
                                            {.stream = 1, .start_ns = 40, .end_ns = 45},
                                            {.stream = 1, .start_ns = 45, .end_ns = 50}};
  EXPECT_EQ(BusyNanoseconds(activities), 20 + 10);
  std::swap(activities[0], activities[3]);
  EXPECT_EQ(BusyNanoseconds(activities), 20 + 10);
  EXPECT_EQ(BusyNanoseconds({}), 0);
}

TEST(DeviceActivityTest, SortsByDeviceStreamAndBeginningTheLongerFirst) {
  std::vector<DeviceActivity> activities = {{.name = "e", .device = 1, .start_ns = 1, .end_ns = 2},
                                            {.name = "d", .stream = 7, .start_ns = 1, .end_ns = 2},
                                            {.name = "c", .start_ns = 5, .end_ns = 6},
                                            {.name = "b", .start_ns = 3, .end_ns = 4},
                                            {.name = "a", .start_ns = 3, .end_ns = 9}};
  SortActivities(&activities);
  std::string names;
  for (const DeviceActivity& activity : activities) names += activity.name;
  EXPECT_EQ(names, "abcde");
}

}  // namespace
}  // namespace trainwright

// The library of tests/support/fake_cublaslt by its own functions: that it computes what is worked out by
// hand from the comments of cublasLt.h, and refuses what they do not allow.
#include "tests/support/fake_cublaslt/fake_cublaslt.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/fake_cublaslt/number_format.h"

namespace trainwright::fake_cublaslt {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

cublasLtHandle_t Handle() {
  static const cublasLtHandle_t handle = [] {
    cublasLtHandle_t made = nullptr;
    EXPECT_EQ(cublasLtCreate(&made), CUBLAS_STATUS_SUCCESS);
    return made;
  }();
  return handle;
}

struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
};

/// The descriptors of a GEMM, which are destroyed with it. Its matrices are at multiples of 16 bytes.
class Gemm {
 public:
  Gemm(cublasComputeType_t compute_type, const Layout& a, const Layout& b, const Layout& d) {
    cublasLtMatmulDescCreate(&description_, compute_type, CUDA_R_32F);
    cublasLtMatmulPreferenceCreate(&preference_);
    const Layout* const layouts[] = {&a, &b, &d};
    for (int i = 0; i < 3; ++i) {
      const Layout& layout = *layouts[i];
      cublasLtMatrixLayoutCreate(&layouts_[i], layout.type, layout.rows, layout.columns, layout.leading);
    }
    for (const auto matrix :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      Prefer(matrix, uint32_t{16});
    }
  }
  ~Gemm() {
    cublasLtMatmulDescDestroy(description_);
    cublasLtMatmulPreferenceDestroy(preference_);
    for (const cublasLtMatrixLayout_t layout : layouts_) cublasLtMatrixLayoutDestroy(layout);
  }
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  template <typename Value>
  cublasStatus_t Set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    return cublasLtMatmulDescSetAttribute(description_, attribute, &value, sizeof(value));
  }
  template <typename Value>
  cublasStatus_t Prefer(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    return cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof(value));
  }
  /// \returns the status; `results` gets what was found, at most `most`
  cublasStatus_t Search(std::vector<cublasLtMatmulHeuristicResult_t>* results, int most = 20) {
    results->resize(static_cast<size_t>(most));
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(Handle(), description_, layouts_[0], layouts_[1], layouts_[2],
                                       layouts_[2], preference_, most, results->data(), &found);
    results->resize(static_cast<size_t>(found));
    return status;
  }
  cublasStatus_t Multiply(const cublasLtMatmulAlgo_t& algorithm, float alpha, const void* a, const void* b,
                          float beta, const void* c, void* d, void* workspace = nullptr,
                          size_t workspace_size = 0) {
    return cublasLtMatmul(Handle(), description_, &alpha, a, layouts_[0], b, layouts_[1], &beta, c,
                          layouts_[2], d, layouts_[2], &algorithm, workspace, workspace_size, nullptr);
  }
  /// By the last algorithm that is found, which needs no workspace.
  cublasStatus_t Run(float alpha, const void* a, const void* b, float beta, const void* c, void* d) {
    std::vector<cublasLtMatmulHeuristicResult_t> results;
    const cublasStatus_t status = Search(&results);
    return status != CUBLAS_STATUS_SUCCESS ? status : Multiply(results.back().algo, alpha, a, b, beta, c, d);
  }

 private:
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatrixLayout_t layouts_[3] = {};
};

// A is 1 3 5   B is 1 4
//      2 4 6        2 5
//                   3 6
constexpr Layout kA = {CUDA_R_32F, 2, 3, 2}, kB = {CUDA_R_32F, 3, 2, 3}, kD = {CUDA_R_32F, 2, 2, 2};
constexpr float kNumbers[] = {1, 2, 3, 4, 5, 6};

TEST(FakeCublasLtTest, ColumnsAreContiguousAndLeadingDimensionsLieBetweenThem) {
  Gemm gemm(CUBLAS_COMPUTE_32F, {CUDA_R_32F, 2, 3, 4}, kB, {CUDA_R_32F, 2, 2, 3});
  const std::vector<float> a = {1, 2, -1, -1, 3, 4, -1, -1, 5, 6, -1, -1};
  std::vector<float> d = {1, 2, 77, 3, 4, 77};
  ASSERT_EQ(gemm.Run(2, a.data(), kNumbers, 10, d.data(), d.data()), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d, ElementsAre(54, 76, 77, 128, 168, 77));
}

TEST(FakeCublasLtTest, OperandsAreTransposedAsTheDescriptionSays) {
  const std::vector<float> a_transposed = {1, 3, 5, 2, 4, 6}, b_transposed = {1, 4, 2, 5, 3, 6};
  Gemm gemm(CUBLAS_COMPUTE_32F, {CUDA_R_32F, 3, 2, 3}, {CUDA_R_32F, 2, 3, 2}, kD);
  ASSERT_EQ(gemm.Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(gemm.Set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T), CUBLAS_STATUS_SUCCESS);
  std::vector<float> d(4, std::nanf(""));
  ASSERT_EQ(gemm.Run(1, a_transposed.data(), b_transposed.data(), 0, d.data(), d.data()),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d, ElementsAre(22, 28, 49, 64));
}

TEST(FakeCublasLtTest, ABiasIsOfTheRowsAndItsGradientOfTheNamedOperand) {
  std::vector<float> bias = {100, 200}, d(4);
  const float* const pointer = bias.data();
  const auto run = [&](cublasLtEpilogue_t epilogue) {
    Gemm gemm(CUBLAS_COMPUTE_32F, kA, kB, kD);
    gemm.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    gemm.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer);
    return gemm.Run(1, kNumbers, kNumbers, 0, d.data(), d.data());
  };
  ASSERT_EQ(run(CUBLASLT_EPILOGUE_BIAS), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d, ElementsAre(122, 228, 149, 264));
  ASSERT_EQ(run(CUBLASLT_EPILOGUE_BGRADA), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(bias, ElementsAre(9, 12));
  ASSERT_EQ(run(CUBLASLT_EPILOGUE_BGRADB), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(bias, ElementsAre(6, 15));
  EXPECT_THAT(d, ElementsAre(22, 28, 49, 64));
}

TEST(FakeCublasLtTest, AGeluKeepsItsInputAndItsGradientReadsIt) {
  const std::vector<float> one = {1}, values = {1, -1};
  std::vector<float> d(2), aux(8, 77);
  float* const pointer = aux.data();
  const auto run = [&](cublasLtEpilogue_t epilogue, const std::vector<float>& a) {
    Gemm gemm(CUBLAS_COMPUTE_32F, {CUDA_R_32F, 2, 1, 2}, {CUDA_R_32F, 1, 1, 1}, {CUDA_R_32F, 2, 1, 2});
    gemm.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    gemm.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pointer);
    gemm.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t{8});
    return gemm.Run(1, a.data(), one.data(), 0, d.data(), d.data());
  };
  ASSERT_EQ(run(CUBLASLT_EPILOGUE_GELU_AUX, values), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d, ElementsAre(FloatNear(0.841192f, 1e-6f), FloatNear(-0.158808f, 1e-6f)));
  EXPECT_THAT(aux, ElementsAre(1, -1, 77, 77, 77, 77, 77, 77));
  ASSERT_EQ(run(CUBLASLT_EPILOGUE_DGELU, {2, 2}), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d, ElementsAre(FloatNear(2 * 1.082964f, 1e-5f), FloatNear(2 * -0.082964f, 1e-5f)));
}

/// What a search says of a GEMM that is right but for one change.
std::string SearchFor(Gemm* gemm, cublasStatus_t expected) {
  Forget();
  std::vector<cublasLtMatmulHeuristicResult_t> results;
  EXPECT_EQ(gemm->Search(&results), expected);
  EXPECT_TRUE(results.empty());
  EXPECT_EQ(Recorded().refused_searches, 1);
  return Recorded().refusal;
}

TEST(FakeCublasLtTest, LayoutsThatCannotBeAreRefused) {
  const auto refusal = [](const Layout& a, const Layout& b, const Layout& d) {
    Gemm gemm(CUBLAS_COMPUTE_32F, a, b, d);
    return SearchFor(&gemm, CUBLAS_STATUS_INVALID_VALUE);
  };
  EXPECT_THAT(refusal({CUDA_R_32F, 2, 3, 1}, kB, kD), HasSubstr("the leading dimension 1"));
  EXPECT_THAT(refusal({CUDA_R_32F, 2, 0, 2}, kB, kD), HasSubstr("0 rows or columns"));
  EXPECT_THAT(refusal({CUDA_R_32F, 2, 4, 2}, kB, kD), HasSubstr("differ in their depth"));
  EXPECT_THAT(refusal(kA, kB, {CUDA_R_32F, 2, 3, 2}), HasSubstr("not of the size"));
}

TEST(FakeCublasLtTest, TypesThatTheTablesDoNotHaveAreRefused) {
  const auto refusal = [](cublasComputeType_t compute_type, cudaDataType_t a, cudaDataType_t b,
                          cudaDataType_t d) {
    Gemm gemm(compute_type, {a, 2, 3, 2}, {b, 3, 2, 3}, {d, 2, 2, 2});
    return SearchFor(&gemm, CUBLAS_STATUS_NOT_SUPPORTED);
  };
  EXPECT_THAT(refusal(CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF),
              HasSubstr("tf32"));
  EXPECT_THAT(refusal(CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F), HasSubstr("compute type"));
  EXPECT_THAT(refusal(CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F), HasSubstr("A and B differ"));
  EXPECT_THAT(refusal(CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16F), HasSubstr("nor fp32"));
  EXPECT_THAT(refusal(CUBLAS_COMPUTE_32F, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_32F), HasSubstr("alone is fp8"));
  EXPECT_THAT(refusal(CUBLAS_COMPUTE_32F, CUDA_R_8I, CUDA_R_8I, CUDA_R_32F), HasSubstr("of type 3"));
}

TEST(FakeCublasLtTest, EpiloguesWithoutWhatTheyNeedAreRefused) {
  std::vector<float> memory(64);
  float* const pointer = memory.data();
  const auto refusal = [&](cublasStatus_t status, cublasLtEpilogue_t epilogue,
                           const std::function<void(Gemm*)>& change) {
    Gemm gemm(CUBLAS_COMPUTE_32F, kA, kB, kD);
    gemm.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    change(&gemm);
    return SearchFor(&gemm, status);
  };
  EXPECT_THAT(refusal(CUBLAS_STATUS_INVALID_VALUE, CUBLASLT_EPILOGUE_BIAS, [](Gemm*) {}),
              HasSubstr("a bias"));
  EXPECT_THAT(refusal(CUBLAS_STATUS_NOT_SUPPORTED, CUBLASLT_EPILOGUE_BIAS,
                      [&](Gemm* gemm) {
                        gemm->Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer);
                        gemm->Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
                      }),
              HasSubstr("a bias of type 14"));
  EXPECT_THAT(refusal(CUBLAS_STATUS_INVALID_VALUE, CUBLASLT_EPILOGUE_DGELU, [](Gemm*) {}),
              HasSubstr("auxiliary matrix, and no pointer"));
  for (const int64_t leading : {0, 12}) {
    EXPECT_THAT(refusal(CUBLAS_STATUS_INVALID_VALUE, CUBLASLT_EPILOGUE_GELU_AUX,
                        [&](Gemm* gemm) {
                          gemm->Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pointer);
                          gemm->Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading);
                        }),
                HasSubstr("the leading dimension " + std::to_string(leading)));
  }
  EXPECT_THAT(refusal(CUBLAS_STATUS_INVALID_VALUE, CUBLASLT_EPILOGUE_DEFAULT,
                      [&](Gemm* gemm) { gemm->Set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, pointer); }),
              HasSubstr("not fp8"));
  EXPECT_THAT(refusal(CUBLAS_STATUS_INVALID_VALUE, CUBLASLT_EPILOGUE_DEFAULT,
                      [&](Gemm* gemm) { gemm->Set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, pointer); }),
              HasSubstr("a scale of C or D"));
}

TEST(FakeCublasLtTest, AttributesOfAnotherSizeAreRefused) {
  Gemm gemm(CUBLAS_COMPUTE_32F, kA, kB, kD);
  EXPECT_EQ(gemm.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int32_t{8}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm.Set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int32_t{0}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm.Prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint32_t{0}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm.Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint64_t{0}),
            CUBLAS_STATUS_INVALID_VALUE);
}

/// What the results ask of a workspace, in their order.
std::vector<size_t> WorkspacesOf(Gemm* gemm, int most = 20) {
  std::vector<cublasLtMatmulHeuristicResult_t> results;
  EXPECT_EQ(gemm->Search(&results, most), CUBLAS_STATUS_SUCCESS);
  std::vector<size_t> workspaces;
  for (const cublasLtMatmulHeuristicResult_t& result : results) {
    EXPECT_EQ(result.state, CUBLAS_STATUS_SUCCESS);
    workspaces.push_back(result.workspaceSize);
  }
  return workspaces;
}

TEST(FakeCublasLtTest, HeuristicsKeepToThePreferences) {
  Gemm gemm(CUBLAS_COMPUTE_32F, kA, kB, kD);
  constexpr size_t kHungry = size_t{64} << 20, kPartialSums = 2 * 4 * sizeof(float);
  EXPECT_THAT(WorkspacesOf(&gemm), ElementsAre(0, 0)) << "no workspace is the default";
  gemm.Prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kHungry});
  EXPECT_THAT(WorkspacesOf(&gemm), ElementsAre(1024, 0, kHungry, kPartialSums, kPartialSums, 0));
  EXPECT_THAT(WorkspacesOf(&gemm, 2), ElementsAre(1024, 0));
  gemm.Prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  EXPECT_THAT(WorkspacesOf(&gemm), ElementsAre(0, kHungry, kPartialSums, 0));
  gemm.Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t{8});
  EXPECT_THAT(WorkspacesOf(&gemm), ElementsAre(kHungry, kPartialSums, 0));
  gemm.Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t{2});
  EXPECT_THAT(SearchFor(&gemm, CUBLAS_STATUS_NOT_SUPPORTED), HasSubstr("no algorithm"));
}

TEST(FakeCublasLtTest, MemoryThatAnAlgorithmIsNotForIsRefused) {
  Gemm gemm(CUBLAS_COMPUTE_32F, kA, kB, kD), other(CUBLAS_COMPUTE_32F_FAST_TF32, kA, kB, kD);
  gemm.Prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{1024});
  gemm.Prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  std::vector<cublasLtMatmulHeuristicResult_t> results;
  ASSERT_EQ(gemm.Search(&results), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(results.size(), 3u);
  const cublasLtMatmulAlgo_t aligned = results[0].algo, split = results[1].algo, simple = results[2].algo;
  alignas(16) float a[8] = {1, 2, 3, 4, 5, 6}, d[4] = {};
  alignas(16) unsigned char workspace[64];
  const auto refusal = [&](cublasStatus_t status) {
    EXPECT_NE(status, CUBLAS_STATUS_SUCCESS);
    return Recorded().refusal;
  };
  EXPECT_EQ(gemm.Multiply(aligned, 1, a, a, 0, d, d), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm.Multiply(split, 1, a, a, 0, nullptr, d, workspace, 32), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d, ElementsAre(22, 28, 49, 64));
  EXPECT_THAT(refusal(gemm.Multiply(split, 1, a, a, 0, d, d, workspace, 31)), HasSubstr("too small"));
  EXPECT_THAT(refusal(gemm.Multiply(split, 1, a, a, 0, d, d, nullptr, 32)), HasSubstr("too small"));
  EXPECT_THAT(refusal(gemm.Multiply(split, 1, a, a, 0, d, d, workspace + 8, 32)),
              HasSubstr("multiple of 16"));
  EXPECT_THAT(refusal(gemm.Multiply(aligned, 1, a + 1, a, 0, d, d)), HasSubstr("larger alignment"));
  EXPECT_THAT(refusal(gemm.Multiply(simple, 1, a + 1, a, 0, d, d)), HasSubstr("promised"));
  EXPECT_THAT(refusal(gemm.Multiply(simple, 1, a, a, 1, nullptr, d)), HasSubstr("is null"));
  EXPECT_THAT(refusal(gemm.Multiply({}, 1, a, a, 0, d, d)), HasSubstr("not one of the heuristics"));
  EXPECT_THAT(refusal(other.Multiply(simple, 1, a, a, 0, d, d)), HasSubstr("another GEMM"));
  SetDevice(1);
  EXPECT_THAT(refusal(gemm.Multiply(simple, 1, a, a, 0, d, d)), HasSubstr("another device"));
  SetDevice(0);
}

TEST(FakeCublasLtTest, Fp8IsForATransposedAndBNotInLinesOfSixteenBytes) {
  const auto refusal = [](uint64_t depth, uint64_t rows, cublasOperation_t operation) {
    Gemm gemm(CUBLAS_COMPUTE_32F, {CUDA_R_8F_E4M3, depth, rows, 32}, {CUDA_R_8F_E5M2, depth, 16, 32},
              {CUDA_R_32F, rows, 16, 32});
    gemm.Set(CUBLASLT_MATMUL_DESC_TRANSA, operation);
    return SearchFor(&gemm, CUBLAS_STATUS_NOT_SUPPORTED);
  };
  EXPECT_THAT(refusal(16, 16, CUBLAS_OP_N), HasSubstr("A transposed"));
  EXPECT_THAT(refusal(24, 16, CUBLAS_OP_T), HasSubstr("16 bytes"));
  EXPECT_THAT(refusal(16, 8, CUBLAS_OP_T), HasSubstr("16 bytes"));
}

TEST(FakeCublasLtTest, NumbersAreThoseOfTheirTypes) {
  EXPECT_EQ(Decode(kFp32, 0x3FC00000), 1.5);
  EXPECT_EQ(Decode(kBf16, 0xC049), -3.140625);
  EXPECT_EQ(Decode(kFp16, 0x0001), 0x1p-24);
  EXPECT_EQ(Decode(kFp16, 0xFC00), -HUGE_VAL);
  EXPECT_EQ(Decode(kE4m3, 0x7E), 448);
  EXPECT_TRUE(std::isnan(Decode(kE4m3, 0xFF)));
  EXPECT_EQ(Decode(kE5m2, 0x7B), 57344);
  EXPECT_EQ(Decode(kE5m2, 0x7C), HUGE_VAL);
  EXPECT_EQ(Encode(kFp32, 0.1), 0x3DCCCCCDu);
  EXPECT_EQ(Encode(kBf16, 1 + 0x1p-8), 0x3F80u) << "a tie goes to the even one";
  EXPECT_EQ(Encode(kBf16, 1 + 3 * 0x1p-8), 0x3F82u);
  EXPECT_EQ(Encode(kFp16, -65519), 0xFBFFu);
  EXPECT_EQ(Encode(kFp16, 65520), 0x7C00u);
  EXPECT_EQ(Encode(kFp16, 1.5 * 0x1p-24), 0x0002u);
  EXPECT_EQ(Encode(kFp16, 2047 * 0x1p-25), 0x0400u) << "a carry into the exponent";
  for (uint32_t code = 0; code < 0x7C00; ++code) ASSERT_EQ(Encode(kFp16, Decode(kFp16, code)), code);
}

}  // namespace
}  // namespace trainwright::fake_cublaslt

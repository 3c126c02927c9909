#include "lib/probe/cpu_gemm_trials.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/nn/linear/block_matmul.h"
#include "lib/nn/linear/gemm_kernels.h"

namespace trainwright {
namespace {

/// Rows, columns and depth as of the layers of a small model: of a gigaflop.
constexpr int64_t kRows = 1024, kColumns = 1024, kDepth = 512;
constexpr double kGain = 1.15, kLeastOfFp32 = 0.9;

std::string NameOf(CpuGemms::Fp32 fp32) {
  const std::string name = CpuGemmsName({.fp32 = fp32});
  return name.substr(0, name.find(','));
}

std::string NameOf(CpuGemms::Bf16 bf16) {
  const std::string name = CpuGemmsName({.bf16 = bf16});
  return name.substr(name.find(',') + 1);
}

/// x [rows, depth] w [columns, depth]^T, as a layer's forward pass computes it.
class Trial {
 public:
  explicit Trial(at::ScalarType type) {
    x_nk_ = at::empty({kRows, kDepth}, type).uniform_(-1, 1);
    w_ok_ = at::empty({kColumns, kDepth}, type).uniform_(-1, 1);
    y_no_ = at::empty({kRows, kColumns}, type);
  }
  void ByBlocks(bool widens) {
    const bool bf16 = x_nk_.scalar_type() == at::kBFloat16;
    cpu::BlockMatmul({.m = kRows,
                      .n = kColumns,
                      .k = kDepth,
                      .bf16 = bf16,
                      .a = {.data = x_nk_.const_data_ptr(), .stride = kDepth},
                      .b = {.data = w_ok_.const_data_ptr(), .stride = kDepth, .transposed = true},
                      .out = y_no_.mutable_data_ptr(),
                      .out_stride = kColumns,
                      .out_bf16 = bf16,
                      .widens = widens});
  }
  void ByLibrary() { at::mm_out(y_no_, x_nk_, w_ok_.t()); }

 private:
  at::Tensor x_nk_, w_ok_, y_no_;
};

double TimeOf(const std::function<void()>& compute) {
  const auto start = std::chrono::steady_clock::now();
  compute();
  return SecondsSince(start);
}

double RateOf(const CpuGemmRates& rates, const std::string& name) {
  const auto rate = rates.find(name);
  return rate == rates.end() ? 0 : rate->second;
}

}  // namespace

CpuGemmRates MeasureCpuGemms(const CpuGemmTrials& trials) {
  Trial fp32(at::kFloat), bf16(at::kBFloat16);
  struct Contestant {
    std::string name;
    std::function<void()> compute;
    double best_time_s = 0;
  };
  std::vector<Contestant> contestants = {{NameOf(CpuGemms::Fp32::kLibrary), [&fp32] { fp32.ByLibrary(); }}};
  if (WhyNotCpuGemms({CpuGemms::Fp32::kBlocks, CpuGemms::Bf16::kWidened}).empty()) {
    contestants.push_back({NameOf(CpuGemms::Fp32::kBlocks), [&fp32] { fp32.ByBlocks(/*widens=*/false); }});
    contestants.push_back({NameOf(CpuGemms::Bf16::kWidened), [&bf16] { bf16.ByBlocks(/*widens=*/true); }});
  }
  if (WhyNotCpuGemms({.bf16 = CpuGemms::Bf16::kInstructions}).empty()) {
    contestants.push_back(
        {NameOf(CpuGemms::Bf16::kInstructions), [&bf16] { bf16.ByBlocks(/*widens=*/false); }});
  }
  for (const Contestant& contestant : contestants) contestant.compute();  // makes its kernels
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < trials.least_rounds || SecondsSince(start) < trials.time_s; ++round) {
    for (Contestant& contestant : contestants) {
      const double time_s = TimeOf(contestant.compute);
      contestant.best_time_s = round == 0 ? time_s : std::min(contestant.best_time_s, time_s);
    }
  }
  CpuGemmRates rates;
  constexpr double kOperations = 2.0 * kRows * kColumns * kDepth;
  for (const Contestant& contestant : contestants) {
    rates[contestant.name] = kOperations / contestant.best_time_s;
  }
  return rates;
}

CpuGemms FastestCpuGemms(const CpuGemms& usual, const CpuGemmRates& rates) {
  CpuGemms gemms = usual;
  const auto rate_of = [&](auto kind) { return RateOf(rates, NameOf(kind)); };
  for (const CpuGemms::Fp32 kind : {CpuGemms::Fp32::kBlocks, CpuGemms::Fp32::kLibrary}) {
    if (rate_of(kind) >= kGain * rate_of(gemms.fp32) && rate_of(kind) > 0) gemms.fp32 = kind;
  }
  for (const CpuGemms::Bf16 kind : {CpuGemms::Bf16::kInstructions, CpuGemms::Bf16::kWidened}) {
    if (rate_of(kind) >= kGain * rate_of(gemms.bf16) && rate_of(kind) > 0) gemms.bf16 = kind;
  }
  if (rate_of(gemms.bf16) < rate_of(gemms.fp32)) {  // the faster one of bf16 may not be
    const bool widened = rate_of(CpuGemms::Bf16::kWidened) > rate_of(CpuGemms::Bf16::kInstructions);
    gemms.bf16 = widened ? CpuGemms::Bf16::kWidened : CpuGemms::Bf16::kInstructions;
  }
  if (rate_of(gemms.bf16) < kLeastOfFp32 * rate_of(gemms.fp32)) gemms.bf16 = CpuGemms::Bf16::kEmulated;
  return gemms;
}

std::optional<double> GainOfBf16(const CpuGemms& gemms, const CpuGemmRates& rates) {
  const double fp32 = RateOf(rates, NameOf(gemms.fp32)), bf16 = RateOf(rates, NameOf(gemms.bf16));
  if (fp32 <= 0 || bf16 <= 0) return std::nullopt;
  return std::round(bf16 / fp32 * kPartsOfGain) / kPartsOfGain;
}

}  // namespace trainwright

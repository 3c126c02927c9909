#include "lib/probe/cpu_gemm_choice.h"

#include <optional>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/utc_time.h"
#include "lib/machine/measurement.h"
#include "lib/nn/linear/gemm_kernels.h"

namespace trainwright {
namespace {

constexpr char kFlag[] = "--kernels", kAuto[] = "auto", kUsual[] = "usual";

CpuGemms NamedCpuGemms(const std::string& kernels) {
  const CpuGemms gemms = ParseCpuGemms(kernels, kFlag, UsualCpuGemms());
  if (const std::string why_not = WhyNotCpuGemms(gemms); !why_not.empty()) {
    throw Error(ErrorCode::kUsage, kFlag, "this processor " + why_not + ", which " + kernels + " needs", "",
                "use auto: what is fastest here is measured");
  }
  return gemms;
}

std::string DescribeMeasured(const MeasuredCpuGemms& measured, int threads) {
  std::string rates;
  for (const auto& [name, rate] : measured.rates) {
    rates += (rates.empty() ? "" : ", ") + name + " " + FormatRate(rate, "flop/s");
  }
  return "kernels: measured GEMMs of " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
         ", once for this machine: " + rates + "; taking " + CpuGemmsName(measured.gemms);
}

/// What auto stands for where there is a choice.
MeasuredCpuGemms MeasuredOrKnown(const CpuGemmRequest& request, const CpuGemms& usual) {
  const CpuGemmMachine machine = request.machine();
  const auto known = FindCpuGemms(request.cache_path, machine);
  if (known && WhyNotCpuGemms(known->gemms).empty()) return *known;
  MeasuredCpuGemms measured;
  measured.rates = request.measure();
  measured.gemms = FastestCpuGemms(usual, measured.rates);
  measured.measured = Rfc3339Now();
  request.announce(DescribeMeasured(measured, machine.threads));
  if (request.cache_path.empty()) return measured;
  try {
    StoreCpuGemms(request.cache_path, machine, measured);
  } catch (const Error& error) {
    LogWarning("what was measured of the kernels is not remembered: " + std::string(error.what()));
  }
  return measured;
}

}  // namespace

bool NamesKernels(const std::string& kernels) {
  return kernels != kAuto && kernels != kUsual;
}

void CheckKernelsOption(const std::string& kernels) {
  if (NamesKernels(kernels)) ParseCpuGemms(kernels, kFlag, {});
}

CpuGemms ChooseCpuGemms(const CpuGemmRequest& request, std::optional<double>* bf16_gain) {
  if (NamesKernels(request.kernels)) return NamedCpuGemms(request.kernels);
  const CpuGemms usual = UsualCpuGemms();
  const bool has_choice = WhyNotCpuGemms({.fp32 = CpuGemms::Fp32::kBlocks}).empty();
  if (request.kernels == kUsual || !request.measures || !has_choice) return usual;
  const MeasuredCpuGemms measured = MeasuredOrKnown(request, usual);
  if (bf16_gain != nullptr) *bf16_gain = GainOfBf16(measured.gemms, measured.rates);
  return measured.gemms;
}

}  // namespace trainwright

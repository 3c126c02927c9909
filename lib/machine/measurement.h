/// One measured ceiling of the machine, and how it was measured.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/machine/repeated_rate.h"

namespace trainwright {

/// Of a GPU beside a measurement, to report a throttled one.
struct GpuStrain {
  std::optional<int> sm_clock_mhz;
  std::optional<double> power_draw_w;
};

struct Measurement {
  std::string
      what;  ///< "gemm", "memory_copy", "memory_read", "memory_triad", "device_copy", "h2d_pinned", ...
  std::string device;                ///< "cpu", "cuda:0", "disk"
  std::string method;                ///< whose kernel or which way: "trainwright", "torch", "O_DIRECT"
  std::optional<std::string> dtype;  ///< of GEMMs: "fp32", "tf32", "bf16", "fp16"
  std::string size;                  ///< "1024 x 1024 x 1024", "256 MiB"
  std::optional<int> threads;
  std::string unit;  ///< of best and median: "flop/s" or "byte/s"
  Rate rate;
  std::optional<double> fraction_of_spec;  ///< median over the published dense rate
  std::optional<std::string> spec;         ///< the document that publishes it
  std::optional<GpuStrain> before, after;
};

/// Above this spread no recommendation may depend on a measurement.
inline constexpr double kLargestSpread = 0.2;
/// Whether it is steady enough for that.
bool IsSteady(const Rate& rate);

nlohmann::ordered_json EncodeMeasurement(const Measurement& measurement);

/// "162 GFLOP/s", "16.3 GB/s".
std::string FormatRate(double rate, const std::string& unit);

}  // namespace trainwright

#include "lib/machine/gpu_info.h"

#include "lib/machine/json_optional.h"

namespace trainwright {

nlohmann::ordered_json EncodeGpuInfo(const GpuInfo& gpu) {
  nlohmann::ordered_json processes = nullptr;
  if (gpu.processes) {
    processes = nlohmann::ordered_json::array();
    for (const GpuProcess& process : *gpu.processes) {
      processes.push_back({{"pid", process.pid},
                           {"name", OrNull(process.name)},
                           {"memory_bytes", OrNull(process.memory_bytes)},
                           {"utilization_percent", OrNull(process.utilization_percent)},
                           {"memory_utilization_percent", OrNull(process.memory_utilization_percent)}});
    }
  }
  return {{"index", gpu.index},
          {"name", OrNull(gpu.name)},
          {"uuid", OrNull(gpu.uuid)},
          {"compute_capability",
           gpu.capability ? nlohmann::ordered_json(gpu.capability->text()) : nlohmann::ordered_json()},
          {"sm_count", OrNull(gpu.sm_count)},
          {"memory_total_bytes", OrNull(gpu.memory_total_bytes)},
          {"memory_free_bytes", OrNull(gpu.memory_free_bytes)},
          {"memory_used_bytes", OrNull(gpu.memory_used_bytes)},
          {"ecc", OrNull(gpu.ecc)},
          {"mig", OrNull(gpu.mig)},
          {"sm_clock_mhz", OrNull(gpu.sm_clock_mhz)},
          {"sm_clock_max_mhz", OrNull(gpu.sm_clock_max_mhz)},
          {"memory_clock_mhz", OrNull(gpu.memory_clock_mhz)},
          {"memory_clock_max_mhz", OrNull(gpu.memory_clock_max_mhz)},
          {"power_limit_w", OrNull(gpu.power_limit_w)},
          {"power_draw_w", OrNull(gpu.power_draw_w)},
          {"temperature_c", OrNull(gpu.temperature_c)},
          {"utilization_percent", OrNull(gpu.utilization_percent)},
          {"memory_utilization_percent", OrNull(gpu.memory_utilization_percent)},
          {"throttle_reasons", OrNull(gpu.throttle_reasons)},
          {"compute_mode", OrNull(gpu.compute_mode)},
          {"processes", processes}};
}

}  // namespace trainwright

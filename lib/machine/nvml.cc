#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "lib/machine/gpu_info.h"
#include "lib/machine/library_function.h"

namespace trainwright {
namespace {

// The part of NVML's binary interface that is used here, as nvml.h of CUDA 12 and 13 declares it.
using NvmlReturn = int;
using NvmlDevice = struct NvmlDeviceHandle*;
constexpr NvmlReturn kSuccess = 0, kNotFound = 6, kInsufficientSize = 7;

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlUtilization {
  unsigned int gpu, memory;
};
struct NvmlProcess {
  unsigned int pid;
  unsigned long long memory;
  unsigned int gpu_instance, compute_instance;
};
struct NvmlProcessUse {
  unsigned int pid;
  unsigned long long time_us;
  unsigned int gpu, memory, encoder, decoder;
};
constexpr unsigned long long kNotAvailable = std::numeric_limits<unsigned long long>::max();
constexpr int kSmClock = 1, kMemoryClock = 2;
constexpr int kGpuTemperature = 0;
constexpr std::array<const char*, 4> kComputeModes = {"default", "exclusive_thread", "prohibited",
                                                      "exclusive_process"};

struct ThrottleReason {
  unsigned long long bit;
  const char* name;
};
constexpr ThrottleReason kThrottleReasons[] = {
    {0x1, "idle"},        {0x2, "application_clocks"}, {0x4, "power_cap"},
    {0x8, "hw_slowdown"}, {0x10, "sync_boost"},        {0x20, "sw_thermal"},
    {0x40, "hw_thermal"}, {0x80, "hw_power_brake"},    {0x100, "display_clocks"}};

using Uint = unsigned int;

struct Functions {
  NvmlReturn (*init)();
  NvmlReturn (*shutdown)();
  const char* (*error_string)(NvmlReturn);
  NvmlReturn (*driver_version)(char*, Uint);
  NvmlReturn (*cuda_version)(int*);
  NvmlReturn (*process_name)(Uint, char*, Uint);
  NvmlReturn (*count)(Uint*);
  NvmlReturn (*handle)(Uint, NvmlDevice*);
  NvmlReturn (*name)(NvmlDevice, char*, Uint);
  NvmlReturn (*uuid)(NvmlDevice, char*, Uint);
  NvmlReturn (*capability)(NvmlDevice, int*, int*);
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*);
  NvmlReturn (*ecc)(NvmlDevice, int*, int*);
  NvmlReturn (*mig)(NvmlDevice, Uint*, Uint*);
  NvmlReturn (*clock)(NvmlDevice, int, Uint*);
  NvmlReturn (*max_clock)(NvmlDevice, int, Uint*);
  NvmlReturn (*power_limit)(NvmlDevice, Uint*);
  NvmlReturn (*power)(NvmlDevice, Uint*);
  NvmlReturn (*temperature)(NvmlDevice, int, Uint*);
  NvmlReturn (*utilization)(NvmlDevice, NvmlUtilization*);
  NvmlReturn (*throttle)(NvmlDevice, unsigned long long*);
  NvmlReturn (*compute_mode)(NvmlDevice, int*);
  NvmlReturn (*processes)(NvmlDevice, Uint*, NvmlProcess*);
  NvmlReturn (*process_use)(NvmlDevice, NvmlProcessUse*, Uint*, unsigned long long);
};

/// Old drivers lack some; those stay null.
Functions FindFunctions(void* library) {
  Functions f{};
  FindFunction(library, "nvmlInit_v2", &f.init);
  FindFunction(library, "nvmlShutdown", &f.shutdown);
  FindFunction(library, "nvmlErrorString", &f.error_string);
  FindFunction(library, "nvmlSystemGetDriverVersion", &f.driver_version);
  FindFunction(library, "nvmlSystemGetCudaDriverVersion", &f.cuda_version);
  FindFunction(library, "nvmlSystemGetProcessName", &f.process_name);
  FindFunction(library, "nvmlDeviceGetCount_v2", &f.count);
  FindFunction(library, "nvmlDeviceGetHandleByIndex_v2", &f.handle);
  FindFunction(library, "nvmlDeviceGetName", &f.name);
  FindFunction(library, "nvmlDeviceGetUUID", &f.uuid);
  FindFunction(library, "nvmlDeviceGetCudaComputeCapability", &f.capability);
  FindFunction(library, "nvmlDeviceGetMemoryInfo", &f.memory);
  FindFunction(library, "nvmlDeviceGetEccMode", &f.ecc);
  FindFunction(library, "nvmlDeviceGetMigMode", &f.mig);
  FindFunction(library, "nvmlDeviceGetClockInfo", &f.clock);
  FindFunction(library, "nvmlDeviceGetMaxClockInfo", &f.max_clock);
  FindFunction(library, "nvmlDeviceGetPowerManagementLimit", &f.power_limit);
  FindFunction(library, "nvmlDeviceGetPowerUsage", &f.power);
  FindFunction(library, "nvmlDeviceGetTemperature", &f.temperature);
  FindFunction(library, "nvmlDeviceGetUtilizationRates", &f.utilization);
  FindFunction(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &f.throttle);
  if (f.throttle == nullptr) FindFunction(library, "nvmlDeviceGetCurrentClocksEventReasons", &f.throttle);
  FindFunction(library, "nvmlDeviceGetComputeMode", &f.compute_mode);
  FindFunction(library, "nvmlDeviceGetComputeRunningProcesses_v3", &f.processes);
  FindFunction(library, "nvmlDeviceGetProcessUtilization", &f.process_use);
  return f;
}

template <typename... Parameters, typename... Arguments>
bool Ask(NvmlReturn (*function)(Parameters...), Arguments... arguments) {
  return function != nullptr && function(arguments...) == kSuccess;
}

template <typename... Parameters, typename... Arguments>
std::optional<std::string> AskText(NvmlReturn (*function)(Parameters...), Arguments... arguments) {
  char text[256] = "";
  if (!Ask(function, arguments..., &text[0], static_cast<Uint>(sizeof(text)))) return std::nullopt;
  return text;
}

template <typename... Parameters, typename... Arguments>
std::optional<int> AskNumber(NvmlReturn (*function)(Parameters...), Arguments... arguments) {
  Uint number = 0;
  if (!Ask(function, arguments..., &number)) return std::nullopt;
  return static_cast<int>(number);
}

std::optional<double> Watts(std::optional<int> milliwatts) {
  if (!milliwatts) return std::nullopt;
  return *milliwatts / 1000.0;
}

class Nvml final : public GpuManagement {
 public:
  explicit Nvml(const Functions& functions) : f_(functions) {}
  ~Nvml() override { Ask(f_.shutdown); }

  DriverInfo Driver() override {
    DriverInfo driver{.version = AskText(f_.driver_version), .cuda_version = {}};
    if (int version = 0; Ask(f_.cuda_version, &version)) driver.cuda_version = version;
    return driver;
  }

  std::vector<GpuInfo> Gpus() override {
    std::vector<GpuInfo> gpus;
    for (int index = 0; index < AskNumber(f_.count).value_or(0); ++index) {
      NvmlDevice device = nullptr;
      GpuInfo gpu{.index = index};
      if (Ask(f_.handle, static_cast<Uint>(index), &device)) {
        Read(device, &gpu);
        if (gpu.processes) AddUse(device, &last_use_us_[index], &*gpu.processes);
      }
      gpus.push_back(std::move(gpu));
    }
    return gpus;
  }

 private:
  void Read(NvmlDevice device, GpuInfo* gpu) {
    gpu->name = AskText(f_.name, device);
    gpu->uuid = AskText(f_.uuid, device);
    if (Capability found; Ask(f_.capability, device, &found.major, &found.minor)) gpu->capability = found;
    if (NvmlMemory memory{}; Ask(f_.memory, device, &memory)) {
      gpu->memory_total_bytes = static_cast<int64_t>(memory.total);
      gpu->memory_free_bytes = static_cast<int64_t>(memory.free);
      gpu->memory_used_bytes = static_cast<int64_t>(memory.used);
    }
    if (int now = 0, pending = 0; Ask(f_.ecc, device, &now, &pending)) gpu->ecc = now != 0;
    if (Uint now = 0, pending = 0; Ask(f_.mig, device, &now, &pending)) gpu->mig = now != 0;
    gpu->sm_clock_mhz = AskNumber(f_.clock, device, kSmClock);
    gpu->sm_clock_max_mhz = AskNumber(f_.max_clock, device, kSmClock);
    gpu->memory_clock_mhz = AskNumber(f_.clock, device, kMemoryClock);
    gpu->memory_clock_max_mhz = AskNumber(f_.max_clock, device, kMemoryClock);
    gpu->power_limit_w = Watts(AskNumber(f_.power_limit, device));
    gpu->power_draw_w = Watts(AskNumber(f_.power, device));
    gpu->temperature_c = AskNumber(f_.temperature, device, kGpuTemperature);
    if (NvmlUtilization use{}; Ask(f_.utilization, device, &use)) {
      gpu->utilization_percent = static_cast<int>(use.gpu);
      gpu->memory_utilization_percent = static_cast<int>(use.memory);
    }
    if (unsigned long long bits = 0; Ask(f_.throttle, device, &bits)) {
      gpu->throttle_reasons.emplace();
      for (const ThrottleReason& reason : kThrottleReasons) {
        if ((bits & reason.bit) != 0) gpu->throttle_reasons->push_back(reason.name);
      }
    }
    if (int mode = 0; Ask(f_.compute_mode, device, &mode) && mode >= 0 &&
                      static_cast<size_t>(mode) < kComputeModes.size()) {
      gpu->compute_mode = kComputeModes[static_cast<size_t>(mode)];
    }
    gpu->processes = Processes(device);
  }

  std::optional<std::vector<GpuProcess>> Processes(NvmlDevice device) {
    if (f_.processes == nullptr) return std::nullopt;
    std::vector<NvmlProcess> list(64);
    // More may start between two calls.
    for (int tries = 0; tries < 4; ++tries) {
      auto count = static_cast<Uint>(list.size());
      const NvmlReturn status = f_.processes(device, &count, list.data());
      if (status == kInsufficientSize) {
        list.resize(static_cast<size_t>(count) + 64);
        continue;
      }
      if (status != kSuccess) return std::nullopt;
      std::vector<GpuProcess> processes;
      for (Uint i = 0; i < count; ++i) {
        GpuProcess process{.pid = list[i].pid, .name = AskText(f_.process_name, list[i].pid)};
        if (list[i].memory != kNotAvailable) process.memory_bytes = static_cast<int64_t>(list[i].memory);
        processes.push_back(std::move(process));
      }
      return processes;
    }
    return std::nullopt;
  }

  /// Sets what each process has lately used of the device: its newest sample since the call before.
  /// \param seen_us time of the newest sample so far; moved on
  void AddUse(NvmlDevice device, unsigned long long* seen_us, std::vector<GpuProcess>* processes) {
    if (f_.process_use == nullptr) return;
    Uint count = 0;
    NvmlReturn status = f_.process_use(device, nullptr, &count, *seen_us);
    std::vector<NvmlProcessUse> samples;
    if (status == kInsufficientSize || status == kSuccess) {
      samples.resize(count);
      if (count > 0) status = f_.process_use(device, samples.data(), &count, *seen_us);
      if (status == kSuccess) samples.resize(count);
    }
    if (status == kNotFound) samples.clear();  // nobody has computed since then
    if (status != kSuccess && status != kNotFound) return;
    const unsigned long long since_us = *seen_us;
    for (GpuProcess& process : *processes) {
      const NvmlProcessUse* newest = nullptr;
      for (const NvmlProcessUse& sample : samples) {
        if (sample.pid != process.pid || sample.time_us < since_us) continue;
        if (newest == nullptr || sample.time_us > newest->time_us) newest = &sample;
      }
      process.utilization_percent = newest != nullptr ? static_cast<int>(newest->gpu) : 0;
      process.memory_utilization_percent = newest != nullptr ? static_cast<int>(newest->memory) : 0;
    }
    for (const NvmlProcessUse& sample : samples) *seen_us = std::max(*seen_us, sample.time_us);
  }

  Functions f_;
  std::map<int, unsigned long long> last_use_us_;  ///< by index of the device
};

}  // namespace

std::unique_ptr<GpuManagement> OpenNvml(std::string* problem, const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    *problem = dlerror();
    return nullptr;
  }
  const Functions functions = FindFunctions(handle);
  if (functions.init == nullptr || functions.count == nullptr || functions.handle == nullptr) {
    *problem = library + " lacks the functions of NVML";
    return nullptr;
  }
  if (const NvmlReturn status = functions.init(); status != kSuccess) {
    *problem = functions.error_string != nullptr ? functions.error_string(status)
                                                 : "NVML error " + std::to_string(status);
    return nullptr;
  }
  return std::make_unique<Nvml>(functions);
}

}  // namespace trainwright

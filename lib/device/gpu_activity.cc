#include "lib/device/gpu_activity.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"

namespace trainwright {
namespace {

/// As a reader of C++ writes it; a name that is none stays what it is.
std::string Demangled(const char* name) {
  if (name == nullptr) return "";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : name;
}

class PluginActivitySource final : public ActivitySource {
 public:
  PluginActivitySource(const GpuActivityPlugin* plugin, int32_t device) : plugin_(plugin), device_(device) {}
  ~PluginActivitySource() override {
    if (started_)
      plugin_->stop(
          device_, [](void*, const GpuActivityRecord*) {}, nullptr);
  }
  PluginActivitySource(const PluginActivitySource&) = delete;
  PluginActivitySource& operator=(const PluginActivitySource&) = delete;

  void Start() override {
    const char* const problem = plugin_->start(device_);
    if (problem != nullptr) {
      throw Error(ErrorCode::kDevice, "--profile", std::string("CUPTI cannot record the GPU: ") + problem, "",
                  "run without another profiler, or leave out --profile");
    }
    started_ = true;
  }

  void Wait() override { plugin_->wait(device_); }

  std::vector<DeviceActivity> Stop() override {
    std::vector<DeviceActivity> activities;
    started_ = false;
    const int64_t dropped = plugin_->stop(device_, &Add, &activities);
    if (dropped > 0) {
      LogWarning("the profile lacks " + FormatNumberOf(static_cast<uint64_t>(dropped), "GPU record") +
                 " that CUPTI had no room for");
    }
    return activities;
  }

 private:
  static void Add(void* activities, const GpuActivityRecord* record) {
    static_cast<std::vector<DeviceActivity>*>(activities)
        ->push_back({.kind = static_cast<ActivityKind>(record->kind),
                     .name = Demangled(record->name),
                     .device = record->device,
                     .stream = record->stream,
                     .start_ns = record->start_ns,
                     .end_ns = record->end_ns,
                     .bytes = record->bytes});
  }

  const GpuActivityPlugin* plugin_;
  int32_t device_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<ActivitySource> MakeActivitySource(const GpuActivityPlugin* plugin, int32_t device) {
  return std::make_unique<PluginActivitySource>(plugin, device);
}

std::unique_ptr<ActivitySource> MakeActivitySource(c10::Device device) {
  if (!device.is_cuda()) return nullptr;
  // The plugin is loaded globally, and never unloaded (cuda_backend.h).
  const auto entry = reinterpret_cast<GpuActivityFunction*>(dlsym(RTLD_DEFAULT, kGpuActivitySymbol));
  if (entry == nullptr) {
    throw Error(ErrorCode::kDevice, "--profile", "the CUDA plugin was built without CUPTI", "",
                "build it where the CUDA toolkit has cupti.h, or leave out --profile");
  }
  return MakeActivitySource(entry(), device.has_index() ? device.index() : 0);
}

}  // namespace trainwright

#include "lib/device/device_graph.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/device/accelerator.h"
#include "lib/device/torch_words.h"

namespace trainwright {
namespace {

[[noreturn]] void Refuse(const std::string& problem) {
  throw Error(ErrorCode::kDevice, "device graph", problem, "", "run with --compile off");
}

class PluginGraph final : public DeviceGraph {
 public:
  explicit PluginGraph(const DeviceGraphPlugin* plugin) : plugin_(plugin) {}
  ~PluginGraph() override {
    if (graph_ != nullptr) plugin_->destroy(graph_);
  }
  PluginGraph(const PluginGraph&) = delete;
  PluginGraph& operator=(const PluginGraph&) = delete;

  void Record(int32_t device, const std::function<void()>& work) {
    if (const char* problem = plugin_->begin(device, &graph_); problem != nullptr) {
      Refuse(std::string("recording cannot begin: ") + problem);
    }
    try {
      work();
    } catch (...) {
      plugin_->end(graph_, /*complete=*/false);
      throw;
    }
    if (const char* problem = plugin_->end(graph_, /*complete=*/true); problem != nullptr) {
      Refuse(std::string("what was recorded cannot be repeated: ") + problem);
    }
  }

  void Launch() override {
    if (const char* problem = plugin_->launch(graph_); problem != nullptr) Refuse(problem);
  }

 private:
  const DeviceGraphPlugin* plugin_;
  RecordedGraph* graph_ = nullptr;
};

class PluginRecorder final : public GraphRecorder {
 public:
  PluginRecorder(const DeviceGraphPlugin* plugin, int32_t device) : plugin_(plugin), device_(device) {}

  std::unique_ptr<DeviceGraph> Record(const std::function<void()>& work) override {
    auto graph = std::make_unique<PluginGraph>(plugin_);
    graph->Record(device_, work);
    return graph;
  }

 private:
  const DeviceGraphPlugin* plugin_;
  int32_t device_;
};

}  // namespace

bool IsLackOfMemory(const std::exception& exception) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&exception) != nullptr;
}

void RefuseUnrecorded(const std::string& what, const std::exception& exception) {
  throw Error(ErrorCode::kDevice, "--compile graph", what + " cannot be recorded: " + WordsOf(exception), "",
              "run with --compile auto, which then goes on without graphs");
}

std::unique_ptr<GraphRecorder> MakeGraphRecorder(const DeviceGraphPlugin* plugin, int32_t device) {
  return std::make_unique<PluginRecorder>(plugin, device);
}

std::unique_ptr<GraphRecorder> MakeGraphRecorder(c10::Device device) {
  if (!IsAccelerator(device)) return nullptr;
  // The plugin is loaded globally, and never unloaded (cuda_backend.h).
  const auto entry = reinterpret_cast<DeviceGraphFunction*>(dlsym(RTLD_DEFAULT, kDeviceGraphSymbol));
  if (entry == nullptr) return nullptr;
  return MakeGraphRecorder(entry(), device.has_index() ? device.index() : 0);
}

}  // namespace trainwright

/// Work that a device repeats as a whole: queued once, kernel by kernel, while nothing runs, and from then on
/// launched in one call, which costs the host microseconds however many kernels there are (a CUDA graph).
///
/// What is repeated is the same kernels on the same memory. Memory that the work itself takes from torch's
/// allocator stays the graph's while it lives; memory from before must stay where it is. While work is
/// recorded the host may neither wait for the device nor copy to or from it.
/// Unverified: no GPU has run it yet; tests record on a device that refuses the host.
#pragma once

#include <c10/core/Device.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "lib/device/device_graph_plugin.h"

namespace trainwright {

class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  /// Queues the work on the device's present stream.
  /// \throws Error{kDevice}
  virtual void Launch() = 0;
};

/// Not thread-safe; graphs of one recorder are launched one after the other.
class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;
  /// Records what `work` queues on the present stream, from this thread; it does not run.
  /// \throws what `work` throws; Error{kDevice} on work that cannot be recorded
  virtual std::unique_ptr<DeviceGraph> Record(const std::function<void()>& work) = 0;
};

/// Of a GPU.
/// \returns null for a device whose work cannot be recorded
std::unique_ptr<GraphRecorder> MakeGraphRecorder(c10::Device device);

/// The same of a plugin that is at hand.
/// \param plugin outlives it
std::unique_ptr<GraphRecorder> MakeGraphRecorder(const DeviceGraphPlugin* plugin, int32_t device);

/// Whether work could not be recorded for lack of memory.
bool IsLackOfMemory(const std::exception& exception);

/// Ends a run whose work has to be repeated as graphs and cannot be.
/// \param what was to be recorded
/// \throws Error{kDevice}
[[noreturn]] void RefuseUnrecorded(const std::string& what, const std::exception& exception);

}  // namespace trainwright

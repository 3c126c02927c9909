/// What libtrainwright_cuda.so offers for graphs beside cuda_plugin.h, whose check of versions covers it,
/// too. Torch-free and plain C.
#pragma once

#include <cstdint>

namespace trainwright {

/// A graph, or one that is being recorded; the plugin's.
struct RecordedGraph;

/// What fails gives words that stay until the next call of the same thread; null: it worked.
struct DeviceGraphPlugin {
  /// Makes a stream beside the present one the present one, after what is queued there, and begins to record
  /// on it. What the work takes of torch's allocator is the graph's.
  /// \param graph made here, also where recording fails; for `destroy` once nobody needs it
  const char* (*begin)(int32_t device, RecordedGraph** graph);
  /// Ends recording, on any outcome of the work, and makes the stream of before the present one.
  /// \param complete false: what was recorded is not wanted
  const char* (*end)(RecordedGraph* graph, bool complete);
  /// Queues it on the present stream.
  const char* (*launch)(RecordedGraph* graph);
  /// Waits for the device, and gives the memory back.
  void (*destroy)(RecordedGraph* graph);
};

/// The symbol of the plugin's that gives it.
inline constexpr char kDeviceGraphSymbol[] = "trainwright_device_graph";
using DeviceGraphFunction = const DeviceGraphPlugin*();

}  // namespace trainwright

/// The end of a step - norm, decision, update and compute copy - repeated as a graph of the device
/// (lib/device/device_graph.h).
///
/// With the passes of its micro-batches as graphs (lib/model/pass_graphs.h) all kernels of a step are then
/// launched as a whole, but for the copies that bring its numbers to the device. Passes and update are not
/// one graph: micro-batches of a step differ in their shapes, and one graph for each combination of these
/// would rarely be met again.
///
/// The second update in a row of the same kind is recorded; results are those of the same kernels one by one,
/// bit for bit. Not thread-safe.
/// Unverified: no GPU has run it yet.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lib/device/device_graph.h"

namespace trainwright {

/// What the kernels of an update depend on, besides memory that stays where it is.
struct UpdateKind {
  double max_norm = 0;
  bool scaled = false;
  double momentum = 0;  ///< see OptimizerUpdate: a schedule that cycles it repeats nothing
  auto operator<=>(const UpdateKind&) const = default;
};

/// Since the beginning.
struct UpdateGraphCounts {
  int64_t recorded = 0;  ///< graphs
  int64_t launched = 0;  ///< updates as one launch
  int64_t queued = 0;    ///< others, kernel by kernel
  double record_s = 0;   ///< the host's time for recording
  std::string off;       ///< why nothing is recorded any more; empty: it is
};

class UpdateGraph {
 public:
  /// \param required whether an update that cannot be recorded ends the run; else, and for lack of memory, it
  ///     goes on without
  /// \param wanted asked before one is recorded; absent: always
  explicit UpdateGraph(std::unique_ptr<GraphRecorder> recorder, bool required = true,
                       std::function<bool()> wanted = {});

  /// Queues what `update` does, by calling it or by what was recorded of a call.
  /// \throws what `update` throws; Error{kDevice} where recording fails and is required
  void Run(const UpdateKind& kind, const std::function<void()>& update);
  /// Of an update that is not repeated, because of what `why` says.
  void RunOnce(const std::string& why, const std::function<void()>& update);
  const UpdateGraphCounts& counts() const { return counts_; }

 private:
  /// \returns false where it cannot be
  bool Record(const std::function<void()>& update);

  std::unique_ptr<GraphRecorder> recorder_;
  bool required_;
  std::function<bool()> wanted_;
  std::optional<UpdateKind> last_;      ///< of the update before
  std::unique_ptr<DeviceGraph> graph_;  ///< of that kind
  int64_t gemm_operations_ = 0;         ///< floating-point operations of its GEMMs
  UpdateGraphCounts counts_;
};

}  // namespace trainwright

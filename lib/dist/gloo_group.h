/// Collectives over c10d's Gloo group, between processes that TCP connects. Waits look at a FaultWatch.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/dist/collectives.h"
#include "lib/dist/fault_watch.h"
#include "lib/launch/rank_place.h"

namespace c10d {
class Backend;
class Work;
}  // namespace c10d

namespace trainwright {

class GlooGroup final : public Collectives {
 public:
  /// Connects this rank to all others, which call it, too.
  /// \param timeout_s for the connection to the store, and then to the other ranks: at least 5 s for these
  /// \param watch outlives the group
  /// \throws Error{kIo} as the watch says, also of connections that do not come about; Error{kUsage} on
  ///     an interface that this machine does not have
  GlooGroup(const RankPlace& place, double timeout_s, FaultWatch* watch);
  /// Ends the threads of a group whose work is done; one with work that never ends is left behind.
  ~GlooGroup() override;

  std::unique_ptr<PendingWork> BeginSum(at::Tensor values) override;
  /// The largest of each element.
  std::unique_ptr<PendingWork> BeginMax(at::Tensor values);
  std::unique_ptr<PendingWork> BeginExchange(const at::Tensor& send, at::Tensor receive,
                                             const std::vector<int64_t>& send_counts,
                                             const std::vector<int64_t>& receive_counts) override;
  std::unique_ptr<PendingWork> BeginGather(const at::Tensor& own, at::Tensor all) override;

  /// Says that all work is done, so that the group can be shut down.
  void Close() { closed_ = true; }

 private:
  std::unique_ptr<PendingWork> Pending(c10::intrusive_ptr<c10d::Work> work);

  c10::intrusive_ptr<c10d::Backend> group_;
  FaultWatch* const watch_;
  bool closed_ = false;
};

}  // namespace trainwright

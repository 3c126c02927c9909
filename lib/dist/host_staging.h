/// Collectives for tensors of a GPU, by collectives for those of the host: what is sent is copied to the host
/// first, what comes is copied back once it is waited for.
#pragma once

#include <memory>
#include <vector>

#include "lib/dist/collectives.h"

namespace trainwright {

class HostStaging final : public Collectives {
 public:
  /// \param host outlives this
  explicit HostStaging(Collectives* host) : host_(host) {}
  std::unique_ptr<PendingWork> BeginSum(at::Tensor values) override;
  std::unique_ptr<PendingWork> BeginExchange(const at::Tensor& send, at::Tensor receive,
                                             const std::vector<int64_t>& send_counts,
                                             const std::vector<int64_t>& receive_counts) override;
  std::unique_ptr<PendingWork> BeginGather(const at::Tensor& own, at::Tensor all) override;

 private:
  Collectives* const host_;
};

}  // namespace trainwright

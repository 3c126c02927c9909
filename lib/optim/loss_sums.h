/// Where the passes of a step put the sums of its loss terms: on the host, or where a GPU computed them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

namespace trainwright {

class LossSums {
 public:
  virtual ~LossSums() = default;
  /// \param sums of a pass, one a term
  virtual void Add(const std::vector<double>& sums) = 0;
  /// \param sums fp64 [terms] on the model's device; nothing waits for it
  virtual void AddOnDevice(const at::Tensor& sums) = 0;
};

class HostLossSums final : public LossSums {
 public:
  explicit HostLossSums(size_t terms) : sums_(terms) {}
  void Add(const std::vector<double>& sums) override;
  /// Waits for a GPU.
  void AddOnDevice(const at::Tensor& sums) override;
  const std::vector<double>& sums() const { return sums_; }

 private:
  std::vector<double> sums_;
};

}  // namespace trainwright

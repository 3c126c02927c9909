/// Where the passes of a step put the sums of its loss terms: on the host, or where a GPU computed them.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
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

/// Adds them to a tensor.
class TensorLossSums final : public LossSums {
 public:
  /// \param sums fp64 [terms], contiguous, on the model's device
  explicit TensorLossSums(at::Tensor sums) : sums_(std::move(sums)) {}
  void Add(const std::vector<double>& sums) override;
  void AddOnDevice(const at::Tensor& sums) override;

 private:
  at::Tensor sums_;
};

}  // namespace trainwright

#include "lib/optim/loss_sums.h"

#include "lib/base/error.h"

namespace trainwright {

void HostLossSums::Add(const std::vector<double>& sums) {
  TRAINWRIGHT_CHECK(sums.size() == sums_.size());
  for (size_t i = 0; i < sums.size(); ++i) sums_[i] += sums[i];
}

void HostLossSums::AddOnDevice(const at::Tensor& sums) {
  const at::Tensor host = sums.cpu();
  const double* values = host.const_data_ptr<double>();
  Add(std::vector<double>(values, values + host.numel()));
}

}  // namespace trainwright

#include "lib/optim/loss_sums.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/device/upload.h"

namespace trainwright {

void TensorLossSums::Add(const std::vector<double>& sums) {
  TRAINWRIGHT_CHECK(static_cast<int64_t>(sums.size()) == sums_.numel());
  at::Tensor host = at::empty({sums_.numel()}, at::kDouble);
  std::copy(sums.begin(), sums.end(), host.mutable_data_ptr<double>());
  AddOnDevice(Upload(host, sums_.device()));
}

void TensorLossSums::AddOnDevice(const at::Tensor& sums) {
  sums_.add_(sums);
}

}  // namespace trainwright

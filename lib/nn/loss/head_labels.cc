#include "lib/nn/loss/head_labels.h"

#include <ATen/ops/tensor.h>

#include "lib/device/upload.h"

namespace trainwright {

HeadLabels UploadHeadLabels(const at::Tensor& labels_n, const at::Tensor& weights_n, at::Device device,
                            bool pin) {
  const int64_t* labels = labels_n.const_data_ptr<int64_t>();
  const float* weights = weights_n.defined() ? weights_n.const_data_ptr<float>() : nullptr;
  std::vector<int64_t> rows, labels_of_rows;
  std::vector<float> weights_of_rows;
  for (int64_t row = 0; row < labels_n.numel(); ++row) {
    if (labels[row] < 0) continue;
    rows.push_back(row);
    labels_of_rows.push_back(labels[row]);
    if (weights != nullptr) weights_of_rows.push_back(weights[row]);
  }
  HeadLabels uploaded{.rows = static_cast<int64_t>(rows.size()), .num_labels = std::ssize(rows)};
  if (rows.empty()) return uploaded;
  const auto longs = at::TensorOptions().dtype(at::kLong);
  if (uploaded.rows < labels_n.numel()) uploaded.rows_r = Upload(at::tensor(rows, longs), device, pin);
  uploaded.labels_r = Upload(at::tensor(labels_of_rows, longs), device, pin);
  if (weights == nullptr) return uploaded;
  const auto floats = at::TensorOptions().dtype(at::kFloat);
  uploaded.weights_r1 = Upload(at::tensor(weights_of_rows, floats), device, pin).unsqueeze(1);
  return uploaded;
}

}  // namespace trainwright

#include "lib/nn/loss/head_labels.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "lib/device/upload.h"
#include "lib/nn/ops.h"

namespace trainwright {

int64_t CountLabels(const at::Tensor& labels_n) {
  const int64_t* labels = labels_n.const_data_ptr<int64_t>();
  return std::count_if(labels, labels + labels_n.numel(), [](int64_t label) { return label >= 0; });
}

HeadLabels SelectHeadRows(const at::Tensor& labels_n, int64_t rows, int64_t num_labels) {
  HeadLabels head{.rows = rows, .num_labels = num_labels};
  if (rows == labels_n.numel()) {
    head.labels_r = labels_n.to(at::kLong);
    return head;
  }
  head.rows_r = at::empty({rows}, labels_n.options().dtype(at::kLong));
  head.labels_r = at::empty({rows}, head.rows_r.options());
  ops::HeadRows(labels_n, head.rows_r, head.labels_r);
  return head;
}

HeadLabels UploadHeadLabels(const at::Tensor& labels_n, const at::Tensor& weights_n, at::Device device,
                            bool pin) {
  const int64_t num_labels = CountLabels(labels_n);
  if (num_labels == 0) return {};
  HeadLabels head = SelectHeadRows(Upload(labels_n.to(at::kInt), device, pin), num_labels, num_labels);
  if (!weights_n.defined()) return head;
  head.weights_r1 = Upload(weights_n, device, pin).unsqueeze(1);
  if (head.rows_r.defined()) head.weights_r1 = head.weights_r1.index_select(0, head.rows_r);
  return head;
}

}  // namespace trainwright

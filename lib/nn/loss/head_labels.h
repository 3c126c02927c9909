/// The rows of a micro-batch that the head computes, and their labels, where it computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace trainwright {

struct HeadLabels {
  int64_t rows = 0;        ///< R
  int64_t num_labels = 0;  ///< of rows that have one
  at::Tensor rows_r;       ///< int64 [R], each once; undefined: all rows in their order
  at::Tensor labels_r;     ///< int64 [R]; negative: none
  at::Tensor weights_r1;   ///< fp32 [R, 1]: what the losses of a row are multiplied by; undefined: 1
};

/// Of rows that have one.
/// \param labels_n int64 on the host, negative where there is none
int64_t CountLabels(const at::Tensor& labels_n);

/// Those that have a label and, up to `rows` of them, the first ones that have none, in their order; selected
/// where the labels are, without the host.
/// \param labels_n int32, negative where there is none
/// \param rows at least as many as have a label, which is `num_labels`
HeadLabels SelectHeadRows(const at::Tensor& labels_n, int64_t rows, int64_t num_labels);

/// Those that have a label.
/// \param labels_n int64 on the host, negative where there is none
/// \param weights_n fp32 on the host, or undefined: 1 each
/// \param pin as of Upload
HeadLabels UploadHeadLabels(const at::Tensor& labels_n, const at::Tensor& weights_n, at::Device device,
                            bool pin = true);

}  // namespace trainwright

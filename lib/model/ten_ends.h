/// Where the spans of a pass of a TEN model begin and end: states of sequences (recurrent_state.h) as tensors
/// of all spans of a layer, and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/model/recurrent_state.h"
#include "lib/model/ten_multi_scale.h"
#include "lib/spec/ten_fields.h"

namespace trainwright {

/// Of a layer, fp32; undefined: from nothing, or not wanted.
struct TenEnds {
  at::Tensor scan_sz;     ///< [S, Z]
  at::Tensor inputs_spz;  ///< of the convolution, [S, taps - 1, Z]
  TenMultiScale::Ends windows;
};

/// \param before from what each span goes on; null: from nothing
/// \returns nothing, where all begin with nothing
TenEnds StartsOf(const std::vector<const LayerStates*>& before, size_t layer, at::Device device);

/// What a span leaves: new tensors.
/// \param ends of the span's layer, all that the model has
/// \param rows of the span
/// \param before from what the span's layer went on; null: from nothing
LayerState StateAfter(const TenFields& fields, const TenEnds& ends, int64_t span, int64_t rows,
                      const LayerState* before);

}  // namespace trainwright

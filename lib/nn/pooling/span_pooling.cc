#include "lib/nn/pooling/span_pooling.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/pooling/pooled_rows.h"

namespace trainwright {
namespace {

template <typename Element>
void PoolTexts(Pooling pooling, const PooledSpans& spans, const at::Tensor& hidden_nd, at::Tensor& out_td) {
  const int64_t width = hidden_nd.size(1);
  const Element* hidden = hidden_nd.const_data_ptr<Element>();
  float* out = out_td.mutable_data_ptr<float>();
  const int64_t row_cost = hidden_nd.numel() / std::max<int64_t>(1, spans.texts());
  cpu::ParallelRows(spans.texts(), row_cost, [&](int64_t first, int64_t last) {
    for (int64_t text = first; text < last; ++text) {
      const PooledRows rows = PooledRowsOf(pooling, spans, text);
      float* sum = out + text * width;
      std::fill(sum, sum + width, 0.0f);
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const Element* values = hidden + row * width;
        const float weight = rows.WeightOf(row);
        for (int64_t i = 0; i < width; ++i) sum[i] += weight * static_cast<float>(values[i]);
      }
      for (int64_t i = 0; i < width; ++i) sum[i] /= rows.total;
    }
  });
}

template <typename Element>
void SpreadTexts(Pooling pooling, const PooledSpans& spans, const at::Tensor& d_out_td,
                 at::Tensor& d_hidden_nd) {
  const int64_t width = d_hidden_nd.size(1);
  const float* d_out = d_out_td.const_data_ptr<float>();
  Element* d_hidden = d_hidden_nd.mutable_data_ptr<Element>();
  const int64_t row_cost = d_hidden_nd.numel() / std::max<int64_t>(1, spans.texts());
  cpu::ParallelRows(spans.texts(), row_cost, [&](int64_t first, int64_t last) {
    for (int64_t text = first; text < last; ++text) {
      const PooledRows rows = PooledRowsOf(pooling, spans, text);
      const float* gradient = d_out + text * width;
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const float share = rows.WeightOf(row) / rows.total;
        Element* values = d_hidden + row * width;
        for (int64_t i = 0; i < width; ++i) values[i] = static_cast<Element>(share * gradient[i]);
      }
    }
  });
}

void CheckShapes(const PooledSpans& spans, const at::Tensor& of_rows_nd, const at::Tensor& of_texts_td) {
  const int64_t texts = spans.texts();
  TRAINWRIGHT_CHECK(static_cast<int64_t>(spans.end.size()) == texts &&
                    static_cast<int64_t>(spans.first_pooled.size()) == texts);
  TRAINWRIGHT_CHECK(of_texts_td.scalar_type() == at::kFloat && of_texts_td.size(0) == texts &&
                    of_texts_td.size(1) == of_rows_nd.size(1));
  TRAINWRIGHT_CHECK(of_rows_nd.is_contiguous() && of_texts_td.is_contiguous());
  for (size_t text = 0; text < spans.begin.size(); ++text) {
    TRAINWRIGHT_CHECK(0 <= spans.begin[text] && spans.begin[text] <= spans.first_pooled[text] &&
                      spans.first_pooled[text] < spans.end[text] && spans.end[text] <= of_rows_nd.size(0));
  }
}

void CheckUnits(const at::Tensor& x_td, const at::Tensor& norm_t) {
  TRAINWRIGHT_CHECK(x_td.scalar_type() == at::kFloat && x_td.is_contiguous());
  TRAINWRIGHT_CHECK(norm_t.scalar_type() == at::kFloat && norm_t.is_contiguous() &&
                    norm_t.numel() == x_td.size(0));
}

}  // namespace

void PoolSpans(Pooling pooling, const PooledSpans& spans, const at::Tensor& hidden_nd, at::Tensor& out_td) {
  CheckShapes(spans, hidden_nd, out_td);
  if (hidden_nd.is_meta()) return;  // nothing to compute
  if (!hidden_nd.is_cpu()) return on_device::PoolSpans(pooling, spans, hidden_nd, out_td);
  if (hidden_nd.scalar_type() == at::kBFloat16) {
    PoolTexts<at::BFloat16>(pooling, spans, hidden_nd, out_td);
  } else {
    PoolTexts<float>(pooling, spans, hidden_nd, out_td);
  }
}

at::Tensor Pooled(Pooling pooling, const PooledSpans& spans, const at::Tensor& hidden_nd) {
  at::Tensor out_td = at::empty({spans.texts(), hidden_nd.size(1)}, hidden_nd.options().dtype(at::kFloat));
  PoolSpans(pooling, spans, hidden_nd, out_td);
  return out_td;
}

void PoolSpansBackward(Pooling pooling, const PooledSpans& spans, const at::Tensor& d_out_td,
                       at::Tensor& d_hidden_nd) {
  CheckShapes(spans, d_hidden_nd, d_out_td);
  if (d_hidden_nd.is_meta()) return;
  if (!d_hidden_nd.is_cpu()) return on_device::PoolSpansBackward(pooling, spans, d_out_td, d_hidden_nd);
  d_hidden_nd.zero_();
  if (d_hidden_nd.scalar_type() == at::kBFloat16) {
    SpreadTexts<at::BFloat16>(pooling, spans, d_out_td, d_hidden_nd);
  } else {
    SpreadTexts<float>(pooling, spans, d_out_td, d_hidden_nd);
  }
}

void NormalizeRows(at::Tensor& x_td, at::Tensor& norm_t) {
  CheckUnits(x_td, norm_t);
  if (x_td.is_meta()) return;
  if (!x_td.is_cpu()) return on_device::NormalizeRows(x_td, norm_t);
  const int64_t width = x_td.size(1);
  float *x = x_td.mutable_data_ptr<float>(), *norms = norm_t.mutable_data_ptr<float>();
  cpu::ParallelRows(x_td.size(0), 2 * width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* values = x + row * width;
      const auto norm = static_cast<float>(std::sqrt(cpu::BestKernels().sum_of_squares(values, 0, width)));
      norms[row] = norm;
      if (norm == 0) continue;
      for (int64_t i = 0; i < width; ++i) values[i] /= norm;
    }
  });
}

void NormalizeRowsBackward(const at::Tensor& unit_td, const at::Tensor& norm_t, at::Tensor& d_td) {
  CheckUnits(unit_td, norm_t);
  TRAINWRIGHT_CHECK(d_td.sizes() == unit_td.sizes() && d_td.is_contiguous());
  if (unit_td.is_meta()) return;
  if (!unit_td.is_cpu()) return on_device::NormalizeRowsBackward(unit_td, norm_t, d_td);
  const int64_t width = unit_td.size(1);
  const float *units = unit_td.const_data_ptr<float>(), *norms = norm_t.const_data_ptr<float>();
  float* gradients = d_td.mutable_data_ptr<float>();
  cpu::ParallelRows(unit_td.size(0), 3 * width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* unit = units + row * width;
      float* d = gradients + row * width;
      if (norms[row] == 0) {
        std::fill(d, d + width, 0.0f);
        continue;
      }
      // d x = (d u - u (u . d u)) / |x|
      double along = 0;
      for (int64_t i = 0; i < width; ++i) along += static_cast<double>(unit[i]) * static_cast<double>(d[i]);
      const auto shared = static_cast<float>(along);
      for (int64_t i = 0; i < width; ++i) d[i] = (d[i] - unit[i] * shared) / norms[row];
    }
  });
}

}  // namespace trainwright

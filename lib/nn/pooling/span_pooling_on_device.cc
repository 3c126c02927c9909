#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/segment_reduce.h>
#include <ATen/ops/tensor.h>

#include <vector>

#include "lib/device/upload.h"
#include "lib/nn/pooling/pooled_rows.h"
#include "lib/nn/pooling/span_pooling.h"

namespace trainwright::on_device {
namespace {

/// All pooled rows, text after text: R of them.
struct RowTable {
  RowTable(Pooling pooling, const PooledSpans& spans, at::Device device) {
    std::vector<int64_t> rows, lengths;
    std::vector<float> weights, totals;
    for (int64_t text = 0; text < spans.texts(); ++text) {
      const PooledRows own = PooledRowsOf(pooling, spans, text);
      for (int64_t row = own.begin; row < own.end; ++row) {
        rows.push_back(row);
        weights.push_back(own.WeightOf(row));
      }
      lengths.push_back(own.end - own.begin);
      totals.push_back(own.total);
    }
    count = static_cast<int64_t>(rows.size());
    const auto longs = at::TensorOptions().dtype(at::kLong), floats = at::TensorOptions().dtype(at::kFloat);
    rows_r = Upload(at::tensor(rows, longs), device);
    lengths_t = Upload(at::tensor(lengths, longs), device);
    weights_r1 = Upload(at::tensor(weights, floats), device).unsqueeze(1);
    totals_t1 = Upload(at::tensor(totals, floats), device).unsqueeze(1);
  }

  int64_t count = 0;
  at::Tensor rows_r, lengths_t;
  at::Tensor weights_r1, totals_t1;
};

}  // namespace

void PoolSpans(Pooling pooling, const PooledSpans& spans, const at::Tensor& hidden_nd, at::Tensor& out_td) {
  if (spans.texts() == 0) return;
  const RowTable table(pooling, spans, hidden_nd.device());
  const at::Tensor weighted = hidden_nd.index_select(0, table.rows_r).to(at::kFloat).mul_(table.weights_r1);
  const at::Tensor sums = at::segment_reduce(weighted, "sum", table.lengths_t, /*indices=*/{}, /*offsets=*/{},
                                             /*axis=*/0, /*unsafe=*/true);
  out_td.copy_(sums.div(table.totals_t1));
}

void PoolSpansBackward(Pooling pooling, const PooledSpans& spans, const at::Tensor& d_out_td,
                       at::Tensor& d_hidden_nd) {
  d_hidden_nd.zero_();
  if (spans.texts() == 0) return;
  const RowTable table(pooling, spans, d_hidden_nd.device());
  const at::Tensor of_texts = d_out_td.div(table.totals_t1);
  const at::Tensor of_rows =
      at::repeat_interleave(of_texts, table.lengths_t, /*dim=*/0, /*output_size=*/table.count)
          .mul_(table.weights_r1);
  d_hidden_nd.index_copy_(0, table.rows_r, of_rows.to(d_hidden_nd.scalar_type()));
}

void NormalizeRows(at::Tensor& x_td, at::Tensor& norm_t) {
  norm_t.copy_(at::linalg_vector_norm(x_td, 2, /*dim=*/at::IntArrayRef{1}));
  x_td.div_(norm_t.masked_fill(norm_t.eq(0), 1).unsqueeze(1));
}

void NormalizeRowsBackward(const at::Tensor& unit_td, const at::Tensor& norm_t, at::Tensor& d_td) {
  const at::Tensor along = unit_td.mul(d_td).sum(1, /*keepdim=*/true);
  const at::Tensor none = norm_t.eq(0).unsqueeze(1);
  d_td.sub_(unit_td.mul(along)).div_(norm_t.unsqueeze(1)).masked_fill_(none, 0);
}

}  // namespace trainwright::on_device

#include "lib/nn/linear/block_matmul.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "lib/nn/cpu/kernels.h"
#include "lib/nn/linear/block_operands.h"
#include "lib/nn/linear/few_rows_product.h"
#include "lib/nn/linear/micro_kernel.h"

namespace trainwright::cpu {
namespace {

constexpr int64_t kLeastRows = 8;
// Larger products are computed in parts whose packed operands fit the last-level cache.
constexpr int64_t kPartBytes = int64_t{8} << 20;

/// Into how many groups the panels are split so that the tasks share out evenly.
int64_t PanelGroups(int64_t row_tasks, int64_t panels) {
  const int64_t threads = at::get_num_threads();
  int64_t groups = 1;
  while (groups < panels && row_tasks * groups < 8 * threads && row_tasks * groups % threads != 0) ++groups;
  return groups;
}

/// The product of columns [begin, begin + n) of the right operand.
BlockProduct Columns(BlockProduct product, int64_t begin, int64_t n) {
  product.b.data = static_cast<const uint8_t*>(product.b.data) +
                   begin * (product.b.transposed ? product.b.stride : 1) * SourceBytes(product);
  product.out = static_cast<uint8_t*>(product.out) + begin * (product.out_bf16 ? 2 : 4);
  product.n = n;
  return product;
}

/// The product of terms [begin, begin + k) of the sums.
BlockProduct Terms(BlockProduct product, int64_t begin, int64_t k) {
  const int64_t element_bytes = SourceBytes(product);
  product.a.data = static_cast<const uint8_t*>(product.a.data) +
                   begin * (product.a.transposed ? product.a.stride : 1) * element_bytes;
  product.b.data = static_cast<const uint8_t*>(product.b.data) +
                   begin * (product.b.transposed ? 1 : product.b.stride) * element_bytes;
  product.k = k;
  return product;
}

void MultiplyPart(const BlockProduct& product) {
  const BlockLayout layout(product);
  const int64_t panels = layout.panels(product);
  const at::Tensor right = PackPanels(product, layout);
  const auto* right_data = right.const_data_ptr<uint8_t>();
  const int64_t row_tasks = (product.m + layout.task_rows - 1) / layout.task_rows;
  const int64_t groups = PanelGroups(row_tasks, panels);
  const Codec codec = product.out_bf16 ? Codec::kBf16 : Codec::kFp32;
  const int64_t out_bytes = product.out_bf16 ? 2 : 4;
  at::parallel_for(0, row_tasks * groups, 1, [&](int64_t begin, int64_t end) {
    LeftRows left(product, layout);
    const at::Tensor scratch = Scratch(layout.task_rows * kPanelColumns * 4);
    auto* sums = static_cast<float*>(scratch.mutable_data_ptr());
    int64_t packed_task = -1;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row_task = task / groups, group = task % groups;
      const int64_t row = row_task * layout.task_rows, rows = std::min(layout.task_rows, product.m - row);
      if (row_task != packed_task) left.Pack(row, row + rows);
      packed_task = row_task;
      const int64_t end_panel = panels * (group + 1) / groups;
      for (int64_t panel = panels * group / groups; panel < end_panel; ++panel) {
        const int64_t column = panel * kPanelColumns, columns = std::min(kPanelColumns, product.n - column);
        const uint8_t* const data = right_data + panel * layout.panel_bytes();
        const uint8_t* const soon = panel + 1 < end_panel ? data + layout.panel_bytes() : nullptr;
        uint8_t* const out =
            static_cast<uint8_t*>(product.out) + (row * product.out_stride + column) * out_bytes;
        TileResult result = {.stride = product.out_stride, .adds = product.accumulate};
        if (!product.out_bf16 && columns % 16 == 0) result.data = reinterpret_cast<float*>(out);
        if (left.Multiply(columns, data, soon, result, sums)) continue;
        BestKernels().store_tile(codec, sums, kPanelColumns, rows, columns, out, product.out_stride,
                                 product.accumulate);
      }
    }
    ReleaseMicroKernels(layout.bf16);
  });
}

/// In parts along the columns.
void MultiplyColumns(const BlockProduct& product) {
  if (MultiplyFewRows(product)) return;
  const BlockLayout layout(product);
  const int64_t columns = std::max<int64_t>(1, kPartBytes / layout.panel_bytes()) * kPanelColumns;
  for (int64_t begin = 0; begin < product.n; begin += columns) {
    MultiplyPart(Columns(product, begin, std::min(columns, product.n - begin)));
  }
}

/// In parts along the sums, which stay in fp32 between them.
void MultiplyTerms(const BlockProduct& product) {
  if (product.k <= kPartDepth) return MultiplyColumns(product);
  BlockProduct sums = product;
  at::Tensor scratch;
  if (product.out_bf16) {
    scratch = Scratch(product.m * product.n * 4);
    sums.out = scratch.mutable_data_ptr();
    sums.out_stride = product.n;
    sums.out_bf16 = sums.accumulate = false;
  }
  for (int64_t begin = 0; begin < product.k; begin += kPartDepth) {
    MultiplyColumns(Terms(sums, begin, std::min(kPartDepth, product.k - begin)));
    sums.accumulate = true;
  }
  if (!product.out_bf16) return;
  const auto* from = static_cast<const float*>(sums.out);
  auto* to = static_cast<uint16_t*>(product.out);
  at::parallel_for(0, product.m, 64, [&](int64_t begin, int64_t end) {
    BestKernels().store_tile(Codec::kBf16, from + begin * product.n, product.n, end - begin, product.n,
                             to + begin * product.out_stride, product.out_stride, product.accumulate);
  });
}

}  // namespace

bool BlockMatmul(const BlockProduct& product) {
  const bool in_pairs = product.bf16 && !product.widens;
  if (!HasMicroKernels(in_pairs)) return false;
  if (product.m < kLeastRows || product.n < kLeastRows ||
      product.m * product.n * product.k < kLeastBlockTerms)
    return false;
  if (in_pairs && product.b.transposed && (product.k % 2 != 0 || product.b.stride % 2 != 0)) return false;
  MultiplyTerms(product);
  return true;
}

}  // namespace trainwright::cpu

#include "lib/nn/linear/block_matmul.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "lib/nn/cpu/kernels.h"
#include "lib/nn/linear/micro_kernel.h"

namespace trainwright::cpu {
namespace {

// A block of the result is 64 x 64 in fp32 and stays in the first-level cache; kBlockDepth rows of a right
// panel and the kTaskRows rows of the left operand share the second level.
constexpr int64_t kBlockRows = 64, kBlockDepth = 512, kTaskRows = 128;
constexpr int64_t kLeastRows = 8;
// Larger products are computed in parts whose packed operands fit the last-level cache.
constexpr int64_t kPartDepth = 4096, kPartBytes = int64_t{8} << 20;

at::Tensor Scratch(int64_t size_bytes) {
  return at::empty({size_bytes}, at::TensorOptions().dtype(at::kByte));
}

/// The operands' elements, in the layout of the micro-kernels.
struct Layout {
  explicit Layout(const BlockProduct& product)
      : bf16(product.bf16 && !product.widens),
        element_bytes(bf16 ? 2 : 4),
        depth(RoundUp(product.k, kDepthUnit)) {
    // Rows a multiple of 1 KB apart would share a few sets of the cache.
    left_stride = depth * element_bytes % 1024 == 0 ? depth + 64 / element_bytes : depth;
  }
  int64_t left_bytes() const { return kTaskRows * left_stride * element_bytes; }
  int64_t panel_bytes() const { return depth * kPanelColumns * element_bytes; }

  bool bf16;  ///< of the packed elements
  int64_t element_bytes;
  int64_t depth;  ///< k, padded
  int64_t left_stride;
};

/// Of an operand's element.
int64_t SourceBytes(const BlockProduct& product) {
  return product.bf16 ? 2 : 4;
}

/// Elements of an operand, side by side, as they are packed.
void CopyElements(const BlockProduct& product, const void* from, int64_t count, void* to) {
  if (product.bf16 && product.widens) {
    BestKernels().widen(static_cast<const uint16_t*>(from), count, static_cast<float*>(to));
  } else {
    std::memcpy(to, from, count * SourceBytes(product));
  }
}

/// Rows [begin, end) of a, contiguous, padded with zeros to kRowUnit rows and to the layout's depth.
void PackLeft(const BlockProduct& product, const Layout& layout, int64_t begin, int64_t end,
              uint8_t* packed) {
  const int64_t rows = end - begin, size = layout.element_bytes, stride = layout.left_stride;
  const auto* data = static_cast<const uint8_t*>(product.a.data);
  if (!product.a.transposed) {
    for (int64_t r = 0; r < rows; ++r) {
      uint8_t* row = packed + r * stride * size;
      CopyElements(product, data + (begin + r) * product.a.stride * SourceBytes(product), product.k, row);
      std::memset(row + product.k * size, 0, (layout.depth - product.k) * size);
    }
  } else {
    auto* out = reinterpret_cast<uint32_t*>(packed);
    if (layout.bf16) {
      BestKernels().transpose_pairs(reinterpret_cast<const uint16_t*>(data) + begin, product.a.stride,
                                    product.k, rows, out, stride / 2);
    } else if (product.bf16) {
      BestKernels().transpose_widened(reinterpret_cast<const uint16_t*>(data) + begin, product.a.stride,
                                      product.k, rows, out, stride);
    } else {
      BestKernels().transpose(reinterpret_cast<const uint32_t*>(data) + begin, product.a.stride, product.k,
                              rows, out, stride);
    }
    const int64_t filled = layout.bf16 ? RoundUp(product.k, 2) : product.k;
    for (int64_t r = 0; r < rows; ++r) {
      std::memset(packed + (r * stride + filled) * size, 0, (layout.depth - filled) * size);
    }
  }
  for (int64_t r = rows; r < RoundUp(rows, kRowUnit); ++r) {
    std::memset(packed + r * stride * size, 0, layout.depth * size);
  }
}

/// Columns of b from `begin` on, as [depth][kPanelColumns], bf16 in pairs of rows; zeros around them.
void PackRight(const BlockProduct& product, const Layout& layout, int64_t begin, uint8_t* packed) {
  const int64_t columns = std::min(kPanelColumns, product.n - begin);
  const int64_t units = layout.bf16 ? RoundUp(product.k, 2) / 2 : product.k;  // rows of 32-bit elements
  auto* out = reinterpret_cast<uint32_t*>(packed);
  if (columns < kPanelColumns) std::memset(packed, 0, layout.panel_bytes());
  std::memset(out + units * kPanelColumns, 0, layout.panel_bytes() - units * kPanelColumns * 4);
  const Kernels& kernels = BestKernels();
  if (product.b.transposed && product.bf16 && !layout.bf16) {
    kernels.transpose_widened(static_cast<const uint16_t*>(product.b.data) + begin * product.b.stride,
                              product.b.stride, columns, product.k, out, kPanelColumns);
  } else if (product.b.transposed) {
    const int64_t stride = layout.bf16 ? product.b.stride / 2 : product.b.stride;
    kernels.transpose(static_cast<const uint32_t*>(product.b.data) + begin * stride, stride, columns, units,
                      out, kPanelColumns);
  } else if (layout.bf16) {
    kernels.interleave_pairs(static_cast<const uint16_t*>(product.b.data) + begin, product.b.stride,
                             product.k, columns, out, kPanelColumns);
  } else {
    const int64_t bytes = SourceBytes(product);
    const auto* data = static_cast<const uint8_t*>(product.b.data) + begin * bytes;
    for (int64_t r = 0; r < product.k; ++r) {
      CopyElements(product, data + r * product.b.stride * bytes, columns, out + r * kPanelColumns);
    }
  }
}

void MultiplyBlock(const Layout& layout, int64_t rows, int64_t columns, const uint8_t* left,
                   const uint8_t* right, float* block) {
  for (int64_t begin = 0; begin < layout.depth; begin += kBlockDepth) {
    Multiply({.bf16 = layout.bf16,
              .rows = rows,
              .columns = columns,
              .depth = std::min(kBlockDepth, layout.depth - begin),
              .left = left + begin * layout.element_bytes,
              .left_stride = layout.left_stride,
              .right = right + begin * kPanelColumns * layout.element_bytes,
              .right_stride = kPanelColumns,
              .out = block,
              .out_stride = kPanelColumns,
              .accumulate = begin > 0});
  }
}

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
  const Layout layout(product);
  const int64_t panels = (product.n + kPanelColumns - 1) / kPanelColumns;
  const at::Tensor right = Scratch(panels * layout.panel_bytes());
  auto* right_data = right.mutable_data_ptr<uint8_t>();
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      PackRight(product, layout, panel * kPanelColumns, right_data + panel * layout.panel_bytes());
    }
  });
  const int64_t row_tasks = (product.m + kTaskRows - 1) / kTaskRows, groups = PanelGroups(row_tasks, panels);
  const Codec codec = product.out_bf16 ? Codec::kBf16 : Codec::kFp32;
  const int64_t out_bytes = product.out_bf16 ? 2 : 4;
  at::parallel_for(0, row_tasks * groups, 1, [&](int64_t begin, int64_t end) {
    const at::Tensor left = Scratch(layout.left_bytes() + kBlockRows * kPanelColumns * 4);
    auto* left_data = left.mutable_data_ptr<uint8_t>();
    auto* block = reinterpret_cast<float*>(left_data + layout.left_bytes());
    int64_t packed_task = -1;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row_task = task / groups, group = task % groups;
      const int64_t first_row = row_task * kTaskRows, end_row = std::min(product.m, first_row + kTaskRows);
      if (row_task != packed_task) PackLeft(product, layout, first_row, end_row, left_data);
      packed_task = row_task;
      for (int64_t panel = panels * group / groups; panel < panels * (group + 1) / groups; ++panel) {
        const int64_t column = panel * kPanelColumns, columns = std::min(kPanelColumns, product.n - column);
        for (int64_t row = first_row; row < end_row; row += kBlockRows) {
          const int64_t rows = std::min(kBlockRows, end_row - row);
          MultiplyBlock(layout, RoundUp(rows, kRowUnit), RoundUp(columns, kRowUnit),
                        left_data + (row - first_row) * layout.left_stride * layout.element_bytes,
                        right_data + panel * layout.panel_bytes(), block);
          BestKernels().store_tile(
              codec, block, kPanelColumns, rows, columns,
              static_cast<uint8_t*>(product.out) + (row * product.out_stride + column) * out_bytes,
              product.out_stride, product.accumulate);
        }
      }
    }
    ReleaseMicroKernels(layout.bf16);
  });
}

/// In parts along the columns.
void MultiplyColumns(const BlockProduct& product) {
  const Layout layout(product);
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

#include "lib/nn/linear/block_operands.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "lib/nn/cpu/kernels.h"

namespace trainwright::cpu {
namespace {

/// Elements of an operand, side by side, as they are packed.
void CopyElements(const BlockProduct& product, const void* from, int64_t count, void* to) {
  if (product.bf16 && product.widens) {
    BestKernels().widen(static_cast<const uint16_t*>(from), count, static_cast<float*>(to));
  } else {
    std::memcpy(to, from, count * SourceBytes(product));
  }
}

}  // namespace

BlockLayout::BlockLayout(const BlockProduct& product)
    : bf16(product.bf16 && !product.widens),
      element_bytes(bf16 ? 2 : 4),
      depth(RoundUp(product.k, kDepthUnit)),
      // Rows a multiple of 1 KB apart would share a few sets of the cache.
      left_stride(depth * element_bytes % 1024 == 0 ? depth + 64 / element_bytes : depth) {}

at::Tensor Scratch(int64_t size_bytes) {
  return at::empty({size_bytes}, at::TensorOptions().dtype(at::kByte));
}

void PackLeft(const BlockProduct& product, const BlockLayout& layout, int64_t begin, int64_t end,
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

void PackRight(const BlockProduct& product, const BlockLayout& layout, int64_t begin, uint8_t* packed) {
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

void MultiplyBlock(const BlockLayout& layout, int64_t rows, int64_t columns, const uint8_t* left,
                   int64_t left_stride, const uint8_t* right, float* block) {
  for (int64_t begin = 0; begin < layout.depth; begin += kBlockDepth) {
    Multiply({.bf16 = layout.bf16,
              .rows = rows,
              .columns = columns,
              .depth = std::min(kBlockDepth, layout.depth - begin),
              .left = left + begin * layout.element_bytes,
              .left_stride = left_stride,
              .right = right + begin * kPanelColumns * layout.element_bytes,
              .right_stride = kPanelColumns,
              .out = block,
              .out_stride = kPanelColumns,
              .accumulate = begin > 0});
  }
}

}  // namespace trainwright::cpu

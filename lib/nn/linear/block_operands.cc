#include "lib/nn/linear/block_operands.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "lib/base/error.h"
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

/// Parts of rows, a stride apart, one for each term. A processor does not foresee them: those some rows later
/// are fetched.
void CopyTerms(const BlockProduct& product, const uint8_t* data, int64_t stride, int64_t columns,
               uint32_t* out, int64_t out_stride) {
  constexpr int64_t kRowsAhead = 32, kLineBytes = 64;
  const int64_t stride_bytes = stride * SourceBytes(product), row_bytes = columns * SourceBytes(product);
  for (int64_t k = 0; k < product.k; ++k) {
    const uint8_t* from = data + k * stride_bytes;
    for (int64_t at = 0; at < row_bytes; at += kLineBytes) {
      __builtin_prefetch(from + kRowsAhead * stride_bytes + at);
    }
    CopyElements(product, from, columns, out + k * out_stride);
  }
}

/// Columns of b from `begin` on.
void PackPanel(const BlockProduct& product, const BlockLayout& layout, int64_t begin, uint8_t* packed) {
  const int64_t columns = std::min(kPanelColumns, product.n - begin);
  const int64_t units = layout.steps(product);
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
    CopyTerms(product, static_cast<const uint8_t*>(product.b.data) + begin * SourceBytes(product),
              product.b.stride, columns, out, kPanelColumns);
  }
}

LeftForm FormOf(const BlockProduct& product) {
  constexpr int64_t kShortDepth = 64;
  if (product.a.transposed) {
    const bool pairs = product.bf16 && !product.widens;
    return HasTiles(pairs ? TileTerms::kPairs : TileTerms::kFp32) ? LeftForm::kTurned : LeftForm::kPacked;
  }
  const bool pays = product.n <= kPanelColumns || product.k <= kShortDepth;
  const bool can = HasTiles(TermsInPlace(product)) && (!product.bf16 || product.k % 2 == 0);
  return pays && can ? LeftForm::kInPlace : LeftForm::kPacked;
}

}  // namespace

BlockLayout::BlockLayout(const BlockProduct& product)
    : bf16(product.bf16 && !product.widens),
      element_bytes(bf16 ? 2 : 4),
      depth(RoundUp(product.k, kDepthUnit)),
      form(FormOf(product)),
      task_rows(form == LeftForm::kPacked && bf16 ? 128 : 144) {
  // Rows a multiple of 1 KB apart would share a few sets of the cache.
  const int64_t padded = depth * element_bytes % 1024 == 0 ? depth + 64 / element_bytes : depth;
  left_stride = form == LeftForm::kTurned ? task_rows : padded;
}

TileTerms TermsInPlace(const BlockProduct& product) {
  if (!product.bf16) return TileTerms::kFp32;
  return product.widens ? TileTerms::kWidened : TileTerms::kPairs;
}

at::Tensor Scratch(int64_t size_bytes) {
  return at::empty({size_bytes}, at::TensorOptions().dtype(at::kByte));
}

at::Tensor PackPanels(const BlockProduct& product, const BlockLayout& layout) {
  const int64_t panels = layout.panels(product);
  const at::Tensor packed = Scratch(panels * layout.panel_bytes());
  auto* data = packed.mutable_data_ptr<uint8_t>();
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      PackPanel(product, layout, panel * kPanelColumns, data + panel * layout.panel_bytes());
    }
  });
  return packed;
}

LeftRows::LeftRows(const BlockProduct& product, const BlockLayout& layout)
    : product_(product), layout_(layout) {
  switch (layout.form) {
    case LeftForm::kPacked:
      packed_ = Scratch(layout.task_rows * layout.left_stride * layout.element_bytes);
      break;
    case LeftForm::kTurned:
      packed_ = Scratch(layout.steps(product) * layout.left_stride * 4);
      break;
    case LeftForm::kInPlace:
      break;
  }
}

void LeftRows::Pack(int64_t begin, int64_t end) {
  begin_ = begin;
  rows_ = end - begin;
  switch (layout_.form) {
    case LeftForm::kPacked:
      return PackRows(begin, end - begin);
    case LeftForm::kTurned:
      return PackTransposed(begin, end - begin);
    case LeftForm::kInPlace:
      return;
  }
}

/// As [steps][task_rows], of bf16 in pairs.
void LeftRows::PackTransposed(int64_t begin, int64_t rows) {
  auto* out = static_cast<uint32_t*>(packed_.mutable_data_ptr());
  const auto* data = static_cast<const uint8_t*>(product_.a.data) + begin * SourceBytes(product_);
  if (layout_.bf16) {
    BestKernels().interleave_pairs(reinterpret_cast<const uint16_t*>(data), product_.a.stride, product_.k,
                                   rows, out, layout_.left_stride);
  } else {
    CopyTerms(product_, data, product_.a.stride, rows, out, layout_.left_stride);
  }
}

/// Contiguous; bf16 with zeros to kRowUnit rows and to the layout's depth, as micro-kernels take it.
void LeftRows::PackRows(int64_t begin, int64_t rows) {
  auto* packed = packed_.mutable_data_ptr<uint8_t>();
  const int64_t size = layout_.element_bytes, stride = layout_.left_stride;
  const auto* data = static_cast<const uint8_t*>(product_.a.data);
  if (!product_.a.transposed) {
    for (int64_t r = 0; r < rows; ++r) {
      CopyElements(product_, data + (begin + r) * product_.a.stride * SourceBytes(product_), product_.k,
                   packed + r * stride * size);
    }
  } else {
    TRAINWRIGHT_CHECK(layout_.bf16);  // there are tiles for all else
    BestKernels().transpose_pairs(reinterpret_cast<const uint16_t*>(data) + begin, product_.a.stride,
                                  product_.k, rows, reinterpret_cast<uint32_t*>(packed), stride / 2);
  }
  if (!layout_.bf16) return;  // tiles read no padding
  const int64_t filled = product_.a.transposed ? RoundUp(product_.k, 2) : product_.k;
  for (int64_t r = 0; r < rows; ++r) {
    std::memset(packed + (r * stride + filled) * size, 0, (layout_.depth - filled) * size);
  }
  for (int64_t r = rows; r < RoundUp(rows, kRowUnit); ++r) {
    std::memset(packed + r * stride * size, 0, layout_.depth * size);
  }
}

bool LeftRows::Multiply(int64_t columns, const uint8_t* panel, const uint8_t* soon, const TileResult& result,
                        float* sums) const {
  TileBlock tiles = {.right = reinterpret_cast<const float*>(panel),
                     .rows = rows_,
                     .columns = columns,
                     .soon = reinterpret_cast<const float*>(soon),
                     .sums = sums,
                     .result = result};
  switch (layout_.form) {
    case LeftForm::kPacked:
      if (layout_.bf16) {
        MultiplyPairs(columns, panel, sums);
        return false;
      }
      tiles.terms = TileTerms::kFp32;
      tiles.left = packed_.const_data_ptr<uint8_t>();
      tiles.left_stride_bytes = layout_.left_stride * 4;
      tiles.steps = product_.k;
      break;
    case LeftForm::kTurned:
      tiles.terms = layout_.bf16 ? TileTerms::kPairs : TileTerms::kFp32;
      tiles.left = packed_.const_data_ptr<uint8_t>();
      tiles.left_stride_bytes = layout_.left_stride * 4;
      tiles.left_transposed = true;
      tiles.steps = layout_.steps(product_);
      break;
    case LeftForm::kInPlace:
      tiles.terms = TermsInPlace(product_);
      tiles.left_stride_bytes = product_.a.stride * SourceBytes(product_);
      tiles.left = static_cast<const uint8_t*>(product_.a.data) + begin_ * tiles.left_stride_bytes;
      tiles.steps = product_.k * SourceBytes(product_) / 4;
      tiles.fetches = true;
      break;
  }
  ComputeTiles(tiles);
  return result.data != nullptr;
}

/// By oneDNN's micro-kernels, in blocks of the result that stay in the first-level cache.
void LeftRows::MultiplyPairs(int64_t columns, const uint8_t* panel, float* sums) const {
  constexpr int64_t kBlockRows = 64;
  const auto* packed = packed_.const_data_ptr<uint8_t>();
  for (int64_t row = 0; row < rows_; row += kBlockRows) {
    for (int64_t begin = 0; begin < layout_.depth; begin += kBlockDepth) {
      cpu::Multiply({.bf16 = true,
                     .rows = RoundUp(std::min(kBlockRows, rows_ - row), kRowUnit),
                     .columns = RoundUp(columns, kRowUnit),
                     .depth = std::min(kBlockDepth, layout_.depth - begin),
                     .left = packed + (row * layout_.left_stride + begin) * layout_.element_bytes,
                     .left_stride = layout_.left_stride,
                     .right = panel + begin * kPanelColumns * layout_.element_bytes,
                     .right_stride = kPanelColumns,
                     .out = sums + row * kPanelColumns,
                     .out_stride = kPanelColumns,
                     .accumulate = begin > 0});
    }
  }
}

}  // namespace trainwright::cpu

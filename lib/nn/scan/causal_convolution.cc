#include "lib/nn/scan/causal_convolution.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/cpu/parallel.h"

namespace trainwright {
namespace {

/// Rows whose gradients before the activation are held at once.
constexpr int64_t kPieceRows = 64;

bool IsOf(const at::Tensor& tensor, at::ScalarType type, at::IntArrayRef sizes) {
  return tensor.is_contiguous() && tensor.scalar_type() == type && tensor.sizes() == sizes;
}
bool IsNoneOrOf(const at::Tensor& tensor, at::ScalarType type, at::IntArrayRef sizes) {
  return !tensor.defined() || IsOf(tensor, type, sizes);
}

void CheckInputs(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                 const at::Tensor& scale_k, const SpanTable& spans, const at::Tensor& before_spz) {
  TRAINWRIGHT_CHECK(x_nz.dim() == 2 && IsOf(x_nz, numerics.storage, x_nz.sizes()));
  const int64_t rows = x_nz.size(0), width = x_nz.size(1), count = std::ssize(spans.starts) - 1;
  TRAINWRIGHT_CHECK(count >= 1 && spans.starts.front() == 0 && spans.starts.back() == rows);
  TRAINWRIGHT_CHECK(kernel_zt.dim() == 2 && kernel_zt.size(0) == width && kernel_zt.size(1) >= 1);
  TRAINWRIGHT_CHECK(IsNoneOrOf(scale_k, at::kFloat, {width / 2}) && (!scale_k.defined() || width % 2 == 0));
  TRAINWRIGHT_CHECK(IsNoneOrOf(before_spz, at::kFloat, {count, kernel_zt.size(1) - 1, width}));
}

/// Memory that a thread uses again from piece to piece.
struct Scratch {
  std::vector<char> window;  ///< of stored elements
  std::vector<float> d_p;
};

/// What both directions have in common.
class SpanConvolution {
 public:
  SpanConvolution(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                  const at::Tensor& scale_k, const SpanTable& spans, const at::Tensor& before_spz)
      : codec_(cpu::CodecOf(numerics)),
        starts_(spans.starts),
        rows_(x_nz.size(0)),
        width_(x_nz.size(1)),
        before_rows_(kernel_zt.size(1) - 1),
        row_bytes_(width_ * static_cast<int64_t>(x_nz.element_size())),
        x_(static_cast<const char*>(x_nz.const_data_ptr())),
        before_(cpu::DataOrNull(before_spz)),
        kernel_tz_(kernel_zt.to(at::kFloat).t().contiguous()),
        scale_z_(scale_k.defined() ? scale_k.repeat({2}) : at::ones({width_})),
        weights_{.taps = kernel_zt.size(1),
                 .width = width_,
                 .kernel_tz = kernel_tz_.const_data_ptr<float>(),
                 .scale_z = scale_z_.const_data_ptr<float>()} {}

 protected:
  int64_t count() const { return std::ssize(starts_) - 1; }
  int64_t begin_of(int64_t span) const { return starts_[static_cast<size_t>(span)]; }
  int64_t end_of(int64_t span) const { return starts_[static_cast<size_t>(span) + 1]; }
  const float* Before(int64_t span) const {
    return before_ == nullptr ? nullptr : before_ + span * before_rows_ * width_;
  }
  const char* RowOf(const void* stored_nz, int64_t row) const {
    return static_cast<const char*>(stored_nz) + row * row_bytes_;
  }
  char* RowOf(void* stored_nz, int64_t row) const { return static_cast<char*>(stored_nz) + row * row_bytes_; }

  /// Calls visit(span, from, to) for rows [begin, end) in pieces of one span.
  template <typename Visit>
  void ForEachPiece(int64_t begin, int64_t end, const Visit& visit) const {
    int64_t span = std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin() - 1;
    for (int64_t from = begin; from < end;) {
      while (end_of(span) <= from) ++span;
      const int64_t to = std::min({end, end_of(span), from + kPieceRows});
      visit(span, from, to);
      from = to;
    }
  }

  /// Rows [from, to) of a span such that the P rows before them lie before them in memory, too: where they
  /// are, or at the span's first rows copied behind what came before it.
  const char* InputsOf(int64_t span, int64_t from, int64_t to, std::vector<char>* window) const {
    const int64_t begin = begin_of(span), missing = begin - (from - before_rows_);
    if (missing <= 0) return RowOf(x_, from);
    window->assign(static_cast<size_t>((missing + to - begin) * row_bytes_), 0);
    if (before_ != nullptr) {
      kernels_.round(codec_, Before(span) + (before_rows_ - missing) * width_, window->data(), 0,
                     missing * width_);
    }
    std::copy(RowOf(x_, begin), RowOf(x_, to), window->data() + missing * row_bytes_);
    return window->data() + before_rows_ * row_bytes_;
  }

  const cpu::Kernels& kernels_ = cpu::BestKernels();
  const cpu::Codec codec_;
  const std::vector<int32_t>& starts_;
  const int64_t rows_, width_, before_rows_, row_bytes_;
  const char* const x_;
  const float* const before_;
  const at::Tensor kernel_tz_, scale_z_;
  const ConvolutionWeights weights_;
};

class ForwardConvolution final : public SpanConvolution {
 public:
  using SpanConvolution::SpanConvolution;

  void Run(at::Tensor& out_nz) const {
    void* out = out_nz.mutable_data_ptr();
    cpu::ParallelRows(rows_, 8 * width_, [&](int64_t begin, int64_t end) {
      Scratch scratch;
      ForEachPiece(begin, end, [&](int64_t span, int64_t from, int64_t to) {
        kernels_.convolve(codec_, weights_, InputsOf(span, from, to, &scratch.window), to - from,
                          RowOf(out, from));
      });
    });
  }

  /// After Run, since the rows before the spans may be in the same place.
  void KeepLast(const Numerics& numerics, const at::Tensor& x_nz, at::Tensor& last_spz) const {
    auto* last = last_spz.mutable_data_ptr<float>();
    for (int64_t span = 0; span < count(); ++span) {
      for (int64_t place = 0; place < before_rows_; ++place, last += width_) {
        const int64_t row = end_of(span) - before_rows_ + place, before = row - begin_of(span) + before_rows_;
        if (row >= begin_of(span)) {
          LoadRow(numerics, x_nz, row, last);
        } else if (before_ == nullptr) {
          std::fill_n(last, width_, 0.0f);
        } else {
          std::copy_n(Before(span) + before * width_, width_, last);
        }
      }
    }
  }

 private:
  /// As the kernels read it.
  void LoadRow(const Numerics& numerics, const at::Tensor& x_nz, int64_t row, float* to) const {
    if (x_nz.scalar_type() == at::kBFloat16) {
      const auto* from = x_nz.const_data_ptr<at::BFloat16>() + row * width_;
      std::transform(from, from + width_, to, [](at::BFloat16 value) { return static_cast<float>(value); });
      return;
    }
    std::copy_n(x_nz.const_data_ptr<float>() + row * width_, width_, to);
    if (numerics.emulated()) kernels_.round(codec_, to, to, 0, width_);
  }
};

class BackwardConvolution final : public SpanConvolution {
 public:
  using SpanConvolution::SpanConvolution;

  void Run(const at::Tensor& d_out_nz, ConvolutionGradients& gradients) const {
    const void* d_out = d_out_nz.const_data_ptr();
    void* d_x = gradients.x_nz.mutable_data_ptr();
    const bool of_kernel = gradients.kernel_zt.defined(), of_scale = gradients.scale_k.defined();
    const int64_t kernel_size = of_kernel ? weights_.taps * width_ : 0, scale_size = of_scale ? width_ : 0;
    float* d_kernel = of_kernel ? gradients.kernel_zt.mutable_data_ptr<float>() : nullptr;
    double* d_scale = of_scale ? gradients.scale_k.zero_().mutable_data_ptr<double>() : nullptr;
    cpu::SumOverRowBlocks(
        rows_, std::max<int64_t>(kernel_size + scale_size, 1),
        [&](float* sums, int64_t begin, int64_t end) {
          Scratch scratch;
          ForEachPiece(begin, end, [&](int64_t span, int64_t from, int64_t to) {
            Piece(span, from, to, d_out, of_kernel ? sums : nullptr, of_scale ? sums + kernel_size : nullptr,
                  d_x, &scratch);
          });
        },
        [&](const float* sums) {
          for (int64_t i = 0; i < kernel_size; ++i) {
            d_kernel[i % width_ * weights_.taps + i / width_] += sums[i];
          }
          for (int64_t i = 0; i < scale_size; ++i) {
            d_scale[i % (width_ / 2)] += static_cast<double>(sums[kernel_size + i]);
          }
        });
  }

  void OfBefore(const at::Tensor& d_out_nz, at::Tensor& d_before_spz) const {
    const void* d_out = d_out_nz.const_data_ptr();
    auto* d_before = d_before_spz.mutable_data_ptr<float>();
    at::parallel_for(0, count(), 1, [&](int64_t first, int64_t last) {
      Scratch scratch;
      for (int64_t span = first; span < last; ++span) {
        const int64_t begin = begin_of(span), end = std::min(begin + before_rows_, end_of(span));
        scratch.d_p.assign(static_cast<size_t>(2 * before_rows_ * width_), 0.0f);
        kernels_.convolution_backward(codec_, weights_, InputsOf(span, begin, end, &scratch.window),
                                      RowOf(d_out, begin), end - begin,
                                      scratch.d_p.data() + before_rows_ * width_, nullptr, nullptr);
        kernels_.convolution_input_backward(cpu::Codec::kFp32, weights_, scratch.d_p.data(), before_rows_,
                                            d_before + span * before_rows_ * width_);
      }
    });
  }

 private:
  /// The gradient of rows [from, to) of a span reads that of the P rows after them, which belong to another
  /// piece's sums; behind the span it is zero.
  void Piece(int64_t span, int64_t from, int64_t to, const void* d_out, float* d_kernel, float* d_scale,
             void* d_x, Scratch* scratch) const {
    const int64_t rows = to - from, read = std::min(to + before_rows_, end_of(span));
    const char* x = InputsOf(span, from, read, &scratch->window);
    scratch->d_p.resize(static_cast<size_t>((rows + before_rows_) * width_));
    float* d_p = scratch->d_p.data();
    kernels_.convolution_backward(codec_, weights_, x, RowOf(d_out, from), rows, d_p, d_kernel, d_scale);
    kernels_.convolution_backward(codec_, weights_, RowOf(x, rows), RowOf(d_out, to), read - to,
                                  d_p + rows * width_, nullptr, nullptr);
    std::fill(d_p + (read - from) * width_, d_p + (rows + before_rows_) * width_, 0.0f);
    kernels_.convolution_input_backward(codec_, weights_, d_p, rows, RowOf(d_x, from));
  }
};

}  // namespace

void CausalConvolution(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                       const at::Tensor& scale_k, const SpanTable& spans, const at::Tensor& before_spz,
                       at::Tensor& out_nz, at::Tensor& last_spz) {
  const ProfileScope scope("causal_convolution", ProfilePart::kScan);
  CheckInputs(numerics, x_nz, kernel_zt, scale_k, spans, before_spz);
  TRAINWRIGHT_CHECK(IsOf(out_nz, numerics.storage, x_nz.sizes()));
  TRAINWRIGHT_CHECK(
      IsNoneOrOf(last_spz, at::kFloat, {std::ssize(spans.starts) - 1, kernel_zt.size(1) - 1, x_nz.size(1)}));
  if (x_nz.is_meta()) return;  // nothing to compute
  if (!x_nz.is_cpu()) {
    return on_device::CausalConvolution(numerics, x_nz, kernel_zt, scale_k, spans, before_spz, out_nz,
                                        last_spz);
  }
  const ForwardConvolution convolution(numerics, x_nz, kernel_zt, scale_k, spans, before_spz);
  convolution.Run(out_nz);
  if (last_spz.defined()) convolution.KeepLast(numerics, x_nz, last_spz);
}

void CausalConvolutionBackward(const Numerics& numerics, const at::Tensor& x_nz, const at::Tensor& kernel_zt,
                               const at::Tensor& scale_k, const SpanTable& spans,
                               const at::Tensor& before_spz, const at::Tensor& d_out_nz,
                               ConvolutionGradients& gradients) {
  const ProfileScope scope("causal_convolution_backward", ProfilePart::kScan);
  CheckInputs(numerics, x_nz, kernel_zt, scale_k, spans, before_spz);
  TRAINWRIGHT_CHECK(IsOf(d_out_nz, numerics.storage, x_nz.sizes()) &&
                    IsOf(gradients.x_nz, numerics.storage, x_nz.sizes()));
  TRAINWRIGHT_CHECK(IsNoneOrOf(gradients.kernel_zt, at::kFloat, kernel_zt.sizes()) &&
                    IsNoneOrOf(gradients.scale_k, at::kDouble, {x_nz.size(1) / 2}));
  TRAINWRIGHT_CHECK(IsNoneOrOf(gradients.before_spz, at::kFloat,
                               {std::ssize(spans.starts) - 1, kernel_zt.size(1) - 1, x_nz.size(1)}));
  if (x_nz.is_meta()) return;
  if (!x_nz.is_cpu()) {
    return on_device::CausalConvolutionBackward(numerics, x_nz, kernel_zt, scale_k, spans, before_spz,
                                                d_out_nz, gradients);
  }
  const BackwardConvolution convolution(numerics, x_nz, kernel_zt, scale_k, spans, before_spz);
  convolution.Run(d_out_nz, gradients);
  if (gradients.before_spz.defined()) convolution.OfBefore(d_out_nz, gradients.before_spz);
}

}  // namespace trainwright

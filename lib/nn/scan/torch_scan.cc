#include "lib/nn/scan/torch_scan.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/real.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "lib/device/upload.h"
#include "lib/nn/scan/scan_pieces.h"

namespace trainwright {
namespace {

at::Tensor Complex(const at::Tensor& x_rz) {
  const int64_t channels = x_rz.size(1) / 2;
  return at::complex(x_rz.narrow(1, 0, channels), x_rz.narrow(1, channels, channels));
}
at::Tensor Parts(const at::Tensor& x_rk) {
  return at::cat({at::real(x_rk), at::imag(x_rk)}, -1);
}

/// A decay in complex numbers of the type of the scan.
struct ComplexDecay {
  ComplexDecay(const ScanDecay& decay, const at::Tensor& b_nk) : type(b_nk.scalar_type()) {
    if (decay.selective()) {
      lambda_nk = Complex(decay.lambda_nz);
    } else {
      log_modulus_k = decay.log_modulus_k;
      angle_k = decay.angle_k;
    }
  }
  bool selective() const { return lambda_nk.defined(); }
  /// Of a constant decay, for a column of exponents or one: rounded once, however high the power.
  at::Tensor Power(const at::Tensor& exponents_q1) const {
    return at::polar(exponents_q1.mul(log_modulus_k).exp(), exponents_q1.mul(angle_k)).to(type);
  }
  at::Tensor Power(int64_t exponent) const {
    return Power(at::full({1, 1}, exponent, log_modulus_k.options()));
  }
  /// [1, K] or [N, K].
  at::Tensor OfRows() const { return selective() ? lambda_nk : Power(1); }
  /// The same, not rounded to the type of the scan.
  at::Tensor OfRowsInDouble() const {
    if (selective()) return lambda_nk.to(at::kComplexDouble);
    return at::polar(log_modulus_k.exp(), angle_k).unsqueeze(0);
  }
  /// That of the same scan over the rows in reverse: the conjugate, of the row after. What the last row gets
  /// is multiplied by zero.
  ComplexDecay Reversed() const {
    ComplexDecay reversed = *this;
    if (selective()) {
      reversed.lambda_nk = lambda_nk.conj().flip(0).roll(1, 0);
    } else {
      reversed.angle_k = angle_k.neg();
    }
    return reversed;
  }

  at::ScalarType type;
  at::Tensor log_modulus_k, angle_k, lambda_nk;
};

std::vector<int32_t> ReversedStarts(const SpanTable& spans) {
  std::vector<int32_t> starts(spans.starts.rbegin(), spans.starts.rend());
  for (int32_t& start : starts) start = spans.starts.back() - start;
  return starts;
}

/// The state is in fp64: what is left of rounding is that of c.
/// \param initial_sk undefined: zeros
at::Tensor ScanSequentially(const ComplexDecay& decay, const at::Tensor& b_nk, const SpanTable& spans,
                            const at::Tensor& initial_sk) {
  at::Tensor c_nk = at::empty_like(b_nk);
  const at::Tensor lambda = decay.OfRowsInDouble();
  for (int64_t span = 0; span + 1 < std::ssize(spans.starts); ++span) {
    at::Tensor state = initial_sk.defined()
                           ? initial_sk[span].to(at::kComplexDouble)
                           : at::zeros({b_nk.size(1)}, b_nk.options().dtype(at::kComplexDouble));
    for (int64_t row = spans.starts[span]; row < spans.starts[span + 1]; ++row) {
      state = lambda[decay.selective() ? row : 0].mul(state).add_(b_nk[row]);
      c_nk[row].copy_(state);
    }
  }
  return c_nk;
}

/// Rows of a batch laid out as [C, Q, K], short chunks ending with zeros, and back.
class ChunkLayout {
 public:
  ChunkLayout(const std::vector<ScanPiece>& pieces, int64_t chunk, int64_t num_rows, at::Device device)
      : chunks_(std::ssize(pieces)), chunk_(chunk), num_rows_(num_rows) {
    if (chunks_ * chunk == num_rows) return;  // as they lie
    std::vector<int64_t> sources(chunks_ * chunk, num_rows), places;
    for (int64_t n = 0; n < chunks_; ++n) {
      for (int64_t i = 0; i < pieces[n].rows; ++i) {
        sources[n * chunk + i] = pieces[n].first + i;
        places.push_back(n * chunk + i);
      }
    }
    const auto longs = at::TensorOptions().dtype(at::kLong);
    sources_ = Upload(at::tensor(sources, longs), device);
    places_ = Upload(at::tensor(places, longs), device);
  }
  at::Tensor Spread(const at::Tensor& x_nk) const {
    const at::Tensor rows =
        sources_.defined()
            ? at::cat({x_nk, at::zeros({1, x_nk.size(1)}, x_nk.options())}).index_select(0, sources_)
            : x_nk;
    return rows.view({chunks_, chunk_, x_nk.size(1)});
  }
  at::Tensor Gather(const at::Tensor& x_cqk) const {
    const at::Tensor rows = x_cqk.reshape({chunks_ * chunk_, x_cqk.size(2)});
    return places_.defined() ? rows.index_select(0, places_) : rows;
  }

 private:
  int64_t chunks_, chunk_, num_rows_;
  at::Tensor sources_, places_;
};

/// x[q] += factor[q] x[q - step] for all rows from `step` on.
at::Tensor AddShifted(const at::Tensor& x_cqk, const at::Tensor& factor, int64_t step) {
  const int64_t rest = x_cqk.size(1) - step;
  at::Tensor sum = x_cqk.clone();
  sum.narrow(1, step, rest).add_(x_cqk.narrow(1, 0, rest).mul(factor));
  return sum;
}

at::Tensor ScanInChunks(const ComplexDecay& decay, const at::Tensor& b_nk, const SpanTable& spans,
                        const at::Tensor& initial_sk, int64_t chunk) {
  const std::vector<ScanPiece> pieces = ScanPieces(spans, chunk);
  int64_t longest = 0;
  for (const ScanPiece& piece : pieces) longest = std::max(longest, piece.rows);
  const ChunkLayout layout(pieces, longest, b_nk.size(0), b_nk.device());
  // What each chunk makes of its own rows, and what it multiplies the state before it by, row for row.
  at::Tensor own_cqk = layout.Spread(b_nk), factors;
  if (decay.selective()) factors = layout.Spread(decay.lambda_nk);
  for (int64_t step = 1; step < longest; step *= 2) {
    const int64_t rest = longest - step;
    own_cqk =
        AddShifted(own_cqk, decay.selective() ? factors.narrow(1, step, rest) : decay.Power(step), step);
    if (!decay.selective()) continue;
    at::Tensor products = factors.clone();
    products.narrow(1, step, rest).mul_(factors.narrow(1, 0, rest));
    factors = products;
  }
  if (!decay.selective()) {
    factors =
        decay.Power(at::arange(1, longest + 1, decay.log_modulus_k.options()).unsqueeze(1)).unsqueeze(0);
  }
  const at::Tensor zero_k = at::zeros({b_nk.size(1)}, b_nk.options());
  std::vector<at::Tensor> states;
  for (int64_t n = 0; n < std::ssize(pieces); ++n) {
    if (pieces[n].begins_span) {
      states.push_back(initial_sk.defined() ? initial_sk[pieces[n].span] : zero_k);
    } else {
      const at::Tensor power_k = factors[decay.selective() ? n - 1 : 0][longest - 1];
      states.push_back(power_k.mul(states.back()).add_(own_cqk[n - 1][longest - 1]));
    }
  }
  return layout.Gather(own_cqk.add(factors.mul(at::stack(states).unsqueeze(1))));
}

at::Tensor Scan(const ScanOptions& options, const ComplexDecay& decay, const at::Tensor& b_nk,
                const SpanTable& spans, const at::Tensor& initial_sk) {
  return options.kind == ScanKind::kSequential ? ScanSequentially(decay, b_nk, spans, initial_sk)
                                               : ScanInChunks(decay, b_nk, spans, initial_sk, options.chunk);
}

at::Tensor ComplexOrNone(const at::Tensor& x_rz) {
  return x_rz.defined() ? Complex(x_rz) : at::Tensor();
}

/// The rows that begin spans, or with `offset` -1 those that end them.
at::Tensor RowsAtEnds(const SpanTable& spans, int64_t offset, at::Device device) {
  std::vector<int64_t> rows;
  for (size_t span = 0; span + 1 < spans.starts.size(); ++span) {
    rows.push_back(offset == 0 ? spans.starts[span] : spans.starts[span + 1] + offset);
  }
  return Upload(at::tensor(rows, at::TensorOptions().dtype(at::kLong)), device);
}

}  // namespace

at::Tensor TorchScan(const ScanOptions& options, const ScanDecay& decay, const at::Tensor& b_nz,
                     const SpanTable& spans, ScanEnds& ends) {
  const at::Tensor b_nk = Complex(b_nz);
  const at::Tensor c_nz =
      Parts(Scan(options, ComplexDecay(decay, b_nk), b_nk, spans, ComplexOrNone(ends.initial_sz)));
  if (ends.last_sz.defined()) {
    ends.last_sz.copy_(c_nz.index_select(0, RowsAtEnds(spans, -1, c_nz.device())));
  }
  return c_nz;
}

void TorchScanBackward(const ScanOptions& options, const ScanDecay& decay, const at::Tensor& b_nz,
                       const SpanTable& spans, const ScanEnds& ends, const at::Tensor& d_c_nz,
                       const at::Tensor& d_last_sz, ScanGradients& gradients) {
  const at::Tensor b_nk = Complex(b_nz), initial_sk = ComplexOrNone(ends.initial_sz);
  const ComplexDecay forward(decay, b_nk);
  const at::Tensor first_s = RowsAtEnds(spans, 0, b_nz.device());
  at::Tensor d_c = d_c_nz;
  if (d_last_sz.defined()) d_c = d_c.index_add(0, RowsAtEnds(spans, -1, b_nz.device()), d_last_sz);
  const at::Tensor delta_nk =
      Scan(options, forward.Reversed(), Complex(d_c.flip(0)), SpanTable(ReversedStarts(spans)), {}).flip(0);
  if (gradients.b_nz.defined()) gradients.b_nz.copy_(Parts(delta_nk));
  if (gradients.initial_sz.defined()) {
    at::Tensor lambda = forward.OfRows();
    if (forward.selective()) lambda = lambda.index_select(0, first_s);
    gradients.initial_sz.copy_(Parts(lambda.conj().mul(delta_nk.index_select(0, first_s))));
  }
  if (!gradients.lambda_z.defined() && !gradients.lambda_nz.defined()) return;
  at::Tensor before_nk = Scan(options, forward, b_nk, spans, initial_sk).roll(1, 0);
  before_nk.index_copy_(
      0, first_s,
      initial_sk.defined() ? initial_sk : at::zeros({first_s.numel(), b_nk.size(1)}, b_nk.options()));
  const at::Tensor d_lambda_nz = Parts(delta_nk.mul(before_nk.conj()));
  if (gradients.lambda_nz.defined()) gradients.lambda_nz.copy_(d_lambda_nz);
  if (gradients.lambda_z.defined()) {
    gradients.lambda_z.copy_(d_lambda_nz.sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kDouble));
  }
}

}  // namespace trainwright

#include "lib/nn/scan/diagonal_scan.h"

#include <ATen/ops/empty.h>

#include <optional>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/device/upload.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/ops.h"
#include "lib/nn/scan/fused_scan.h"
#include "lib/nn/scan/scan_pieces.h"
#include "lib/nn/scan/torch_scan.h"

namespace trainwright {
namespace {

bool IsOf(const at::Tensor& tensor, at::ScalarType type, int64_t rows, int64_t columns) {
  return tensor.is_contiguous() && tensor.scalar_type() == type && tensor.dim() == 2 &&
         tensor.size(0) == rows && tensor.size(1) == columns;
}
bool IsNoneOrOf(const at::Tensor& tensor, at::ScalarType type, int64_t rows, int64_t columns) {
  return !tensor.defined() || IsOf(tensor, type, rows, columns);
}

void CheckInputs(const Numerics& numerics, const ScanOptions& options, const ScanDecay& decay,
                 const at::Tensor& b_nz, const SpanTable& spans, const ScanEnds& ends) {
  const int64_t rows = b_nz.size(0), width = b_nz.size(1), count = std::ssize(spans.starts) - 1;
  TRAINWRIGHT_CHECK(options.chunk >= 1 && count >= 1 && spans.starts.front() == 0 &&
                    spans.starts.back() == rows);
  TRAINWRIGHT_CHECK(width % 2 == 0 && IsOf(b_nz, numerics.storage, rows, width));
  TRAINWRIGHT_CHECK(IsNoneOrOf(decay.lambda_nz, at::kFloat, rows, width));
  for (const at::Tensor* of_channel : {&decay.log_modulus_k, &decay.angle_k}) {
    TRAINWRIGHT_CHECK(decay.selective() ||
                      (of_channel->is_contiguous() && of_channel->scalar_type() == at::kDouble &&
                       2 * of_channel->numel() == width));
  }
  TRAINWRIGHT_CHECK(IsNoneOrOf(ends.initial_sz, at::kFloat, count, width) &&
                    IsNoneOrOf(ends.last_sz, at::kFloat, count, width));
}

/// As operators take what may be undefined.
std::optional<at::Tensor> Optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

at::Tensor PiecesOn(at::Device device, const SpanTable& spans, int64_t chunk) {
  return Upload(ScanPieceTable(spans, chunk), device);
}

}  // namespace

int64_t CountScanChunks(const SpanTable& spans, int64_t chunk) {
  int64_t count = 0;
  for (size_t span = 0; span + 1 < spans.starts.size(); ++span) {
    count += (spans.starts[span + 1] - spans.starts[span] + chunk - 1) / chunk;
  }
  return count;
}

void DiagonalScan(const Numerics& numerics, const ScanOptions& options, const ScanDecay& decay,
                  const at::Tensor& b_nz, const SpanTable& spans, ScanEnds& ends, at::Tensor& c_nz,
                  at::Tensor& states_cz) {
  const ProfileScope scope("diagonal_scan", ProfilePart::kScan);
  CheckInputs(numerics, options, decay, b_nz, spans, ends);
  TRAINWRIGHT_CHECK(IsOf(c_nz, numerics.storage, b_nz.size(0), b_nz.size(1)));
  TRAINWRIGHT_CHECK(IsOf(states_cz, at::kFloat, CountScanChunks(spans, options.chunk), b_nz.size(1)));
  if (b_nz.is_meta()) return;  // nothing to compute
  const bool fused = options.kind == ScanKind::kFused;
  if (fused && !b_nz.is_cpu()) {
    return ops::DiagonalScan(b_nz, Optional(decay.log_modulus_k), Optional(decay.angle_k),
                             Optional(decay.lambda_nz), PiecesOn(b_nz.device(), spans, options.chunk),
                             Optional(ends.initial_sz), options.chunk, numerics.code(), c_nz, states_cz,
                             Optional(ends.last_sz));
  }
  if (fused) {
    return cpu::FusedScan(numerics, options.chunk, decay, b_nz, spans, ends, c_nz, states_cz);
  }
  RoundInto(numerics, TorchScan(options, decay, Loaded(numerics, b_nz), spans, ends), c_nz);
}

void DiagonalScanBackward(const Numerics& numerics, const ScanOptions& options, const ScanDecay& decay,
                          const at::Tensor& b_nz, const SpanTable& spans, const ScanEnds& ends,
                          const at::Tensor& states_cz, const at::Tensor& d_c_nz, const at::Tensor& d_last_sz,
                          ScanGradients& gradients) {
  const ProfileScope scope("diagonal_scan_backward", ProfilePart::kScan);
  CheckInputs(numerics, options, decay, b_nz, spans, ends);
  const int64_t rows = b_nz.size(0), width = b_nz.size(1), count = std::ssize(spans.starts) - 1;
  TRAINWRIGHT_CHECK(IsOf(d_c_nz, numerics.storage, rows, width) &&
                    IsOf(gradients.b_nz, numerics.storage, rows, width));
  TRAINWRIGHT_CHECK(IsNoneOrOf(d_last_sz, at::kFloat, count, width) &&
                    IsNoneOrOf(gradients.initial_sz, at::kFloat, count, width));
  TRAINWRIGHT_CHECK(decay.selective() ? !gradients.lambda_z.defined() : !gradients.lambda_nz.defined());
  TRAINWRIGHT_CHECK(IsNoneOrOf(gradients.lambda_nz, at::kFloat, rows, width));
  TRAINWRIGHT_CHECK(!gradients.lambda_z.defined() ||
                    (gradients.lambda_z.scalar_type() == at::kDouble && gradients.lambda_z.numel() == width));
  if (b_nz.is_meta()) return;
  const bool fused = options.kind == ScanKind::kFused;
  if (fused && !b_nz.is_cpu()) {
    return ops::DiagonalScanBackward(b_nz, Optional(decay.log_modulus_k), Optional(decay.angle_k),
                                     Optional(decay.lambda_nz), PiecesOn(b_nz.device(), spans, options.chunk),
                                     states_cz, d_c_nz, Optional(d_last_sz), options.chunk, numerics.code(),
                                     gradients.b_nz, Optional(gradients.lambda_z),
                                     Optional(gradients.lambda_nz), Optional(gradients.initial_sz));
  }
  if (fused) {
    return cpu::FusedScanBackward(numerics, options.chunk, decay, b_nz, spans, states_cz, d_c_nz, d_last_sz,
                                  gradients);
  }
  at::Tensor d_b_nz = gradients.b_nz;
  ScanGradients in_fp32 = gradients;
  in_fp32.b_nz = at::empty(d_b_nz.sizes(), d_b_nz.options().dtype(at::kFloat));
  TorchScanBackward(options, decay, Loaded(numerics, b_nz), spans, ends, Loaded(numerics, d_c_nz), d_last_sz,
                    in_fp32);
  RoundInto(numerics, in_fp32.b_nz, d_b_nz);
}

}  // namespace trainwright

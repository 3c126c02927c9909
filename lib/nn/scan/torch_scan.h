/// The diagonal scan out of torch's operators, on any device and in the precision of its input, fp32 or fp64:
/// what the fused kernels are compared with, and what runs where there are none.
///
/// sequential: a state a step, as the recurrence is written, in fp64 whatever the input. chunked: all chunks
/// at once, each by doubling (Hillis and Steele 1986: after step k a row holds the sum over the 2^k rows that
/// end with it), then the states from chunk to chunk. The backward pass is the same scan over the rows in
/// reverse, with the conjugate decay of the row after.
#pragma once

#include "lib/nn/scan/diagonal_scan.h"

namespace trainwright {

/// Arguments as of DiagonalScan, fp32 or fp64, all states and lambda_nz of b_nz's type.
/// \param ends the last states are written
/// \returns [N, Z]
at::Tensor TorchScan(const ScanOptions& options, const ScanDecay& decay, const at::Tensor& b_nz,
                     const SpanTable& spans, ScanEnds& ends);

/// Arguments as of DiagonalScanBackward, of b_nz's type but for lambda_z.
/// \param gradients those that are defined are written
void TorchScanBackward(const ScanOptions& options, const ScanDecay& decay, const at::Tensor& b_nz,
                       const SpanTable& spans, const ScanEnds& ends, const at::Tensor& d_c_nz,
                       const at::Tensor& d_last_sz, ScanGradients& gradients);

}  // namespace trainwright

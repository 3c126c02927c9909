/// The diagonal scan by the kernels of lib/nn/cpu/kernels.h; arguments as of diagonal_scan.h.
///
/// Chunks and blocks of channels are the work that threads share. Where there are as many blocks as
/// threads, a thread takes blocks through all chunks, and each chunk is in the cache for all three phases;
/// else the phases follow one another, each over all chunks and blocks. The arithmetic is the same.
#pragma once

#include "lib/nn/scan/diagonal_scan.h"

namespace trainwright::cpu {

void FusedScan(const Numerics& numerics, int64_t chunk, const ScanDecay& decay, const at::Tensor& b_nz,
               const SpanTable& spans, ScanEnds& ends, at::Tensor& c_nz, at::Tensor& states_cz);

void FusedScanBackward(const Numerics& numerics, int64_t chunk, const ScanDecay& decay,
                       const at::Tensor& b_nz, const SpanTable& spans, const at::Tensor& states_cz,
                       const at::Tensor& d_c_nz, const at::Tensor& d_last_sz, ScanGradients& gradients);

}  // namespace trainwright::cpu

/// The recurrence of a diagonal linear state space with complex numbers, and its backward pass: in each span
/// of a packed batch and for each channel
///   c_t = lambda_t c_{t-1} + b_t,
/// with the span's initial state (zero, if none is given) before its first row.
///
/// Shape legend: N rows of a micro-batch, S spans, C chunks, K channels, Z = 2 K: the real parts of a row,
/// then its imaginary parts.
///
/// Maths. Each span is cut into chunks of Q rows, its last one shorter. With h the state before a chunk,
///   (1) U = sum_s lambda^(Q-1-s) b_s   the state that a chunk would end with, had it begun with zero;
///   (2) h' = lambda^Q h + U            from chunk to chunk;
///   (3) c_t = lambda_t c_{t-1} + b_t   in the chunk, from h.
/// Backward, with g the gradient of c (d L / d Re c + i d L / d Im c) and the same three phases in reverse:
///   delta_t = g_t + conj(lambda_{t+1}) delta_{t+1},     d b_t = delta_t,
///   d lambda_t = delta_t conj(c_{t-1}),                 d h = conj(lambda) delta of the first row.
/// Gradients of lambda come as d L / d Re + i d L / d Im, too, so that any parametrisation can go on:
/// d log|lambda| = Re(d lambda conj(lambda)), d angle = Im(d lambda conj(lambda)).
/// \source Martin and Cundy 2018, arXiv:1709.04057 (parallel linear recurrences); Orvieto et al. 2023,
/// arXiv:2303.06349 (LRU: complex diagonal, phases and moduli); Gu and Dao 2023, arXiv:2312.00752 (only the
/// states of chunks are kept)
///
/// Numerics: the state, its gradient and lambda are fp32 under every precision (of the sequential kind fp64);
/// b, c and their gradients have the storage type. lambda^Q comes from exp(Q log|lambda|) and the sine and
/// cosine of Q times the angle in double, and a constant lambda is held as the sum of two fp32 numbers: what
/// is left of rounding is that of the state, however long it remembers. Gradients of a constant lambda are
/// added up in fp32 for 64 rows and in fp64 beyond.
///
/// Determinism: the bits of a span depend on its own rows, states, lambda and the length of chunks alone: not
/// on threads, nor on the other spans of the batch. The sum of a constant lambda's gradient runs over the
/// chunks in order.
///
/// Kernels: fused are those of lib/nn/cpu on a CPU, and on a GPU three launches a direction, one for each
/// phase (the last block of a channel adds up a constant decay's gradient).
///
/// Memory: the forward pass leaves the states before chunks, [C, Z] in fp32; the backward pass computes c
/// again, a chunk at a time, and holds as much once more.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/nn/attention/span_table.h"
#include "lib/nn/precision.h"
#include "lib/spec/scan_kind.h"

namespace trainwright {

/// What a state is multiplied by from row to row: one number a channel, or one for each row, too (then what
/// is of a row comes between the row before and itself).
struct ScanDecay {
  at::Tensor log_modulus_k, angle_k;  ///< fp64 [K], contiguous, log_modulus_k < 0; undefined: lambda_nz
  at::Tensor lambda_nz;               ///< fp32 [N, Z], contiguous

  bool selective() const { return lambda_nz.defined(); }
};

struct ScanOptions {
  ScanKind kind = ScanKind::kFused;
  int64_t chunk = 64;  ///< Q, at least 1
};

/// States at the ends of spans, fp32 [S, Z], contiguous; undefined: zero, or not wanted.
struct ScanEnds {
  at::Tensor initial_sz, last_sz;
};

/// C.
int64_t CountScanChunks(const SpanTable& spans, int64_t chunk);

/// \param b_nz storage type [N, Z], contiguous
/// \param ends the last states are written
/// \param c_nz storage type [N, Z], contiguous; rounded
/// \param states_cz fp32 [C, Z], contiguous: for the backward pass
void DiagonalScan(const Numerics& numerics, const ScanOptions& options, const ScanDecay& decay,
                  const at::Tensor& b_nz, const SpanTable& spans, ScanEnds& ends, at::Tensor& c_nz,
                  at::Tensor& states_cz);

/// Gradients that are written; undefined: not wanted.
struct ScanGradients {
  at::Tensor b_nz;        ///< storage type [N, Z], contiguous; rounded; always wanted
  at::Tensor lambda_z;    ///< fp64 [Z], of a decay that is not selective
  at::Tensor lambda_nz;   ///< fp32 [N, Z], contiguous, of one that is
  at::Tensor initial_sz;  ///< fp32 [S, Z], contiguous
};

/// \param ends, states_cz of the forward pass
/// \param d_c_nz storage type [N, Z], contiguous
/// \param d_last_sz fp32 [S, Z], contiguous; undefined: zero
void DiagonalScanBackward(const Numerics& numerics, const ScanOptions& options, const ScanDecay& decay,
                          const at::Tensor& b_nz, const SpanTable& spans, const ScanEnds& ends,
                          const at::Tensor& states_cz, const at::Tensor& d_c_nz, const at::Tensor& d_last_sz,
                          ScanGradients& gradients);

}  // namespace trainwright

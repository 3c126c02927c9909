/// The element-wise kernels on the CPU: serial functions over a range of rows, compiled once an instruction
/// set.
///
/// "Stored" arrays (void*) hold what enters or leaves GEMMs in the codec's element type; everything
/// else is fp32. Loading a stored element rounds it, so that a GEMM computed in fp32 needs no
/// rounding pass of its own. A row's result depends on that row alone: partition and thread count do not
/// change bits. Torch-free, pure apart from the outputs, thread-safe on disjoint rows.
#pragma once

#include <cstdint>

#include "lib/nn/activation/gelu_kind.h"
#include "lib/nn/attention/attention_shape.h"
#include "lib/nn/linear/fp8_format.h"
#include "lib/nn/loss/loss_terms.h"
#include "lib/nn/scan/convolution_weights.h"
#include "lib/nn/scan/scan_chunk.h"
#include "lib/nn/scan/selective_channels.h"

namespace trainwright::cpu {

/// How stored elements look: fp32, fp32 rounded to bf16 or fp16, or bf16 itself.
enum class Codec { kFp32, kRoundedBf16, kRoundedFp16, kBf16 };

/// One span of the packed batch and one group of query heads that share a key and value head.
struct AttentionTask {
  int64_t begin = 0, end = 0;  ///< rows
  int64_t group = 0;
};

/// fp32 elements of scratch that the attention kernels need for a span of `length` tokens.
inline int64_t AttentionScratch(int64_t length, int64_t head_dim) {
  return (4 * length + 4) * head_dim + length;
}

/// The same for decoding against a cache of `length` tokens.
inline int64_t DecodeScratch(int64_t length, int64_t head_dim) {
  return 2 * head_dim + length;
}

struct Kernels {
  const char* name;
  /// out = round(in), [begin, end) elements.
  void (*round)(Codec, const float* in, void* out, int64_t begin, int64_t end);
  /// sum = residual + update (update may be null: sum is not written and stands for residual);
  /// rstd = 1 / sqrt(mean(sum^2) + epsilon); normed = sum * rstd * weight.
  /// \param stream how residual and sum look, kFp32 or the codec; what is normalised is the sum as stored
  void (*add_norm)(Codec, Codec stream, const void* residual, const void* update, const float* weight,
                   double epsilon, int64_t width, void* sum, void* normed, float* rstd, int64_t begin,
                   int64_t end);
  /// normed = x * rstd * weight with the rstd of add_norm: the same bits as there.
  /// \param stream of x
  void (*norm_again)(Codec, Codec stream, const void* x, const float* rstd, const float* weight,
                     int64_t width, void* normed, int64_t begin, int64_t end);
  /// d_x += ..., d_weight[width] += ...; d_weight belongs to this range of rows alone.
  /// \param stream of x and d_x, of which each sum is made in fp32 and rounded once
  void (*norm_backward)(Codec, Codec stream, const void* d_normed, const void* x, const float* rstd,
                        const float* weight, int64_t width, void* d_x, float* d_weight, int64_t begin,
                        int64_t end);
  /// Rotates the first 2 `half` elements of query and key heads in place by the angle of the row's position
  /// (`sign` 1, or -1 for the backward pass), and rounds all other elements.
  /// \param cosines, sines [positions, half]
  void (*rope)(Codec, void* qkv, const int64_t* positions, const float* cosines, const float* sines,
               int64_t half, const AttentionShape& shape, float sign, int64_t begin, int64_t end);
  /// out = silu(gate) * up for rows [gate | up] of 2 width.
  void (*swiglu)(Codec, const void* gate_up, int64_t width, void* out, int64_t begin, int64_t end);
  /// Overwrites gate_up with its gradient.
  void (*swiglu_backward)(Codec, void* gate_up, const void* d_out, int64_t width, int64_t begin, int64_t end);
  /// out = silu(in) for rows of `width`.
  void (*silu)(Codec, const void* in, int64_t width, void* out, int64_t begin, int64_t end);
  /// Overwrites `in` with its gradient.
  void (*silu_backward)(Codec, void* in, const void* d_out, int64_t width, int64_t begin, int64_t end);
  /// out = sigmoid(gate + bias) value for rows of `width`; bias may be null.
  void (*sigmoid_gate)(Codec, const void* gate, const float* bias, const void* value, int64_t width,
                       void* out, int64_t begin, int64_t end);
  /// Overwrites gate and value with their gradients.
  void (*sigmoid_gate_backward)(Codec, void* gate, const float* bias, void* value, const void* d_out,
                                int64_t width, int64_t begin, int64_t end);
  /// losses[row] = the cross-entropy logsumexp(logits) - logits[label], what smoothing adds to it, and the
  /// z-loss, in nats; with `gradients` the logits are overwritten by scale times the gradient of their sum.
  /// Without terms that is scale * (softmax - onehot), and the two other losses are 0. Of a row whose label
  /// is negative losses and gradient are 0. Where elements are bf16, `scratch` has `vocabulary` floats with
  /// `gradients`.
  void (*cross_entropy)(Codec, void* logits, const int64_t* labels, int64_t vocabulary,
                        const LossTerms& terms, float scale, bool gradients, double* losses_n3,
                        float* scratch, int64_t begin, int64_t end);
  /// table_gradient[token[row]][columns] += d_x[row][columns] for every row in order, columns [begin, end).
  /// \param stream of d_x
  void (*embedding_backward)(Codec stream, const void* d_x, const int64_t* tokens, int64_t num_tokens,
                             int64_t width, float* table_gradient, int64_t begin, int64_t end);
  /// The largest of values; whether any is a NaN, which the largest then ignores.
  float (*largest)(const float* values, int64_t begin, int64_t end, bool* has_nan);
  /// weights = e^(factor (x - largest)), [begin, end): the weights of a softmax, with a temperature of 1 /
  /// factor. Returns their sum.
  double (*exp_weights)(const float* x, float largest, float factor, float* weights, int64_t begin,
                        int64_t end);
  double (*sum_of_squares)(const float* values, int64_t begin, int64_t end);
  /// Attention inside one span under the shape's mask and window, for the heads of one group. lse is [H, N].
  /// \param scratch AttentionScratch(...) elements
  void (*attention)(Codec, const void* qkv, const AttentionShape& shape, const AttentionTask& task,
                    void* out_nhk, float* lse_hn, float* scratch);
  /// Its backward pass; writes the group's columns of d_qkv.
  void (*attention_backward)(Codec, const void* d_out_nhk, const void* qkv, const void* out_nhk,
                             const float* lse_hn, const AttentionShape& shape, const AttentionTask& task,
                             void* d_qkv, float* scratch);
  /// One query row against a cache of keys and values [G, length, K], the heads of which begin head_stride
  /// elements after one another; heads [begin, end).
  /// \param scratch DecodeScratch(...) elements
  void (*attention_decode)(Codec, const void* query_hk, const void* keys_gmk, const void* values_gmk,
                           int64_t head_stride, int64_t length, const AttentionShape& shape, void* out_hk,
                           float* scratch, int64_t begin, int64_t end);
  /// sum = residual + update + update_bias (update may be null: sum is not written and stands for residual;
  /// update_bias may be null: none); mean and rstd = 1 / sqrt(variance + epsilon) of sum;
  /// normed = (sum - mean) * rstd * weight + bias (bias may be null: none).
  /// \param stream as in add_norm
  void (*add_layer_norm)(Codec, Codec stream, const void* residual, const void* update,
                         const float* update_bias, const float* weight, const float* bias, double epsilon,
                         int64_t width, void* sum, void* normed, float* mean, float* rstd, int64_t begin,
                         int64_t end);
  /// normed from x and the statistics of add_layer_norm: the same bits as there.
  void (*layer_norm_again)(Codec, Codec stream, const void* x, const float* mean, const float* rstd,
                           const float* weight, const float* bias, int64_t width, void* normed, int64_t begin,
                           int64_t end);
  /// d_x += ..., d_weight[width] += ..., d_bias[width] += ... (null: not wanted); the last two belong to this
  /// range of rows alone.
  /// \param stream as in norm_backward
  void (*layer_norm_backward)(Codec, Codec stream, const void* d_normed, const void* x, const float* mean,
                              const float* rstd, const float* weight, int64_t width, void* d_x,
                              float* d_weight, float* d_bias, int64_t begin, int64_t end);
  /// out = gelu(in + bias) for rows of `width`; bias may be null.
  void (*gelu)(Codec, GeluKind, const void* in, const float* bias, int64_t width, void* out, int64_t begin,
               int64_t end);
  /// Overwrites `in` with its gradient.
  void (*gelu_backward)(Codec, GeluKind, void* in, const float* bias, const void* d_out, int64_t width,
                        int64_t begin, int64_t end);
  /// x = round(x + bias) for rows of `width` that lie `stride` elements apart; bias may be null.
  void (*add_bias)(Codec, void* x, const float* bias, int64_t width, int64_t stride, int64_t begin,
                   int64_t end);
  /// sums[width] += the rows of x, which lie `stride` elements apart; sums belong to this range alone.
  void (*column_sums)(Codec, const void* x, int64_t width, int64_t stride, float* sums, int64_t begin,
                      int64_t end);
  /// out[row] = table[indices[row]], rounded.
  /// \param stream of out
  void (*embed)(Codec stream, const float* table, const int64_t* indices, int64_t width, void* out,
                int64_t begin, int64_t end);
  /// out[row] += table[indices[row]]; each sum is made in fp32 and rounded once.
  /// \param stream of out
  void (*add_embedding)(Codec stream, const float* table, const int64_t* indices, int64_t width, void* out,
                        int64_t begin, int64_t end);
  /// out[c][r] = in[r][c] for elements of 32 bits.
  void (*transpose)(const uint32_t* in, int64_t in_stride, int64_t rows, int64_t columns, uint32_t* out,
                    int64_t out_stride);
  /// Pairs of rows of bf16, element by element: out[r / 2][c] = in[r][c] | in[r + 1][c] << 16, with zeros
  /// below the last row. Dot-product instructions read their right operand so.
  void (*interleave_pairs)(const uint16_t* in, int64_t in_stride, int64_t rows, int64_t columns,
                           uint32_t* out, int64_t out_stride);
  /// The transpose of bf16 rows: out[c][r / 2] holds in[r][c] and in[r + 1][c], zeros below the last row.
  void (*transpose_pairs)(const uint16_t* in, int64_t in_stride, int64_t rows, int64_t columns, uint32_t* out,
                          int64_t out_stride);
  /// out = in, of bf16.
  void (*widen)(const uint16_t* in, int64_t size, float* out);
  /// out[c][r] = in[r][c], of bf16.
  void (*transpose_widened)(const uint16_t* in, int64_t in_stride, int64_t rows, int64_t columns,
                            uint32_t* out, int64_t out_stride);
  /// out = tile, or out += tile, rounded to the codec.
  void (*store_tile)(Codec, const float* tile, int64_t tile_stride, int64_t rows, int64_t columns, void* out,
                     int64_t out_stride, bool accumulate);
  /// A block of a running softmax over the columns of `scores`, of which row r sees those from first + r to
  /// before seen + r, and none from `end` on: raises largest[r] to their scaled maximum, multiplies total[r]
  /// and the row of `sums` by what that takes off, writes e^(scale score - largest) (0 where not seen) and
  /// adds it to total[r].
  /// \param stride of scores and probabilities
  void (*attention_softmax)(Codec, const float* scores, int64_t stride, int64_t rows, int64_t columns,
                            int64_t first, int64_t seen, int64_t end, float scale, float* largest,
                            float* total, float* sums, int64_t sum_columns, void* probabilities);
  /// Backward of a block of transposed scores (a row is a key, a column a query): probabilities =
  /// e^(scale score - lse[column]), d_scores = scale probability (d_probability - delta[column]) for the
  /// queries that see the key, those of columns from first + r to before end + r of row r; zeros elsewhere.
  void (*attention_gradient)(Codec, const float* scores, const float* d_probabilities, int64_t stride,
                             int64_t rows, int64_t columns, int64_t first, int64_t end, float scale,
                             const float* lse, const float* delta, void* probabilities, void* d_scores);
  /// dots[r] = sum over c of a[r][c] b[r][c].
  void (*row_dots)(Codec, const void* a, const void* b, int64_t stride, int64_t columns, int64_t rows,
                   float* dots);
  /// scores = weights e^(factor (scores - largest)) + row_weight e^(factor (scores - row_largest)), [begin,
  /// end); a score of minus infinity gives 0.
  void (*weigh_scores)(const float* largest, const float* weights, float row_largest, float row_weight,
                       float factor, float* scores, int64_t begin, int64_t end);
  /// The decays of rows (lib/nn/scan/selective_decay.h).
  void (*decay_rows)(Codec, const DecayChannels& channels, const void* s_nz, float* lambda_nz, int64_t begin,
                     int64_t end);
  /// Overwrites s_nz with its gradient and adds to sums_z those of a and w (null: not wanted), which belong
  /// to this range of rows alone.
  void (*decay_rows_backward)(Codec, const DecayChannels& channels, const float* d_lambda_nz, void* s_nz,
                              float* sums_z, int64_t begin, int64_t end);
  /// Channels [begin, end) of a diagonal scan over a chunk (lib/nn/scan/diagonal_scan.h): state_z, before the
  /// chunk, becomes that after it, and product_z the product of the decays, where each row has its own.
  void (*scan_end)(Codec, const ScanChunk& chunk, const void* b_nz, float* state_z, float* product_z,
                   int64_t begin, int64_t end);
  /// The same, and c_nz.
  void (*scan_rows)(Codec, const ScanChunk& chunk, const void* b_nz, float* state_z, void* c_nz,
                    int64_t begin, int64_t end);
  /// end_z += power state_z. The power is the sum of two, or one where low_z is null.
  void (*scan_carry)(const float* high_z, const float* low_z, int64_t channels, const float* state_z,
                     float* end_z, int64_t begin, int64_t end);
  /// carry_z, the gradient of the state after a chunk, becomes what it and d_c_nz make of that before it, and
  /// product_z the product of the conjugate decays, where each row has its own.
  void (*scan_backward_end)(Codec, const ScanChunk& chunk, const void* d_c_nz, float* carry_z,
                            float* product_z, int64_t begin, int64_t end);
  /// The same, and the gradients of b_nz and of the decay.
  void (*scan_backward_rows)(Codec, const ScanChunk& chunk, const ScanChunkBackward& of, int64_t begin,
                             int64_t end);
  /// out = scale silu(p) for `rows` rows, where p is the sum over the taps of the kernel times the row and
  /// those before it; taps - 1 rows lie before x.
  void (*convolve)(Codec, const ConvolutionWeights& of, const void* x, int64_t rows, void* out);
  /// d_p [rows, width]; d_kernel_tz[taps, width] += ..., d_scale_z[width] += ... (null: not wanted), which
  /// belong to this range of rows alone.
  void (*convolution_backward)(Codec, const ConvolutionWeights& of, const void* x, const void* d_out,
                               int64_t rows, float* d_p, float* d_kernel_tz, float* d_scale_z);
  /// d_x of `rows` rows from d_p of these and of the taps - 1 rows after them.
  void (*convolution_input_backward)(Codec, const ConvolutionWeights& of, const float* d_p, int64_t rows,
                                     void* d_x);
  /// out = scale x for rows of `width`; out may be x.
  void (*scale_columns)(Codec, const void* x, const float* scale, int64_t width, void* out, int64_t begin,
                        int64_t end);
  /// d_x = scale d_out, which may be the same; d_scale[width] += d_out x (null: not wanted), which belongs to
  /// this range of rows alone.
  void (*scale_columns_backward)(Codec, const void* x, const float* scale, const void* d_out, int64_t width,
                                 void* d_x, float* d_scale, int64_t begin, int64_t end);
  /// The largest of elements [begin, end) without their signs in the order of their bits in fp32: a NaN is
  /// above infinity, which is above all numbers.
  uint32_t (*largest_bits)(Codec, const void* x, int64_t begin, int64_t end);
  /// codes = fp8(factor x), elements [begin, end): see lib/nn/fp8_ops.h.
  void (*fp8_encode)(Codec, Fp8Format, const void* x, float factor, uint8_t* codes, int64_t begin,
                     int64_t end);
  /// Their values, which bf16 and fp32 hold exactly.
  void (*fp8_decode)(Codec, Fp8Format, const uint8_t* codes, void* values, int64_t begin, int64_t end);
};

/// The kernels of the best instruction set that this CPU has.
const Kernels& BestKernels();

extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx512Kernels;
#endif

}  // namespace trainwright::cpu

/// The element-wise kernels on a GPU (compute capability 8.0 and later): what lib/nn/cpu/kernels.h has,
/// launched on a stream. Torch-free; pointers are device memory, contiguous.
///
/// Numerics: stored values (fp32, bf16, fp16) are converted to fp32 when loaded and rounded to nearest even
/// when stored; sums run in fp32, the sum of squares and the losses end in fp64. Every sum has an order that
/// depends on the shape alone and no kernel uses floating-point atomics, so results are the same bits on
/// every run and every GPU of one architecture. Nothing synchronises. Pointers that are multiples of 16 bytes
/// and widths that are multiples of 8 get 16-byte accesses, others one element at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "lib/nn/linear/nf4_books.h"
#include "lib/nn/loss/loss_terms.h"
#include "lib/nn/update/adamw_8bit.h"
#include "lib/nn/update/bf16_moments.h"
#include "lib/nn/update/lion.h"

namespace trainwright::cuda {

enum class Storage { kFp32, kBf16, kFp16 };

/// What a norm reads and writes: stored values, and a residual stream and its gradient, fp32 or stored, too.
struct NormStorage {
  NormStorage(Storage stored, Storage stream = Storage::kFp32)  // NOLINT: most streams are fp32
      : stored(stored), stream(stream) {}
  Storage stored, stream;
};

cudaError_t Round(Storage storage, const float* in, void* out, int64_t size, cudaStream_t stream);

/// As cpu::Kernels::add_norm.
/// \param update null: sum is not written
cudaError_t AddNorm(NormStorage storage, const void* residual, const void* update, const float* weight,
                    float epsilon, int64_t rows, int64_t width, void* sum, void* normed, float* rstd,
                    cudaStream_t stream);
cudaError_t NormAgain(NormStorage storage, const void* x, const float* rstd, const float* weight,
                      int64_t rows, int64_t width, void* normed, cudaStream_t stream);
/// Rows whose weight gradients are summed by one block; a function of their number alone.
int64_t NormBackwardBlocks(int64_t rows);
/// Adds to d_x and d_weight.
/// \param d_short stored: becomes the new d_x, rounded; null: not wanted
/// \param partial scratch, fp32 [NormBackwardBlocks(rows), width]
cudaError_t NormBackward(NormStorage storage, const void* d_normed, const void* x, const float* rstd,
                         const float* weight, int64_t rows, int64_t width, void* d_x, void* d_short,
                         float* d_weight, float* partial, cudaStream_t stream);

/// Turns the first 2 `half` elements of the first `num_heads` heads of every row in place; the rest of them
/// and later heads (the values) stay.
/// \param row_width elements of a row
/// \param half columns of the tables
/// \param sign 1, or -1 for the backward pass
cudaError_t Rope(Storage storage, void* qkv, const int64_t* positions, const float* cosines,
                 const float* sines, int64_t rows, int64_t row_width, int64_t num_heads, int64_t head_dim,
                 int64_t half, float sign, cudaStream_t stream);

/// Heads of rows as another's kernel left them.
struct HeadsInMemory {
  const void* data = nullptr;
  int64_t row_stride = 0, head_stride = 0;  ///< in elements; those of a head are neighbours
};
/// Writes queries, keys and values [rows, heads, head_dim] side by side, and turns queries and keys as Rope
/// does with the sign -1.
/// \param half columns of the tables; 0: nothing turns, and they are not read
/// \param qkv [rows, num_heads + 2 num_kv_heads, head_dim], contiguous; overlaps none of them
cudaError_t JoinHeads(Storage storage, const HeadsInMemory& q, const HeadsInMemory& k, const HeadsInMemory& v,
                      int64_t rows, int64_t num_heads, int64_t num_kv_heads, int64_t head_dim,
                      const int64_t* positions, const float* cosines, const float* sines, int64_t half,
                      void* qkv, cudaStream_t stream);

cudaError_t Swiglu(Storage storage, const void* gate_up, int64_t rows, int64_t width, void* out,
                   cudaStream_t stream);
/// Overwrites gate_up with its gradient.
cudaError_t SwigluBackward(Storage storage, void* gate_up, const void* d_out, int64_t rows, int64_t width,
                           cudaStream_t stream);

/// lib/nn/activation/dropout.h, with the CPU's bits.
/// \param rows the number of each row
/// \param out may be x
cudaError_t Dropout(Storage storage, const void* x, const int64_t* rows, uint64_t key, uint32_t threshold,
                    float scale, int64_t num_rows, int64_t width, void* out, cudaStream_t stream);

/// Nf4Tensor::Dequantize of lib/nn/linear/nf4.h, with the CPU's bits.
/// \param mean one number
/// \param size elements
cudaError_t DequantizeNf4(Storage storage, const uint8_t* codes, const uint8_t* scales,
                          const float* scale_magnitudes, const float* mean, const Nf4Books& books,
                          int64_t size, void* out, cudaStream_t stream);

/// As cpu::Kernels::cross_entropy.
/// \param logits [rows, padded]: what lies after the vocabulary is ignored, and gets the gradient 0
/// \param loss_scale null, or a number that multiplies `scale`
cudaError_t CrossEntropy(Storage storage, void* logits, const int64_t* targets, int64_t rows,
                         int64_t vocabulary, int64_t padded, LossTerms terms, float scale,
                         const double* loss_scale, bool gradients, double* losses_n3, cudaStream_t stream);

/// out[row] = table[indices[row]].
/// \param storage of out
cudaError_t Embed(Storage storage, const float* table, const int64_t* indices, int64_t rows, int64_t width,
                  void* out, cudaStream_t stream);
/// out[row] += table[indices[row]].
/// \param storage of out
cudaError_t AddEmbedding(Storage storage, const float* table, const int64_t* indices, int64_t rows,
                         int64_t width, void* out, cudaStream_t stream);

/// Sorted rows whose sum is one stage of EmbeddingBackward.
inline constexpr int64_t kEmbeddingStretchRows = 64;
int64_t EmbeddingStretches(int64_t rows);
/// table_gradient[token] += the rows of d_x with that token, in their order; where they reach over stretches
/// of the sorted rows, those of the later stretches are summed first, and the sums added in order.
/// \param storage of d_x
/// \param sorted_tokens [rows] ascending
/// \param sorted_rows the rows they come from, equal tokens in row order
/// \param partial scratch, fp32 [EmbeddingStretches(rows), width]
cudaError_t EmbeddingBackward(Storage storage, const void* d_x, const int64_t* sorted_tokens,
                              const int64_t* sorted_rows, int64_t rows, int64_t width, float* table_gradient,
                              float* partial, cudaStream_t stream);

/// Blocks of both passes over `rows` labels.
int64_t HeadRowsBlocks(int64_t rows);
/// See ops::HeadRows; more rows that have a label than `selected` are left out.
/// \param counts scratch [HeadRowsBlocks(rows)]
/// \param row_numbers, row_labels [selected], of at most `rows`
cudaError_t HeadRows(const int32_t* labels, int64_t rows, int64_t selected, int32_t* counts,
                     int64_t* row_numbers, int64_t* row_labels, cudaStream_t stream);

/// Blocks of the first pass over `size` elements.
int64_t SumOfSquaresBlocks(int64_t size);
/// \param partial scratch, fp64 [SumOfSquaresBlocks(size)]
/// \param out one fp64
cudaError_t SumOfSquares(const float* values, int64_t size, double* partial, double* out,
                         cudaStream_t stream);

/// trainwright::FinishStep on the device.
/// \param inputs fp64: StepInputs, and the denominators of `terms` terms
/// \param state fp64 [kStepStateFields]
/// \param term_rows fp64 [kStepTermRows, terms]
/// \param outputs fp32 [kStepOutputFields]
cudaError_t FinishStep(const double* sum_of_squares, const double* inputs, int terms, double max_norm,
                       bool scaled, double* state, double* term_rows, float* outputs, cudaStream_t stream);

/// The update of lib/nn/update/bf16_moments.h; results are the CPU's up to rounding, the random bits are its.
/// \param exp_avg, exp_avg_sq bf16
/// \param first place of the first element in the flat buffers
/// \param step, divisor, found_inf, rate scalars, the last of them a factor of the learning rate; all but the
///     first may be null
cudaError_t AdamWBf16Moments(float* values, const float* gradients, uint16_t* exp_avg, uint16_t* exp_avg_sq,
                             int64_t first, int64_t count, const AdamWHyperparameters& hyperparameters,
                             const float* step, const float* divisor, const float* found_inf,
                             const double* rate, cudaStream_t stream);

/// The update of lib/nn/update/lion.h; results are the CPU's up to rounding.
/// \param divisor, found_inf, rate as of AdamWBf16Moments
cudaError_t Lion(float* values, const float* gradients, float* exp_avg, int64_t count,
                 const LionHyperparameters& hyperparameters, const float* divisor, const float* found_inf,
                 const double* rate, cudaStream_t stream);

/// The update of lib/nn/update/adamw_8bit.h; results are the CPU's up to rounding.
/// \param step, divisor, found_inf, rate as of AdamWBf16Moments
cudaError_t AdamW8Bit(float* values, const float* gradients, const Moments8Bit& exp_avg,
                      const Moments8Bit& exp_avg_sq, int64_t count,
                      const AdamWHyperparameters& hyperparameters, const float* step, const float* divisor,
                      const float* found_inf, const double* rate, cudaStream_t stream);

/// What both directions of a diagonal scan read: lib/nn/scan/diagonal_scan.h. A thread takes a channel
/// through a chunk; the states between chunks are a launch of their own between the other two.
struct DiagonalScanInput {
  Storage storage = Storage::kFp32;
  int64_t rows = 0, channels = 0, chunk = 0;
  const int32_t* pieces_c5 = nullptr;  ///< of each chunk: see ScanPieceTable
  int64_t pieces = 0;
  const double *log_modulus_k = nullptr, *angle_k = nullptr;  ///< of all rows
  const float* lambda_nz = nullptr;                           ///< of each row; null: of all rows
  const void* b_nz = nullptr;                                 ///< stored
};

struct DiagonalScanOutput {
  void* c_nz = nullptr;          ///< stored
  float* states_cz = nullptr;    ///< before the chunks
  float* last_sz = nullptr;      ///< null: not wanted
  float* products_cz = nullptr;  ///< scratch of a scan with lambda_nz: of the chunks' decays
};

/// \param initial_sz null: zero
cudaError_t DiagonalScan(const DiagonalScanInput& input, const float* initial_sz,
                         const DiagonalScanOutput& output, cudaStream_t stream);

struct DiagonalScanGradients {
  void* d_b_nz = nullptr;        ///< stored
  double* d_lambda_z = nullptr;  ///< null: not wanted, as the next two
  float* d_lambda_nz = nullptr;  ///< in the other's place where each row has its own
  float* d_initial_sz = nullptr;
  // Scratch.
  float* carries_cz = nullptr;    ///< gradients of the states after the chunks
  float* products_cz = nullptr;   ///< as of the forward pass
  float* stretches_xz = nullptr;  ///< [DiagonalScanStretches(rows, pieces), Z]; for a decay's gradient only
  double* partial_cz = nullptr;   ///< of d_lambda_z only
  int32_t* tickets = nullptr;     ///< [DiagonalScanTickets(channels)]; of d_lambda_z only
};

int64_t DiagonalScanStretches(int64_t rows, int64_t pieces);
int64_t DiagonalScanTickets(int64_t channels);

/// \param states_cz of the forward pass
/// \param d_c_nz stored
/// \param d_last_sz null: zero
cudaError_t DiagonalScanBackward(const DiagonalScanInput& input, const float* states_cz, const void* d_c_nz,
                                 const float* d_last_sz, const DiagonalScanGradients& gradients,
                                 cudaStream_t stream);

}  // namespace trainwright::cuda

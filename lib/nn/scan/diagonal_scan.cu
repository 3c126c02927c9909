// The diagonal recurrence in chunks and its backward pass, three launches each: what the chunks end with, the
// states between them, and the rows. A thread takes one channel through one chunk, so that a warp reads and
// writes neighbours.
#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/launch.h"

namespace trainwright::cuda {
namespace {

/// Threads of a block, each with a channel.
constexpr int kChannels = 64;
/// Rows that are loaded before the first of them is used.
constexpr int kAhead = 8;
/// Rows whose states the backward pass holds at once.
constexpr int64_t kStretch = 32;

struct Complex {
  float re, im;
};

/// What a state is multiplied by: for a decay of all rows the sum of two fp32 numbers, else the first.
struct Decay {
  float re, im, low_re, low_im;
};

__device__ inline Decay PowerOf(const DiagonalScanInput& input, int64_t channel, int64_t exponent) {
  const auto times = static_cast<double>(exponent);
  const double modulus = exp(times * input.log_modulus_k[channel]);
  double sine, cosine;
  sincos(times * input.angle_k[channel], &sine, &cosine);
  const double re = modulus * cosine, im = modulus * sine;
  const auto high_re = static_cast<float>(re), high_im = static_cast<float>(im);
  return {high_re, high_im, static_cast<float>(re - static_cast<double>(high_re)),
          static_cast<float>(im - static_cast<double>(high_im))};
}

__device__ inline Decay Conjugate(const Decay& decay) {
  return {decay.re, -decay.im, decay.low_re, -decay.low_im};
}

/// sum + decay x; what is small is added first.
template <bool kSelective>
__device__ inline Complex MultiplyAdd(const Decay& decay, Complex x, Complex sum) {
  if constexpr (!kSelective) {
    sum.re = fmaf(-decay.low_im, x.im, fmaf(decay.low_re, x.re, sum.re));
    sum.im = fmaf(decay.low_im, x.re, fmaf(decay.low_re, x.im, sum.im));
  }
  return {fmaf(-decay.im, x.im, fmaf(decay.re, x.re, sum.re)),
          fmaf(decay.im, x.re, fmaf(decay.re, x.im, sum.im))};
}

/// A row of an array [rows, 2 channels] of stored values or fp32, and where this thread is in it.
template <typename T>
__device__ inline Complex LoadOf(const T* array, int64_t row, int64_t channels, int64_t channel) {
  const T* at = array + row * 2 * channels + channel;
  return {ToFloat(at[0]), ToFloat(at[channels])};
}
template <typename T>
__device__ inline void StoreIn(T* array, int64_t row, int64_t channels, int64_t channel, Complex value) {
  T* at = array + row * 2 * channels + channel;
  at[0] = FromFloat<T>(value.re);
  at[channels] = FromFloat<T>(value.im);
}

struct Piece {
  int64_t first, rows, before, after, span;
};

__device__ inline Piece PieceAt(const DiagonalScanInput& input, int64_t n) {
  const int32_t* at = input.pieces_c5 + 5 * n;
  return {at[0], at[1], at[2], at[3], at[4]};
}

/// The chunk and the channel of this thread.
struct Place {
  int64_t n, channel;
  bool active;  ///< whether there is such a channel

  __device__ explicit Place(const DiagonalScanInput& input)
      : n(blockIdx.x),
        channel(static_cast<int64_t>(blockIdx.y) * kChannels + threadIdx.x),
        active(channel < input.channels) {}
};

/// Calls visit(row, value of x, decay) for rows [first, first + rows), or from the last to the first with
/// conjugate decays.
template <typename T, bool kSelective, bool kReverse, typename Visit>
__device__ inline void ForRows(const DiagonalScanInput& input, const Decay& constant, const T* x_nz,
                               int64_t channel, int64_t first, int64_t rows, const Visit& visit) {
  const auto place = [&](int64_t i) { return kReverse ? first + rows - 1 - i : first + i; };
  const auto decay_of = [&](int64_t row) {
    if constexpr (kSelective) {
      const Complex lambda = LoadOf(input.lambda_nz, row, input.channels, channel);
      return Decay{lambda.re, kReverse ? -lambda.im : lambda.im, 0, 0};
    } else {
      return constant;
    }
  };
  int64_t i = 0;
  for (; i + kAhead <= rows; i += kAhead) {
    Complex values[kAhead];
    Decay decays[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      values[k] = LoadOf(x_nz, place(i + k), input.channels, channel);
      decays[k] = decay_of(place(i + k));
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) visit(place(i + k), values[k], decays[k]);
  }
  for (; i < rows; ++i) {
    visit(place(i), LoadOf(x_nz, place(i), input.channels, channel), decay_of(place(i)));
  }
}

/// The decay of all rows, or its conjugate; of a selective scan nothing.
template <bool kSelective, bool kReverse>
__device__ inline Decay ConstantDecay(const DiagonalScanInput& input, int64_t channel, int64_t exponent) {
  if constexpr (kSelective) {
    return {};
  } else {
    const Decay power = PowerOf(input, channel, exponent);
    return kReverse ? Conjugate(power) : power;
  }
}

/// What each chunk but a span's last ends with: from its true state if it is a span's first, else from zero.
/// Backward the gradient of the state before each chunk but a span's first, which goes to the one before it.
/// \param x_nz b, or the gradients of c
/// \param bounds_sz the states before the spans, or the gradients of the last ones; null: zeros
/// \param tickets set to 0 where there are any
template <typename T, bool kSelective, bool kReverse>
__global__ void __launch_bounds__(kChannels)
    EndsKernel(DiagonalScanInput input, const T* __restrict__ x_nz, const float* __restrict__ bounds_sz,
               float* __restrict__ ends_cz, float* __restrict__ products_cz, int32_t* __restrict__ tickets) {
  const Place place(input);
  if (tickets != nullptr && place.n == 0 && threadIdx.x == 0) tickets[blockIdx.y] = 0;
  if (!place.active) return;
  const Piece piece = PieceAt(input, place.n);
  Complex state = {0, 0}, product = {1, 0};
  if ((kReverse ? piece.after : piece.before) == 0) {
    if (bounds_sz != nullptr) state = LoadOf(bounds_sz, piece.span, input.channels, place.channel);
    StoreIn(ends_cz, place.n, input.channels, place.channel, state);
  }
  if ((kReverse ? piece.before : piece.after) == 0) return;
  const Decay constant = ConstantDecay<kSelective, kReverse>(input, place.channel, 1);
  ForRows<T, kSelective, kReverse>(input, constant, x_nz, place.channel, piece.first, piece.rows,
                                   [&](int64_t, Complex x, const Decay& decay) {
                                     if constexpr (kReverse) {
                                       const Complex delta = {state.re + x.re, state.im + x.im};
                                       state = MultiplyAdd<kSelective>(decay, delta, {0, 0});
                                     } else {
                                       state = MultiplyAdd<kSelective>(decay, state, x);
                                     }
                                     if (kSelective) product = MultiplyAdd<true>(decay, product, {0, 0});
                                   });
  StoreIn(ends_cz, kReverse ? place.n - 1 : place.n + 1, input.channels, place.channel, state);
  if (kSelective) StoreIn(products_cz, place.n, input.channels, place.channel, product);
}

/// The states between the chunks of a span, one after another, or the gradients of them from its last chunk
/// on; the block of the chunk where a span begins (or ends) takes all of it.
template <bool kSelective, bool kReverse>
__global__ void __launch_bounds__(kChannels)
    CarryKernel(DiagonalScanInput input, const float* __restrict__ products_cz, float* ends_cz) {
  const Place place(input);
  const Piece piece = PieceAt(input, place.n);
  const int64_t count = kReverse ? piece.before : piece.after;
  if (!place.active || count < 2 || (kReverse ? piece.after : piece.before) != 0) return;
  const Decay constant = ConstantDecay<kSelective, kReverse>(input, place.channel, input.chunk);
  const auto chunk = [&](int64_t k) { return kReverse ? place.n - k : place.n + k; };
  const auto power = [&](int64_t k) {
    if constexpr (kSelective) {
      const Complex product = LoadOf(products_cz, chunk(k), input.channels, place.channel);
      return Decay{product.re, product.im, 0, 0};
    } else {
      return constant;
    }
  };
  Complex state = LoadOf(ends_cz, chunk(1), input.channels, place.channel);
  for (int64_t from = 1; from < count; from += kAhead) {
    Complex ends[kAhead];
    Decay powers[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (from + k >= count) continue;
      ends[k] = LoadOf(ends_cz, chunk(from + k + 1), input.channels, place.channel);
      powers[k] = power(from + k);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (from + k >= count) continue;
      state = MultiplyAdd<kSelective>(powers[k], state, ends[k]);
      StoreIn(ends_cz, chunk(from + k + 1), input.channels, place.channel, state);
    }
  }
}

template <typename T, bool kSelective>
__global__ void __launch_bounds__(kChannels)
    RowsKernel(DiagonalScanInput input, const float* __restrict__ states_cz, T* __restrict__ c_nz,
               float* __restrict__ last_sz) {
  const Place place(input);
  if (!place.active) return;
  const Piece piece = PieceAt(input, place.n);
  const Decay constant = ConstantDecay<kSelective, false>(input, place.channel, 1);
  Complex state = LoadOf(states_cz, place.n, input.channels, place.channel);
  ForRows<T, kSelective, false>(input, constant, static_cast<const T*>(input.b_nz), place.channel,
                                piece.first, piece.rows, [&](int64_t row, Complex b, const Decay& decay) {
                                  state = MultiplyAdd<kSelective>(decay, state, b);
                                  StoreIn(c_nz, row, input.channels, place.channel, state);
                                });
  if (last_sz != nullptr && piece.after == 0) {
    StoreIn(last_sz, piece.span, input.channels, place.channel, state);
  }
}

/// Where a thread is in the last launch of the backward pass, and what it carries from row to row.
template <typename T, bool kSelective>
struct RowsBackward {
  const DiagonalScanInput& input;
  const DiagonalScanGradients& gradients;
  const T* d_c_nz;
  Piece piece;
  int64_t n, channel;
  Decay decay, conjugate;
  Complex carry;

  /// delta of a row, which is the gradient of b.
  __device__ Complex Step(int64_t row, Complex g, const Decay& of_row) {
    const Complex delta = {carry.re + g.re, carry.im + g.im};
    carry = MultiplyAdd<kSelective>(of_row, delta, {0, 0});
    StoreIn(static_cast<T*>(gradients.d_b_nz), row, input.channels, channel, delta);
    return delta;
  }
  __device__ void WithoutDecay() {
    ForRows<T, kSelective, true>(input, conjugate, d_c_nz, channel, piece.first, piece.rows,
                                 [&](int64_t row, Complex g, const Decay& of_row) { Step(row, g, of_row); });
  }
  /// The states before all stretches but the first go to scratch, in a place of its own for every chunk: a
  /// chunk of r rows after f others has at most (f + r) / kStretch - f / kStretch + 1 stretches.
  __device__ float* Stretches() const {
    return gradients.stretches_xz + (piece.first / kStretch + n) * 2 * input.channels;
  }
  __device__ void KeepStates(Complex state) const {
    const int64_t stretches = (piece.rows + kStretch - 1) / kStretch;
    for (int64_t s = 0; s < stretches; ++s) {
      StoreIn(Stretches(), s, input.channels, channel, state);
      if (s + 1 == stretches) break;
      ForRows<T, kSelective, false>(input, decay, static_cast<const T*>(input.b_nz), channel,
                                    piece.first + s * kStretch, kStretch,
                                    [&](int64_t, Complex b, const Decay& of_row) {
                                      state = MultiplyAdd<kSelective>(of_row, state, b);
                                    });
    }
  }
  /// \param before the states before the stretch's rows, of this thread, kChannels apart
  /// \returns the gradient of a decay of all rows
  __device__ Complex Stretch(int64_t s, Complex* before) {
    const int64_t first = piece.first + s * kStretch, left = piece.rows - s * kStretch;
    const int64_t rows = left < kStretch ? left : kStretch;
    Complex state = LoadOf(Stretches(), s, input.channels, channel);
    ForRows<T, kSelective, false>(input, decay, static_cast<const T*>(input.b_nz), channel, first, rows,
                                  [&](int64_t row, Complex b, const Decay& of_row) {
                                    before[(row - first) * kChannels] = state;
                                    state = MultiplyAdd<kSelective>(of_row, state, b);
                                  });
    Complex sum = {0, 0};
    ForRows<T, kSelective, true>(
        input, conjugate, d_c_nz, channel, first, rows, [&](int64_t row, Complex g, const Decay& of_row) {
          const Complex delta = Step(row, g, of_row), c = before[(row - first) * kChannels];
          const Complex d_decay = {delta.re * c.re + delta.im * c.im, delta.im * c.re - delta.re * c.im};
          if constexpr (kSelective) {
            StoreIn(gradients.d_lambda_nz, row, input.channels, channel, d_decay);
          } else {
            sum = {sum.re + d_decay.re, sum.im + d_decay.im};
          }
        });
    return sum;
  }
};

/// The last block of these channels adds up what all chunks have left, in their order.
__device__ inline void SumPartials(const DiagonalScanInput& input, const DiagonalScanGradients& gradients,
                                   const Place& place) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&gradients.tickets[blockIdx.y], 1) + 1 == static_cast<int32_t>(gridDim.x);
  }
  __syncthreads();
  if (!last || !place.active) return;
  __threadfence();
  double re = 0, im = 0;
  for (int64_t n = 0; n < input.pieces; ++n) {
    const double* at = gradients.partial_cz + n * 2 * input.channels + place.channel;
    re += __ldcg(at);
    im += __ldcg(at + input.channels);
  }
  gradients.d_lambda_z[place.channel] = re;
  gradients.d_lambda_z[input.channels + place.channel] = im;
}

template <typename T, bool kSelective>
__global__ void __launch_bounds__(kChannels)
    BackwardRowsKernel(DiagonalScanInput input, const float* __restrict__ states_cz,
                       const T* __restrict__ d_c_nz, DiagonalScanGradients gradients) {
  __shared__ Complex before[kStretch * kChannels];
  const Place place(input);
  if (place.active) {
    RowsBackward<T, kSelective> rows = {input,
                                        gradients,
                                        d_c_nz,
                                        PieceAt(input, place.n),
                                        place.n,
                                        place.channel,
                                        ConstantDecay<kSelective, false>(input, place.channel, 1),
                                        ConstantDecay<kSelective, true>(input, place.channel, 1),
                                        LoadOf(gradients.carries_cz, place.n, input.channels, place.channel)};
    if (gradients.stretches_xz == nullptr) {
      rows.WithoutDecay();
    } else {
      rows.KeepStates(LoadOf(states_cz, place.n, input.channels, place.channel));
      double re = 0, im = 0;
      for (int64_t s = (rows.piece.rows + kStretch - 1) / kStretch; s-- > 0;) {
        const Complex sum = rows.Stretch(s, before + threadIdx.x);
        re += static_cast<double>(sum.re);
        im += static_cast<double>(sum.im);
      }
      if (gradients.d_lambda_z != nullptr) {
        double* at = gradients.partial_cz + place.n * 2 * input.channels + place.channel;
        at[0] = re;
        at[input.channels] = im;
      }
    }
    if (gradients.d_initial_sz != nullptr && rows.piece.before == 0) {
      StoreIn(gradients.d_initial_sz, rows.piece.span, input.channels, place.channel, rows.carry);
    }
  }
  if (gradients.d_lambda_z != nullptr) SumPartials(input, gradients, place);
}

dim3 GridOf(const DiagonalScanInput& input) {
  return {static_cast<unsigned>(input.pieces), static_cast<unsigned>(DiagonalScanTickets(input.channels))};
}

/// Calls function.template operator()<element type, selective>().
template <typename Function>
cudaError_t WithDecay(const DiagonalScanInput& input, const Function& function) {
  return WithStorage(input.storage, [&]<typename T>() {
    return input.lambda_nz != nullptr ? function.template operator()<T, true>()
                                      : function.template operator()<T, false>();
  });
}

}  // namespace

int64_t DiagonalScanStretches(int64_t rows, int64_t pieces) {
  return rows / kStretch + pieces + 1;
}

int64_t DiagonalScanTickets(int64_t channels) {
  return (channels + kChannels - 1) / kChannels;
}

cudaError_t DiagonalScan(const DiagonalScanInput& input, const float* initial_sz,
                         const DiagonalScanOutput& output, cudaStream_t stream) {
  if (input.pieces == 0 || input.channels == 0) return cudaSuccess;
  const dim3 grid = GridOf(input);
  return WithDecay(input, [&]<typename T, bool kSelective>() {
    const auto* b = static_cast<const T*>(input.b_nz);
    cudaError_t status = Launch(EndsKernel<T, kSelective, false>, grid, kChannels, stream, input, b,
                                initial_sz, output.states_cz, output.products_cz, nullptr);
    if (status != cudaSuccess) return status;
    status = Launch(CarryKernel<kSelective, false>, grid, kChannels, stream, input, output.products_cz,
                    output.states_cz);
    if (status != cudaSuccess) return status;
    return Launch(RowsKernel<T, kSelective>, grid, kChannels, stream, input, output.states_cz,
                  static_cast<T*>(output.c_nz), output.last_sz);
  });
}

cudaError_t DiagonalScanBackward(const DiagonalScanInput& input, const float* states_cz, const void* d_c_nz,
                                 const float* d_last_sz, const DiagonalScanGradients& gradients,
                                 cudaStream_t stream) {
  if (input.pieces == 0 || input.channels == 0) return cudaSuccess;
  const dim3 grid = GridOf(input);
  return WithDecay(input, [&]<typename T, bool kSelective>() {
    const auto* g = static_cast<const T*>(d_c_nz);
    cudaError_t status = Launch(EndsKernel<T, kSelective, true>, grid, kChannels, stream, input, g, d_last_sz,
                                gradients.carries_cz, gradients.products_cz, gradients.tickets);
    if (status != cudaSuccess) return status;
    status = Launch(CarryKernel<kSelective, true>, grid, kChannels, stream, input, gradients.products_cz,
                    gradients.carries_cz);
    if (status != cudaSuccess) return status;
    return Launch(BackwardRowsKernel<T, kSelective>, grid, kChannels, stream, input, states_cz, g, gradients);
  });
}

}  // namespace trainwright::cuda
